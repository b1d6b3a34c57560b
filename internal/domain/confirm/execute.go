// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
)

// Execution is the lease of a confirmed record by the caller that carries it out. Only its
// holder can spend the record. The lease ends by itself after Settings.Lease.
type Execution struct {
	Record  Record
	Content Content
	// Done means that the record was carried out before. Content.Result has the result, and
	// there is no lease.
	Done bool

	s     *Service
	who   audit.Principal
	lease lease.Lease
}

// Take leases a confirmed record of who to carry it out, until Record.CompleteBefore. sum is
// the digest that the caller made from what it is about to do; it must be that of the
// record. If the record was carried out before, the execution is Done, so that a client
// which did not get the answer can fetch it.
//
// A caller that fails for a reason that may pass, such as a wrong PIN or an outage, calls
// Release. The record stays Confirmed.
//
// Faults besides those of Service: invalid_transaction for a record that is not confirmed,
// of another client, or about something else than sum; temporarily_unavailable while
// another request carries it out.
func (s *Service) Take(ctx context.Context, who audit.Principal, id string, sum what.Digest) (*Execution, error) {
	r, done, err := s.Ready(ctx, who, id)
	switch {
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare(sum[:], r.What[:]) != 1:
		return nil, fault.New(fault.InvalidTransaction, "the documents, the parameters or the certificate differ from what was confirmed")
	case done:
		content, err := s.content(ctx, &r)
		return &Execution{Record: r, Content: content, Done: true, s: s, who: who}, err
	}
	now := s.now()
	e := &Execution{Record: r, s: s, who: who}
	if e.lease, err = s.leases().New(); err != nil {
		return nil, err
	}
	leased, err := s.deps.Executions.LeaseConfirmation(ctx, r.ID, e.lease.Token, now, e.lease.Until)
	if err != nil {
		return nil, err
	}
	if !leased {
		return nil, s.taken(ctx, r.ID, now)
	}
	if e.Content, err = s.content(ctx, &r); err != nil {
		return nil, errors.Join(err, e.Release(ctx))
	}
	return e, nil
}

// Ready returns a record of who that may be carried out, until Record.CompleteBefore. done means that it
// was carried out before, so that a client which did not get the answer can fetch it.
//
// Faults besides those of Service: invalid_transaction for a record that is not confirmed, and for one of
// another client.
func (s *Service) Ready(ctx context.Context, who audit.Principal, id string) (r Record, done bool, err error) {
	if r, err = s.Find(ctx, who, id); err != nil {
		return r, false, err
	}
	now := s.now()
	switch {
	case who.ClientID != r.ClientID:
		return r, false, fault.New(fault.InvalidTransaction, "another client began the operation: it must be carried out by the same client")
	case r.State == Completed && now.Before(r.CompleteBefore):
		return r, true, nil
	}
	if err := r.ended(now); err != nil {
		return r, false, err
	}
	if r.State != Confirmed {
		return r, false, fault.New(fault.InvalidTransaction, "the operation is not confirmed yet")
	}
	return r, false, nil
}

// Complete ends a confirmed record of who as Completed, in the transaction of ctx. proof is the evidence of
// what was done; nil: none. change makes what belongs to it, before the events are sent. A record that is not
// confirmed any more gives the fault of its present state. All errors roll the transaction back.
func (s *Service) Complete(ctx context.Context, who audit.Principal, r *Record, proof []byte, change func(ctx context.Context) error) error {
	return s.over(ctx, who, r, StepComplete, Move{Proof: proof}, change)
}

// Fail is Complete for what can never be carried out. The record ends as Error.
func (s *Service) Fail(ctx context.Context, who audit.Principal, r *Record, f *fault.Error, change func(ctx context.Context) error) error {
	return s.over(ctx, who, r, StepFail, Move{Code: f.Code, Message: f.Message}, change)
}

func (s *Service) over(ctx context.Context, who audit.Principal, r *Record, step Step, m Move, change func(ctx context.Context) error) error {
	m.At = s.now()
	m.From, m.To = leads(step)
	after, moved, err := s.deps.Store.MoveConfirmation(ctx, r.ID, m)
	if err == nil && !moved {
		err = s.refused(ctx, r.ID, m.At)
	}
	if err == nil {
		err = change(ctx)
	}
	if err != nil {
		return fault.Rollback(err)
	}
	return s.note(ctx, who, &after, "")
}

