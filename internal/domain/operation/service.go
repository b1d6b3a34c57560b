// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
	"tamga/sig"
)

// Confirmations keeps the confirmations of operations; *confirm.Service satisfies it.
type Confirmations interface {
	CanConfirm(ctx context.Context, userID string) error
	Create(ctx context.Context, who audit.Principal, o confirm.Draft) (confirm.Record, error)
	Find(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
	Content(ctx context.Context, who audit.Principal, id string) (confirm.Content, error)
	Ready(ctx context.Context, who audit.Principal, id string) (r confirm.Record, done bool, err error)
	Complete(ctx context.Context, who audit.Principal, r *confirm.Record, proof []byte, change func(ctx context.Context) error) error
	Fail(ctx context.Context, who audit.Principal, r *confirm.Record, f *fault.Error, change func(ctx context.Context) error) error
	Cancel(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
	Confirmed() <-chan struct{}
}

// Settings are the rules of operations. A zero field of the second part means its default.
type Settings struct {
	Life  time.Duration // until an operation is confirmed
	Lease time.Duration // after which the work of a request that died is taken over
	Keep  time.Duration // how long an ended operation is stored; default 24 h

	Async     bool          // whether clients may ask for an operation to be carried out later
	AsyncLife time.Duration // within which such an operation must be completed; default 1200 s
	LoopLease time.Duration // after which the work of a loop that died is taken over; default 1 min
	Poll      time.Duration // interval of looking for what is due; default 1 s
	Pause     time.Duration // after a first attempt that failed, doubled from then on; default 5 s
	Workers   int           // operations that a process carries out at the same time without a request; default 2, below 0 none
	Attempts  int           // at an operation before it is given up; default 10
	Waiting   Quota         // default 1000 operations, 4 GiB
}

// filled returns the settings with their defaults.
func (s Settings) filled() Settings {
	for _, d := range []struct {
		setting *time.Duration
		value   time.Duration
	}{
		{&s.Keep, 24 * time.Hour}, {&s.AsyncLife, 1200 * time.Second}, {&s.LoopLease, time.Minute}, {&s.Poll, time.Second}, {&s.Pause, 5 * time.Second},
	} {
		if *d.setting == 0 {
			*d.setting = d.value
		}
	}
	if s.Workers == 0 {
		s.Workers = 2
	}
	if s.Attempts == 0 {
		s.Attempts = 10
	}
	if s.Waiting == (Quota{}) {
		s.Waiting = Quota{Objects: 1000, Bytes: 4 << 30}
	}
	return s
}

// Log stores audit entries, in the database of Store.
type Log interface {
	audit.Log
	// RecordAll makes entries part of the transaction, with few statements.
	RecordAll(ctx context.Context, list []audit.Entry) error
}

// Deps are what a Service works with.
type Deps struct {
	Store         Store
	Lists         ListStore     // of the database of Store
	Confirmations Confirmations // in the database of Store; nil: what needs a confirmation is refused
	Vault         Sealer
	Audit         Log
	Now           func() time.Time
	Rand          io.Reader   // safe for concurrent use
	Failed        func(error) // is called for errors in the background, without secrets, unless it is nil
}

// DocumentDeps are what a Service works with if its operations have documents.
type DocumentDeps struct {
	Documents Documents // nil: RefId is refused
	Blobs     Blobs     // what is needed after a request
	// Sealed is Blobs for results of kinds that are Private: what it stores is sealed, whatever Blobs does.
	// Blobs opens it, too. nil: Blobs seals.
	Sealed Blobs
	// Scratch returns a document that is written once, and then read: results on their way to Blobs. Nothing
	// of it is on disk in the clear.
	Scratch   func() Scratch
	Owners    OwnerCheck // nil: no check of the user when an operation is carried out without a request
	Callbacks Callbacks
}

// Scratch is a document in memory or in a temporary file. It is written, finished, read and closed.
type Scratch interface {
	sig.Document
	io.WriteCloser
	Finish() error
}

// Sealer seals short secrets for storage; see [vault.Ring].
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}

// Callbacks tell of the end of operations at addresses that clients choose. Any process stores them, with
// the end. Those that can send them do.
type Callbacks struct {
	// Messages store a request in the transaction of ctx. [notify.Service] implements it.
	Messages interface {
		Call(ctx context.Context, c notify.Call) error
	}
	// Check refuses an address that can be refused without resolving it. The fault is
	// invalid_parameters. nil: Callback is refused.
	Check func(address string) error
	// Render makes the body of the request. It may be written more than once, until the operation is
	// closed.
	Render func(o *Operation) (sig.Result, error)
}

// Service starts operations and carries them out. It is safe for concurrent use.
type Service struct {
	settings  Settings
	deps      Deps
	docs      DocumentDeps
	kinds     map[string]*Kind
	renderers map[Form]map[string]Renderer
	queued    chan struct{} // this process has accepted an operation
}

// New returns a service of some kinds.
func New(s Settings, d Deps, kinds ...Kind) (*Service, error) {
	if d.Failed == nil {
		d.Failed = func(error) {}
	}
	made := &Service{
		settings: s.filled(), deps: d, docs: DocumentDeps{Documents: noDocuments{}},
		kinds: map[string]*Kind{}, renderers: map[Form]map[string]Renderer{}, queued: make(chan struct{}, 1),
	}
	return made, made.Add(kinds...)
}

// Add adds kinds. It is for the time before the service is used.
func (s *Service) Add(kinds ...Kind) error {
	for _, k := range kinds {
		if k.Name == "" || s.kinds[k.Name] != nil {
			return fmt.Errorf("operation: two kinds %q, or one without a name", k.Name)
		}
		s.kinds[k.Name] = &k
	}
	return nil
}

// Use gives the service what operations with documents need. It is for the time before the service is used.
func (s *Service) Use(d DocumentDeps) {
	if d.Documents == nil {
		d.Documents = noDocuments{}
	}
	s.docs = d
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

// Limits of an order.
const (
	maxReferences = 1000 // stored documents of one operation: each is a file or a connection
	maxName       = 1024 // bytes of a name
	maxCallback   = 2048 // bytes of an address
)

// check refuses errors in an order that are the same for all kinds.
func (s *Service) check(o *Order) error {
	references := 0
	for i := range o.Inputs {
		in := &o.Inputs[i]
		for _, ref := range []string{in.RefID, in.RelatedRefID} {
			if ref != "" {
				references++
			}
		}
		if max(len(in.Name), len(in.RefID), len(in.RelatedRefID)) > maxName {
			return fault.Newf(fault.InvalidParameters, "BinaryData[%d]: ContentInfo, RefId and RelatedRefId have at most %d bytes", i, maxName)
		}
	}
	switch {
	case references > maxReferences:
		return fault.Newf(fault.InvalidParameters, "BinaryData names %d stored documents: name at most %d in one request", references, maxReferences)
	case o.Async && !s.settings.Async:
		return fault.New(fault.InvalidParameters, "IsAsync: asynchronous operations are switched off in this installation")
	case o.Callback == "":
		return nil
	case s.docs.Callbacks.Check == nil:
		return fault.New(fault.InvalidParameters, "Callback: this installation makes no callbacks")
	case len(o.Callback) > maxCallback:
		return fault.Newf(fault.InvalidParameters, "Callback has more than %d bytes", maxCallback)
	}
	return s.docs.Callbacks.Check(o.Callback)
}

// Start does what is ordered at once, and returns its result and, if the kind is recorded or has documents, the
// operation, which has no identifier if it is not recorded. If it needs a confirmation, it stores an operation that waits for it, and an asynchronous order is stored
// to be carried out later: op is that operation, and has not ended.
//
// Faults: those of the kind; authn_method_not_confirmed where the order refuses to wait, and for a user
// without a method; those of confirm.Service.Create; invalid_parameters; too_many_requests. A fault of one
// document that refuses the order is an [OfDocument].
func (s *Service) Start(ctx context.Context, o *Order) (op *Operation, result any, err error) {
	k, err := s.kind(o.Kind)
	if err != nil {
		return nil, nil, err
	}
	if err := s.check(o); err != nil {
		return nil, nil, err
	}
	needed, err := k.Check(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err := s.receive(o); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil || op == nil {
			err = errors.Join(err, o.opener.close())
		} else {
			op.open, o.opener.open = append(op.open, o.opener.open...), nil
		}
	}()
	switch needed = needed || o.Forced || o.Confirming == Always; {
	case needed && (o.Confirming == Refuses || s.deps.Confirmations == nil):
		return nil, nil, Unconfirmed(o.Action)
	case needed:
		op, err = s.propose(ctx, k, o)
		return op, nil, err
	}
	now := s.deps.Now()
	begun := Operation{
		Kind: k.Name, Form: o.Form, Owner: o.Owner, Action: o.Action.String(), State: Confirmed, Async: o.Async,
		Parameters: o.Parameters, Description: o.Description, Documents: o.documents, Callback: o.Callback,
		CreatedAt: now, UpdatedAt: now, ConfirmedAt: now, CompleteBefore: now.Add(s.settings.AsyncLife),
	}
	if (k.Recorded || o.Recorded) && o.Form != FormTransaction || o.Async {
		if begun.ID, err = s.newID(); err != nil {
			return nil, nil, err
		}
	}
	if o.Async {
		return &begun, nil, s.enqueue(ctx, k, o, &begun)
	}
	r := &Run{Operation: begun, service: s, kind: k, order: o}
	if err := k.Do(ctx, r); err != nil {
		return nil, nil, errors.Join(err, r.Operation.Close())
	}
	if r.recorded() || len(r.Documents) > 0 {
		op = &r.Operation
	}
	return op, r.result, r.check()
}

// newID returns a GUID.
func (s *Service) newID() (string, error) {
	id, err := uuid.NewRandomFromReader(s.deps.Rand)
	if err != nil {
		return "", fmt.Errorf("operation: naming an operation: %w", err)
	}
	return id.String(), nil
}

// receive names the documents of an order.
func (s *Service) receive(o *Order) error {
	o.opener = opener{store: s.docs.Documents, owner: o.Owner, received: o.Received, original: o.Original,
		content: func(_ *Document, i int) sig.Document { return o.Inputs[i].Content }}
	if len(o.Inputs) == 0 {
		return nil
	}
	o.documents = make([]Document, len(o.Inputs))
	for i := range o.Inputs {
		in := &o.Inputs[i]
		id, err := s.newID()
		if err != nil {
			return err
		}
		o.documents[i] = Document{ID: id, OriginalRef: in.RefID, OriginalName: in.Name, Related: in.RelatedRefID, Way: in.Way}
		if f, ok := fault.As(in.Err); ok {
			o.documents[i].Fault = f
		} else if in.Err != nil {
			return in.Err
		}
	}
	return nil
}

// Unconfirmed is the fault of an act that needs a confirmation where none can be asked for.
func Unconfirmed(action policy.Action) error {
	return fault.Newf(fault.MethodNotConfirmed, "%s needs a confirmation: create an operation by v2 or a transaction by POST /api/transactions, and have the user confirm it; nothing was done", action)
}

// contentsMargin is how much longer documents are stored than an operation waits for its
// confirmation: the longest time to carry it out, the lease, and clocks that differ.
const contentsMargin = 2 * time.Hour

// propose stores an operation that waits for its confirmation.
func (s *Service) propose(ctx context.Context, k *Kind, o *Order) (op *Operation, err error) {
	if err := s.deps.Confirmations.CanConfirm(ctx, o.Owner.UserID); err != nil {
		return nil, err
	}
	for i := range o.Inputs {
		if o.Inputs[i].Err != nil {
			return nil, OfDocumentAt(i, o.Inputs[i].Err)
		}
	}
	fields, err := k.Describe(ctx, o)
	if err != nil {
		return nil, err
	}
	if k.Propose != nil {
		if err := k.Propose(ctx, o); err != nil {
			return nil, err
		}
	}
	op = &Operation{
		Kind: k.Name, Form: o.Form, Owner: o.Owner, Action: fields.Action, State: Created, Async: o.Async,
		Parameters: o.Parameters, Description: o.Description, Documents: o.documents, Callback: o.Callback,
	}
	if op.Parameters == "" {
		op.Parameters = arguments(fields.Arguments)
	}
	row, err := s.waiting(ctx, k, o, op, s.deps.Now().Add(s.settings.Life+contentsMargin))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unnamed(ctx, row.Contents, err))
		}
	}()
	outline, err := json.Marshal(outline{op.Form, op.Async, op.Callback, op.Parameters, op.Description, row.List})
	if err != nil {
		return nil, err
	}
	secret, err := s.secretOf(o)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	contents := row.Bytes
	if row.Bytes = 0; op.StartsAlone() && !k.Handed { // the confirmation counts the bytes
		row.StartAfter = 0
	}
	return op, s.deps.Store.Atomic(ctx, lock.User(o.Owner.UserID), func(ctx context.Context) error {
		c, err := s.deps.Confirmations.Create(ctx, o.Owner, confirm.Draft{Purpose: k.Purpose, Fields: fields, Bytes: o.Bytes + contents, Outline: outline, Life: s.settings.Life})
		if err != nil {
			return err
		}
		op.ID, op.CreatedAt, op.UpdatedAt, op.ConfirmBefore, op.CompleteBefore = c.ID, c.CreatedAt, c.UpdatedAt, c.ConfirmBefore, c.ConfirmBefore
		row.ID, row.CreatedAt, row.UpdatedAt, row.ConfirmBefore, row.CompleteBefore = c.ID, c.CreatedAt, c.UpdatedAt, c.ConfirmBefore, c.ConfirmBefore
		if err := s.add(ctx, row, secret); err != nil {
			return fault.Rollback(err)
		}
		kept, err := o.keep(ctx, op)
		if err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(kept(ctx))
	})
}

