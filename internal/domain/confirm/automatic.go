// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// An operation with Order.Automatic is queued by the step that confirms it: the queue is the
// confirmed records that have such a mark. So no crash loses one.

// Automatic returns a channel that has a value after this process has confirmed an
// operation that carries itself out. Other processes find it by asking.
func (s *Service) Automatic() <-chan struct{} { return s.started }

// start wakes the goroutine that waits for Automatic.
func (s *Service) start(r *Record) {
	if r.State != Confirmed || !r.Automatic {
		return
	}
	select {
	case s.started <- struct{}{}:
	default:
	}
}

// NextAutomatic returns a confirmed operation that carries itself out and is due, and makes
// it due again after a time, in case that this process dies. The caller carries it out as a
// request would, by CarryOut.
func (s *Service) NextAutomatic(ctx context.Context, again time.Duration) (Record, bool, error) {
	now := s.now()
	return s.deps.Executions.ClaimAutomatic(ctx, now, now.Add(again))
}

// Postpone makes an operation that carries itself out due at a time. It stays Confirmed.
// why is stored as its Code and Message, for the caller to find them then; nil: none.
func (s *Service) Postpone(ctx context.Context, id string, at time.Time, why *fault.Error) error {
	if why == nil {
		why = &fault.Error{}
	}
	return s.deps.Executions.PostponeAutomatic(ctx, id, at, why.Code, why.Message)
}

// Fail ends a confirmed operation of who with a fault that will not pass, in one transaction
// with beside. Faults are those of Take.
func (s *Service) Fail(ctx context.Context, who audit.Principal, id string, f *fault.Error, beside func(ctx context.Context) error) error {
	r, err := s.Find(ctx, who, id)
	if err != nil {
		return err
	}
	e, err := s.Take(ctx, who, id, r.What)
	if err != nil {
		return err
	}
	if err := e.Fail(ctx, f, beside); err != nil {
		return errors.Join(err, e.Release(ctx))
	}
	return nil
}
