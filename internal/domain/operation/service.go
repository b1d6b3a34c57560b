// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
)

// Confirmations keeps the confirmations of operations; *confirm.Service satisfies it.
type Confirmations interface {
	CanConfirm(ctx context.Context, userID string) error
	Create(ctx context.Context, who audit.Principal, o confirm.Order) (confirm.Record, error)
	Ready(ctx context.Context, who audit.Principal, id string) (r confirm.Record, done bool, err error)
	Complete(ctx context.Context, who audit.Principal, r *confirm.Record, change func(ctx context.Context) error) error
}

// Settings are the rules of operations.
type Settings struct {
	Life  time.Duration // until an operation is confirmed
	Lease time.Duration // after which the work of a process that died is taken over
	Keep  time.Duration // how long an ended operation is stored
}

// Deps are what a Service works with.
type Deps struct {
	Store         Store
	Confirmations Confirmations // in the database of Store; nil: what needs a confirmation is refused
	Vault         Sealer
	Now           func() time.Time
	Rand          io.Reader   // safe for concurrent use
	Failed        func(error) // is told of errors in the background; nil: nobody
}

// Sealer seals short secrets for storage; see [vault.Ring].
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}

// Service starts operations and carries them out. It is safe for concurrent use.
type Service struct {
	settings  Settings
	deps      Deps
	kinds     map[string]*Kind
	renderers map[Form]map[string]Renderer
}

// New returns a service of some kinds.
func New(s Settings, d Deps, kinds ...Kind) (*Service, error) {
	made := &Service{settings: s, deps: d, kinds: map[string]*Kind{}, renderers: map[Form]map[string]Renderer{}}
	for _, k := range kinds {
		if k.Name == "" || made.kinds[k.Name] != nil {
			return nil, fmt.Errorf("operation: two kinds %q, or one without a name", k.Name)
		}
		made.kinds[k.Name] = &k
	}
	return made, nil
}

// Render registers how the answers of a form are made, by the names of kinds. It is for the time before
// the service is used. An operation without a renderer has no answer.
func (s *Service) Render(f Form, by map[string]Renderer) { s.renderers[f] = by }

func (s *Service) kind(name string) (*Kind, error) {
	if k := s.kinds[name]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("operation: the kind %q, which this release does not know", name)
}