// outline is what the record of a confirmation says of its operation when the operation is not stored any
// more.
type outline struct {
	Form        Form            `json:"form"`
	Async       bool            `json:"async,omitempty"`
	Callback    string          `json:"callback,omitempty"`
	Parameters  string          `json:"parameters,omitempty"`
	Description string          `json:"description,omitempty"`
	Documents   json.RawMessage `json:"documents,omitempty"`
}

// enqueue accepts an operation that is carried out later.
func (s *Service) enqueue(ctx context.Context, k *Kind, o *Order, op *Operation) (err error) {
	// Work may begin at the last moment and continues as long as it is leased.
	row, err := s.waiting(ctx, k, o, op, op.CompleteBefore.Add(time.Hour))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unnamed(ctx, row.Contents, err))
		}
	}()
	secret, err := s.secretOf(o)
	if err != nil {
		return err
	}
	defer clear(secret)
	row.DueAt = op.CreatedAt
	kept, err := o.keep(ctx, op) // an answer that lists thousands of documents is stored outside of the transaction
	if err != nil {
		return err
	}
	err = s.deps.Store.Atomic(ctx, lock.Set{}, func(ctx context.Context) error {
		if err := s.add(ctx, row, secret); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(kept(ctx))
	})
	if err == nil {
		poke(s.queued)
	}
	return err
}

