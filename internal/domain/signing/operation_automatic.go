// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
)

// retake is the time after which a confirmed asynchronous operation is tried again if the
// process that carries it out has died.
const retake = time.Minute

// lastCall is how long before its time is over an operation ends that waits for the right
// PIN: its callback needs an end that is stored.
const lastCall = 15 * time.Second

// CarryOutNext makes one attempt at an asynchronous operation that its user has confirmed.
// It reports false if none is due. A fault that may pass leaves the operation confirmed,
// for another attempt. A wrong PIN waits for a request with the right one, without another
// attempt, until lastCall. Any other fault ends the operation, and the callback says so.
func (s *Operations) CarryOutNext(ctx context.Context) (worked bool, err error) {
	records := s.Confirming.Records
	r, found, err := records.NextAutomatic(ctx, retake)
	if err != nil || !found {
		return false, err
	}
	now := s.Signer.Now()
	op, p, err := s.automatic(ctx, &r)
	if err == nil && p == nil {
		return true, nil // a request has carried it out just now
	}
	if err != nil {
		return true, fmt.Errorf("signing: operation %s: %w", r.ID, err)
	}
	if err := s.writeEntry(ctx, op, audit.Attempt, ""); err != nil {
		return true, err
	}
	if r.Code != "" { // no request has brought the right PIN
		return true, s.failAutomatic(ctx, op, p, fault.New(r.Code, r.Message))
	}
	err = s.tryAutomatic(ctx, op, p)
	f, refused := fault.As(err)
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil: // this process is stopping: another one continues at once
		return true, records.Postpone(context.WithoutCancel(ctx), r.ID, now, nil)
	case refused && f.Code == fault.InvalidPIN:
		return true, errors.Join(s.writeEntry(ctx, op, audit.Done, f.Code), records.Postpone(ctx, r.ID, r.CompleteBefore.Add(-lastCall), f))
	case refused && f.Code == fault.InvalidTransaction: // it was cancelled, or a request was faster
		return true, s.writeEntry(ctx, op, audit.Done, f.Code)
	case refused && !passing[f.Code]:
		return true, s.failAutomatic(ctx, op, p, f)
	}
	again := s.Signer.Now().Add(s.Settings.Pause)
	if again.Before(r.CompleteBefore) {
		if refused { // a service is out of order for a time
			err = nil
		}
		return true, errors.Join(err, records.Postpone(ctx, r.ID, again, nil))
	}
	return true, errors.Join(err, s.failAutomatic(ctx, op, p, fault.New(fault.Failed, "the operation could not be carried out")))
}

// automatic returns the operation of a record that carries itself out, with its plan. The
// plan is nil if the record has ended.
func (s *Operations) automatic(ctx context.Context, r *confirm.Record) (*Operation, *confirmPlan, error) {
	c, err := s.Confirming.Records.Content(ctx, audit.Principal{UserID: r.UserID}, r.ID)
	if err != nil {
		return nil, nil, err
	}
	if len(c.Plan) == 0 {
		return nil, nil, nil
	}
	p, err := readConfirmPlan(c.Plan)
	if err != nil {
		return nil, nil, err
	}
	if p.Owner == nil {
		return nil, nil, errors.New("the plan has no owner")
	}
	op, err := proposed(*p.Owner, r, c, p)
	return op, p, err
}

// tryAutomatic checks the rights of the owner now and carries the operation out.
func (s *Operations) tryAutomatic(ctx context.Context, op *Operation, p *confirmPlan) error {
	if s.OwnerCheck != nil {
		if err := s.OwnerCheck.MayAct(ctx, op.Owner); err != nil {
			return err
		}
	}
	done, err := s.Confirmed(ctx, op.Owner, &ConfirmedOrder{ID: op.ID, Form: p.Form, Keep: func(_ context.Context, made *Operation) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return s.writeEntry(ctx, made, audit.Done, audit.OK) }, nil
	}})
	if err != nil {
		return err
	}
	if done.State == StateConfirmed { // as for a request, which gets no fault
		return errors.Join(fault.New(fault.Unavailable, "the operation could not be carried out yet"), done.Close())
	}
	return done.Close()
}

// failAutomatic ends an operation with a fault. No document has a result.
func (s *Operations) failAutomatic(ctx context.Context, op *Operation, p *confirmPlan, f *fault.Error) error {
	now := s.Signer.Now()
	op.State, op.Fault, op.UpdatedAt, op.CompletedAt = StateError, f, now, now
	for i := range op.Documents {
		op.Documents[i].Fault = f
	}
	record, err := newRecord(op)
	if err != nil {
		return err
	}
	record.KeepUntil = now.Add(s.Settings.Keep)
	err = s.Confirming.Records.Fail(ctx, op.Owner, op.ID, f, func(ctx context.Context) error {
		if err := s.addEnded(ctx, record); err != nil {
			return err
		}
		return s.writeEntry(ctx, op, audit.Done, f.Code)
	})
	if err != nil {
		return err
	}
	return s.forget(ctx, p.Contents)
}