// Start does what is ordered, at once and without a row, and returns its result. If it needs a
// confirmation, it stores an operation that waits for it, and returns that.
//
// Faults: those of the kind; authn_method_not_confirmed where the order refuses to wait, and for a user
// without a method; those of confirm.Service.Create.
func (s *Service) Start(ctx context.Context, o *Order) (result any, waiting *Operation, err error) {
	k, err := s.kind(o.Kind)
	if err != nil {
		return nil, nil, err
	}
	needed, err := k.Check(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	switch needed = needed || o.Forced || o.Confirming == Always; {
	case needed && (o.Confirming == Refuses || s.deps.Confirmations == nil):
		return nil, nil, Unconfirmed(o.Action)
	case needed:
		waiting, err = s.propose(ctx, k, o)
		return nil, waiting, err
	}
	r := &Run{Operation: Operation{Kind: k.Name, Form: o.Form, Owner: o.Owner}, service: s, kind: k, order: o}
	if err := k.Do(ctx, r); err != nil {
		return nil, nil, err
	}
	return r.result, nil, r.check()
}

// Unconfirmed is the fault of an act that needs a confirmation where none can be asked for.
func Unconfirmed(action policy.Action) error {
	return fault.Newf(fault.MethodNotConfirmed, "%s needs a confirmation: create an operation by v2 or a transaction by POST /api/transactions, and have the user confirm it; nothing was done", action)
}

// propose stores an operation that waits for its confirmation.
func (s *Service) propose(ctx context.Context, k *Kind, o *Order) (op *Operation, err error) {
	if err := s.deps.Confirmations.CanConfirm(ctx, o.Owner.UserID); err != nil {
		return nil, err
	}
	if k.Propose != nil {
		if err := k.Propose(ctx, o); err != nil {
			return nil, err
		}
	}
	fields, err := k.Describe(ctx, o)
	if err != nil {
		return nil, err
	}
	plan := Plan{Version: k.Version}
	if plan.Of, err = json.Marshal(o.Plan); err != nil {
		return nil, err
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	var secret []byte
	if o.Secret != nil {
		if secret, err = json.Marshal(o.Secret); err != nil {
			return nil, err
		}
		defer clear(secret)
	}
	shown, err := arguments(fields.Arguments)
	if err != nil {
		return nil, err
	}
	err = s.deps.Store.Atomic(ctx, lock.User(o.Owner.UserID), func(ctx context.Context) error {
		c, err := s.deps.Confirmations.Create(ctx, o.Owner, confirm.Order{Purpose: k.Purpose, Fields: fields, Bytes: o.Bytes, Life: s.settings.Life})
		if err != nil {
			return err
		}
		op = &Operation{
			ID: c.ID, Kind: k.Name, Form: o.Form, Owner: o.Owner, Action: fields.Action, State: Created, Parameters: shown,
			CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, ConfirmBefore: c.ConfirmBefore,
		}
		row, err := op.stored()
		if err != nil {
			return fault.Rollback(err)
		}
		row.Plan = text
		if len(secret) > 0 {
			if row.Secret, err = s.deps.Vault.Seal(secretPlace(op.ID), secret); err != nil {
				return fault.Rollback(err)
			}
		}
		return fault.Rollback(s.deps.Store.AddOperation(ctx, row))
	})
	if err != nil {
		return nil, err
	}
	return op, nil
}

// secretPlace is where the sealed secret of an operation is stored.
func secretPlace(id string) vault.Place {
	return vault.Place{Purpose: "operation", Table: "operations", Row: id, Column: "secret"}
}

// AnswerPlace is where the sealed answer of an operation is stored, also of those that package signing carries
// out by itself.
func AnswerPlace(id string) vault.Place {
	return vault.Place{Purpose: "operation", Table: "operations", Row: id, Column: "answer"}
}

// Claim is a request to carry an operation out.
type Claim struct {
	ID    string // of the operation
	Form  Form
	Kinds []string // that the request carries out
	// About names what the request is about, such as the number of a certificate in its address, for
	// Kind.Fits; "": nothing.
	About string
	// PIN was given with the request; "": none.
	PIN string
}

// CarryOut carries out an operation that its user has confirmed, or returns what an earlier call has
// done. While another process carries it out, it waits for the end. A failure leaves the operation
// Confirmed, so that the call can be repeated in time. result is what Run.Spend got; it is nil if the
// operation was carried out before.
//
// Faults: those of confirm.Service.Ready and of the kind; invalid_operation for an operation of another
// form or kind, or about something else; invalid_transaction for one whose description is another by now.
func (s *Service) CarryOut(ctx context.Context, who audit.Principal, c *Claim) (op *Operation, result any, err error) {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		op, result, err = s.carryOut(ctx, who, c)
		if !errors.Is(err, errBusy) {
			return op, result, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, nil, err
		}
	}
}

// The pauses between two looks at an operation that another process carries out.
const (
	firstWait   = 20 * time.Millisecond
	longestWait = 500 * time.Millisecond
)

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errBusy means that another process has the lease.
var errBusy = errors.New("operation: another process carries the operation out")

func (s *Service) carryOut(ctx context.Context, who audit.Principal, c *Claim) (*Operation, any, error) {
	if s.deps.Confirmations == nil {
		return nil, nil, fault.New(fault.InvalidOperation, "this installation makes no confirmations")
	}
	record, done, err := s.deps.Confirmations.Ready(ctx, who, c.ID)
	if err != nil {
		return nil, nil, err
	}
	row, found, err := s.deps.Store.FindOperation(ctx, record.ID)
	if err == nil && found {
		err = row.read()
	}
	if err != nil {
		return nil, nil, err
	}
	if !found || row.Form != c.Form || !slices.Contains(c.Kinds, row.Kind) {
		return nil, nil, confirm.OtherOperation()
	}
	k, err := s.kind(row.Kind)
	if err != nil {
		return nil, nil, err
	}
	if done {
		op, err := s.again(row, k, c)
		return op, nil, err
	}
	order, err := s.ready(ctx, row, k, c, &record)
	if err != nil {
		return nil, nil, s.newer(ctx, who, record.ID, err)
	}
	return s.attempt(ctx, who, &record, k, c, order)
}

// again returns an operation that was carried out before, with its answer.
func (s *Service) again(row *Stored, k *Kind, c *Claim) (*Operation, error) {
	op := row.Operation
	if k.Fits != nil {
		if err := k.Fits(&op, nil, c); err != nil {
			return nil, err
		}
	}
	if len(op.Answer) == 0 {
		return &op, nil
	}
	var err error
	op.Answer, err = s.deps.Vault.Open(AnswerPlace(op.ID), row.Answer)
	return &op, err
}

// ready checks whether a confirmed operation may be carried out now, and is what its user has confirmed.
func (s *Service) ready(ctx context.Context, row *Stored, k *Kind, c *Claim, record *confirm.Record) (*Order, error) {
	plan := &Plan{kind: k}
	if err := json.Unmarshal(row.Plan, plan); err != nil {
		return nil, fmt.Errorf("operation: the plan of operation %s: %w", row.ID, err)
	}
	if k.Fits != nil {
		if err := k.Fits(&row.Operation, plan, c); err != nil {
			return nil, err
		}
	}
	o := &Order{Kind: row.Kind, Form: row.Form, Owner: row.Owner, plan: plan}
	if _, err := k.Check(ctx, o); err != nil {
		return nil, err
	}
	fields, err := k.Describe(ctx, o)
	if err != nil {
		return nil, err
	}
	sum, err := fields.Sum()
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(sum[:], record.What[:]) != 1 {
		return nil, fault.New(fault.InvalidTransaction, "the documents, the parameters or the certificate differ from what was confirmed")
	}
	return o, nil
}

// newer returns the fault of an operation that another call has ended meanwhile, otherwise err: the end
// deletes what is read before it is carried out.
func (s *Service) newer(ctx context.Context, who audit.Principal, id string, err error) error {
	switch _, done, now := s.deps.Confirmations.Ready(ctx, who, id); {
	case now == nil && done:
		return errBusy // its answer is there
	case now != nil:
		if _, refused := fault.As(now); refused {
			return now
		}
	}
	return err
}

// attempt leases an operation and carries it out.
func (s *Service) attempt(ctx context.Context, who audit.Principal, record *confirm.Record, k *Kind, c *Claim, order *Order) (op *Operation, result any, err error) {
	l, err := s.leases().New()
	if err != nil {
		return nil, nil, err
	}
	row, leased, err := s.deps.Store.ClaimOperation(ctx, record.ID, l, s.now())
	if err == nil && leased {
		err = row.read()
	}
	if err != nil {
		return nil, nil, err
	}
	if !leased {
		return nil, nil, errBusy
	}
	r := &Run{Operation: row.Operation, PIN: c.PIN, service: s, kind: k, order: order, who: who, record: record, token: l.Token, secret: row.Secret}
	defer func() {
		if err != nil {
			err = errors.Join(s.newer(ctx, who, record.ID, err), s.deps.Store.ReleaseOperation(context.WithoutCancel(ctx), record.ID, l.Token))
		}
	}()
	err = s.leases().Hold(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.deps.Store.ExtendOperation(ctx, record.ID, l)
	}, func(ctx context.Context) error { return k.Do(ctx, r) })
	switch {
	case err == nil:
		err = r.check()
	case errors.Is(err, lease.ErrLost):
		err = errBusy
	}
	if err != nil {
		return nil, nil, err
	}
	return &r.Operation, r.result, nil
}

func (s *Service) leases() lease.Rules {
	return lease.Rules{Life: s.settings.Lease, Now: s.deps.Now, Rand: s.deps.Rand, Failed: s.deps.Failed}
}

// now returns the time with the precision of stores.
func (s *Service) now() time.Time { return s.deps.Now().UTC().Truncate(time.Millisecond) }