// waiting returns the row of an operation that is carried out later. It stores the documents first, so that
// a row never names a missing document.
func (s *Service) waiting(ctx context.Context, k *Kind, o *Order, op *Operation, until time.Time) (row *Stored, err error) {
	contents := &bundle{}
	for i := range o.Inputs {
		if in := o.Inputs[i].Content; in != nil && op.Documents[i].Fault == nil {
			op.Documents[i].in = contents.add(in)
		}
	}
	original := o.Original != nil && o.Original.Size() > 0
	if original {
		contents.add(o.Original)
	}
	if row, err = op.stored(); err != nil {
		return nil, err
	}
	row.Purpose, row.Bytes = k.Purpose, contents.Size()
	plan := Plan{Version: k.Version, Original: original}
	if plan.Of, err = json.Marshal(o.Plan); err != nil {
		return nil, err
	}
	if row.Plan, err = json.Marshal(plan); err != nil {
		return nil, err
	}
	if contents.Size() > 0 {
		row.Contents, err = s.docs.Blobs.KeepBlob(ctx, contents, until)
	}
	return row, err
}

// secretOf returns the secret of an order as text. The caller clears it.
func (s *Service) secretOf(o *Order) ([]byte, error) {
	if o.Secret == nil {
		return nil, nil
	}
	return json.Marshal(o.Secret)
}

