// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
)

// Run carries out what is due without a request until ctx ends: what was accepted for later, and what is
// confirmed. Any number of processes may run with the same database.
func (s *Service) Run(ctx context.Context) {
	var working sync.WaitGroup
	for i := range s.settings.Workers {
		asked := i == 0 && s.settings.Workers > 1 // so that what is confirmed does not wait behind large orders for later
		working.Go(func() { s.loop(ctx, asked) })
	}
	working.Wait()
}

// loop calls Next until there is nothing to do, and again from time to time.
func (s *Service) loop(ctx context.Context, asked bool) {
	var confirmed <-chan struct{}
	if s.deps.Confirmations != nil {
		confirmed = s.deps.Confirmations.Confirmed()
	}
	queued := s.queued
	if asked {
		queued = nil
	}
	for ctx.Err() == nil {
		worked, err := s.next(ctx, asked)
		if err != nil && ctx.Err() == nil {
			s.deps.Failed(err)
		}
		if worked {
			continue
		}
		timer := time.NewTimer(s.settings.Poll)
		select {
		case <-ctx.Done():
		case <-queued:
		case <-confirmed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Next makes one attempt at the operation that has been due for the longest time. It reports false if
// no operation is due.
func (s *Service) Next(ctx context.Context) (worked bool, err error) { return s.next(ctx, false) }

func (s *Service) next(ctx context.Context, asked bool) (worked bool, err error) {
	rules := s.leases(s.settings.LoopLease)
	l, err := rules.New()
	if err != nil {
		return false, err
	}
	now := s.deps.Now()
	row, found, err := s.deps.Store.ClaimNext(ctx, asked, l, now)
	if err != nil || !found {
		return false, err
	}
	if err := s.knows(row); err != nil {
		return true, errors.Join(err, s.deps.Store.PostponeOperation(ctx, row.ID, l.Token, now.Add(s.settings.Pause), true, nil))
	}
	err = rules.Hold(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.deps.Store.ExtendOperation(ctx, row.ID, l)
	}, func(ctx context.Context) error { return s.execute(ctx, row, l) })
	switch {
	case err == nil, errors.Is(err, lease.ErrLost): // cancelled, or taken over by another process after this one was frozen
		return true, nil
	case ctx.Err() != nil:
		// This process is stopping: another one continues at once.
		return true, s.deps.Store.PostponeOperation(context.WithoutCancel(ctx), row.ID, l.Token, now, true, nil)
	}
	return true, fmt.Errorf("operation: %s, attempt %d: %w", row.ID, row.Attempts, err)
}

// knows reads an operation. The error is for one that a newer release has accepted: it is put off for a
// moment, so that a process of that release finds it.
func (s *Service) knows(row *Stored) error {
	if err := row.read(); err != nil {
		return err
	}
	plan, err := s.planOf(row)
	if err != nil {
		return err
	}
	return plan.known()
}

// passing lists the faults that may be over soon.
var passing = map[string]bool{fault.Unavailable: true, fault.TooManyRequests: true}

// lastCall is how long before its time is over an operation ends that waits for the right
// PIN: its callback needs an end that is stored.
const lastCall = 15 * time.Second

// execute makes one attempt at a leased operation and decides what follows a failure. A fault that may pass
// leaves the operation Confirmed, for another attempt: one that its user has confirmed until its time is over, any
// other for some attempts. A wrong PIN waits for a request with the right one, without another attempt, until lastCall. Any
// other fault ends the operation, and the callback says so. The error is for the operator.
func (s *Service) execute(ctx context.Context, row *Stored, l lease.Lease) error {
	if err := s.writeEntry(ctx, &row.Operation, audit.Attempt, ""); err != nil {
		return s.postpone(ctx, row, l, err)
	}
	ctx = audit.WithHolders(ctx, &audit.Holders{})
	if row.AwaitsPIN != nil { // no request has brought the right PIN
		return s.fail(ctx, row, l, row.AwaitsPIN)
	}
	err := s.attempt(ctx, row, l)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, unknown := fault.AsOutage(err); unknown { // it may have been carried out
		return s.postpone(ctx, row, l, err)
	}
	// An end deletes what the attempt reads, which is no fault of the storage.
	l.Until = s.deps.Now().Add(s.settings.LoopLease)
	if held, e := s.deps.Store.ExtendOperation(ctx, row.ID, l); e == nil && !held {
		return lease.ErrLost
	}
	asked := !row.ConfirmBefore.IsZero()
	f, refused := fault.As(err)
	switch {
	case asked && refused && f.Code == fault.InvalidPIN:
		return errors.Join(s.writeEntry(ctx, &row.Operation, audit.Done, f.Code), s.awaitPIN(ctx, row, l, f))
	case refused && !passing[f.Code]:
		s.report(f)
		return s.fail(ctx, row, l, f)
	case asked && s.deps.Now().Add(s.settings.Pause).Before(row.CompleteBefore):
		if refused { // a service is out of order for a time
			err = nil
		}
		return errors.Join(err, s.deps.Store.PostponeOperation(ctx, row.ID, l.Token, s.deps.Now().Add(s.settings.Pause), false, nil))
	case !asked && row.Attempts < s.settings.Attempts:
		return s.postpone(ctx, row, l, err)
	}
	s.deps.Failed(fmt.Errorf("operation: %s is given up after %d attempts: %w", row.ID, row.Attempts, err))
	return s.fail(ctx, row, l, fault.New(fault.Failed, "the operation could not be carried out"))
}

// awaitPIN puts an operation off until a request brings the right PIN, or until lastCall.
func (s *Service) awaitPIN(ctx context.Context, row *Stored, l lease.Lease, why *fault.Error) error {
	return s.deps.Store.PostponeOperation(ctx, row.ID, l.Token, row.CompleteBefore.Add(-lastCall), false, why)
}

// postpone makes an operation due again after a failed attempt. It returns the failure.
func (s *Service) postpone(ctx context.Context, row *Stored, l lease.Lease, failure error) error {
	return errors.Join(failure, s.deps.Store.PostponeOperation(ctx, row.ID, l.Token, s.deps.Now().Add(s.pause(row.Attempts)), false, nil))
}

// pause returns how long to wait after attempt n.
func (s *Service) pause(n int) time.Duration {
	if shift := n - 1; shift < 20 && s.settings.Pause<<shift < longestPause {
		return s.settings.Pause << shift
	}
	return longestPause
}

// longestPause is the longest pause between two attempts.
const longestPause = 15 * time.Minute

// attempt carries a leased operation out, if its owner may still act.
func (s *Service) attempt(ctx context.Context, row *Stored, l lease.Lease) error {
	r := &Run{service: s, who: row.Owner, row: row, token: l.Token, alone: true, Again: true}
	if !row.ConfirmBefore.IsZero() {
		record, done, err := s.deps.Confirmations.Ready(ctx, row.Owner, row.ID)
		if err != nil || done {
			return errors.Join(err, ifDone(done))
		}
		r.record = &record
	} else {
		if row.Attempts > s.settings.Attempts {
			return fault.New(fault.Failed, "the operation was begun several times and never ended")
		}
		r.Again = row.Attempts < s.settings.Attempts
	}
	if s.docs.Owners != nil {
		if err := s.docs.Owners.MayAct(ctx, row.Owner); err != nil {
			return err
		}
	}
	if err := r.do(ctx, &Claim{}); err != nil {
		row.Note = r.Operation.Note
		return err
	}
	return r.Close()
}

// ifDone is the error of an operation that has ended meanwhile.
func ifDone(done bool) error {
	if done {
		return lease.ErrLost
	}
	return nil
}

// fail ends a leased operation with a fault. No document has a result, even if work on some of them was done.
func (s *Service) fail(ctx context.Context, row *Stored, l lease.Lease, f *fault.Error) error {
	op := row.Operation
	now := s.now()
	op.State, op.Fault, op.UpdatedAt, op.CompletedAt, op.KeepUntil = Error, f, now, now, now.Add(s.settings.Keep)
	for i := range op.Documents {
		d := &op.Documents[i]
		op.Documents[i] = Document{ID: d.ID, OriginalRef: d.OriginalRef, OriginalName: d.OriginalName, Related: d.Related, Declined: d.Declined, Way: d.Way, Fault: f}
	}
	ended, err := op.stored()
	if err != nil {
		return err
	}
	r := &Run{service: s, row: row, token: l.Token}
	end := func(ctx context.Context) error {
		if err := r.store(ctx, ended); err != nil {
			return err
		}
		return s.tell(ctx, &op, op.Owner.UserID, true)
	}
	err = s.deps.Store.Atomic(ctx, lock.Set{}, func(ctx context.Context) error {
		if row.ConfirmBefore.IsZero() {
			return fault.Rollback(end(ctx))
		}
		record, err := s.deps.Confirmations.Find(ctx, op.Owner, op.ID)
		if err != nil {
			return err
		}
		return s.deps.Confirmations.Fail(ctx, op.Owner, &record, f, end)
	})
	if err != nil {
		return err
	}
	return s.forget(ctx, row.Contents)
}
