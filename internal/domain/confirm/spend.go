// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"crypto/subtle"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

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
	return fault.New(fault.InvalidOperation, "the access token belongs to an operation of another route: send it to the route that ordered the operation")
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

// Spend completes a confirmed record of who, in one transaction with change, which stores what belongs to it,
// such as a token. sum is the digest that the caller made from what it is about to do; it must be that of the
// record. It reports false, and changes nothing, if the record was completed before: by another call at
// the same time, too, or by this one if the answer to its commit was lost. An error of change rolls all
// back, and the record stays Confirmed. change may run several times.
//
// Spend commits, so it must not be called inside of a transaction. Nothing may leave the service before it
// returns true.
//
// Faults: those of Ready, also for a record that ends meanwhile; invalid_transaction for a record about
// something else than sum.
func (s *Service) Spend(ctx context.Context, who audit.Principal, id string, sum what.Digest, locked lock.Set, change func(ctx context.Context, r *Record) error) (spent bool, err error) {
	r, done, err := s.Ready(ctx, who, id)
	switch {
	case err != nil:
		return false, err
	case subtle.ConstantTimeCompare(sum[:], r.What[:]) != 1:
		return false, fault.New(fault.InvalidTransaction, "the documents, the parameters or the certificate differ from what was confirmed")
	case done:
		return false, nil
	}
	err = s.deps.Store.Atomic(ctx, locked, func(ctx context.Context) error {
		// The wait for locks may have been long, and no lease keeps the record from expiring.
		return s.over(ctx, who, &r, StepComplete, Move{Live: true}, func(ctx context.Context) error { return change(ctx, &r) })
	})
	if err != nil {
		if _, done, e := s.Ready(ctx, who, id); e == nil && done {
			return false, nil
		}
	}
	return err == nil, err
}