// add stores the row of an operation that waits, in the transaction of ctx.
func (s *Service) add(ctx context.Context, row *Stored, secret []byte) (err error) {
	if len(secret) > 0 {
		if row.Secret, err = s.deps.Vault.Seal(secretPlace(row.ID), secret); err != nil {
			return err
		}
	}
	added, err := s.deps.Store.AddOperation(ctx, row, s.settings.Waiting)
	if err == nil && !added {
		err = full()
	}
	return err
}

// full is the fault of an operation that exceeds the quota of its user.
func full() error {
	return fault.New(fault.TooManyRequests, "too many of your operations are waiting, or their documents are too large in total: wait until some of them have ended")
}

// secretPlace is where the sealed secret of an operation is stored.
func secretPlace(id string) vault.Place {
	return vault.Place{Purpose: "operation", Table: "operations", Row: id, Column: "secret"}
}

// answerPlace is where the sealed answer of an operation is stored.
func answerPlace(id string) vault.Place {
	return vault.Place{Purpose: "operation", Table: "operations", Row: id, Column: "answer"}
}

// forget removes a stored document, even if the client is gone. "" is none.
func (s *Service) forget(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	return s.docs.Blobs.RemoveBlob(context.WithoutCancel(ctx), name)
}

// unnamed removes a stored document whose name err kept from being recorded. After an outage
// it may be recorded nevertheless, so the document stays until it expires.
func (s *Service) unnamed(ctx context.Context, name string, err error) error {
	if _, is := fault.AsOutage(err); is {
		return nil
	}
	return s.forget(ctx, name)
}

func (s *Service) leases(life time.Duration) lease.Rules {
	return lease.Rules{Life: life, Now: s.deps.Now, Rand: s.deps.Rand, Failed: s.deps.Failed}
}

// now returns the time with the precision of stores.
func (s *Service) now() time.Time { return s.deps.Now().UTC().Truncate(time.Millisecond) }

// poke wakes the goroutine that waits for c.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