// OtherOperation is the fault of a request that does not carry out the operation of its
// token.
func OtherOperation() error {
	return fault.New(fault.InvalidOperation, "the access token is that of an operation which is carried out by another request")
}

// Confirmed returns a channel that has a value after this process has confirmed a record. Other
// processes learn of it by asking the database.
func (s *Service) Confirmed() <-chan struct{} { return s.confirmed }

// confirms wakes the goroutine that waits for Confirmed.
func (s *Service) confirms(r *Record) {
	if r.State != Confirmed {
		return
	}
	select {
	case s.confirmed <- struct{}{}:
	default:
	}
}

// leases are the leases of executions.
func (s *Service) leases() lease.Rules {
	return lease.Rules{Life: s.settings.Lease, Now: s.now, Rand: s.deps.Rand}
}

// taken returns the fault of a record that could not be leased.
func (s *Service) taken(ctx context.Context, id string, now time.Time) error {
	r, found, err := s.deps.Store.Confirmation(ctx, id)
	switch {
	case err != nil:
		return err
	case !found:
		return missing()
	case r.State == Confirmed && !r.overdue(now):
		return fault.New(fault.Unavailable, "another request carries the operation out: repeat the request").Until(time.Second)
	case r.State == Completed:
		return fault.New(fault.Unavailable, "another request has carried the operation out: repeat the request to get its result").Until(time.Second)
	}
	return s.refused(ctx, id, now)
}

// Release ends the lease. A record that was not spent stays Confirmed.
// The stored state decides, so Release may follow every failure, also one whose commit is
// unknown. The end of the request does not stop it.
func (e *Execution) Release(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	return e.s.deps.Executions.ReleaseConfirmation(ctx, e.Record.ID, e.lease.Token)
}

// Spend ends the record as Completed and stores its result, in one transaction with beside,
// which stores what belongs to it: the outcome of an operation, or a token. Nothing may
// leave the service before Spend returns nil. The fault is that of the present state when
// the lease was lost: the result is then of no use.
//
// Spend commits. It must not be called inside a transaction, where its changes could still be
// rolled back: SpendWith is for that.
func (e *Execution) Spend(ctx context.Context, result []byte, beside func(ctx context.Context) error) error {
	return e.end(ctx, alone, func(ctx context.Context) ([]byte, error) {
		if beside == nil {
			return result, nil
		}
		return result, beside(ctx)
	})
}

// SpendWith is Spend for an operation that is carried out in a transaction of the caller: do
// carries it out and returns the result. atomic runs a function in one transaction, maybe
// several times, and returns nil only if it has committed. An error of do rolls the
// transaction back. The execution is Done after the commit.
func (e *Execution) SpendWith(ctx context.Context, atomic func(ctx context.Context, fn func(ctx context.Context) error) error, do func(ctx context.Context) ([]byte, error)) error {
	return e.end(ctx, atomic, do)
}

// alone leaves the transaction to the store.
func alone(ctx context.Context, fn func(ctx context.Context) error) error { return fn(ctx) }

func (e *Execution) end(ctx context.Context, atomic func(context.Context, func(context.Context) error) error, do func(ctx context.Context) ([]byte, error)) error {
	s := e.s
	if err := s.deps.Executions.Outside(ctx); err != nil {
		return err
	}
	var after Record
	var result []byte
	spent := false
	err := atomic(ctx, func(ctx context.Context) (err error) {
		now := s.now()
		m := Move{At: now}
		m.From, m.To = leads(StepComplete)
		after = e.Record
		after.State, after.UpdatedAt, after.EndedAt = m.To, now, now
		after.Code, after.Message = "", ""
		spent, err = s.deps.Executions.SpendConfirmation(ctx, e.Record.ID, e.lease.Token, m, func(ctx context.Context) ([]byte, error) {
			if err := s.note(ctx, e.who, &after, ""); err != nil {
				return nil, err
			}
			result, err = do(ctx)
			return result, err
		})
		return err
	})
	if err == nil && !spent {
		return s.refused(ctx, e.Record.ID, s.now())
	}
	if err == nil {
		e.Record, e.Content.Result, e.Done = after, result, true
	}
	return err
}
