// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// portions of records that one transaction ends.
const (
	expirePortion = 20
	cancelPortion = 100
)

// Cancel ends an open record of who. Cancelling it again changes nothing. What
// carries it out meanwhile cannot end it any more, so its result is dropped. The fault is that of the
// state of a record that has ended otherwise.
func (s *Service) Cancel(ctx context.Context, who audit.Principal, id string) (Record, error) {
	r, err := s.Find(ctx, who, id)
	if err != nil || r.State == Cancelled {
		return r, err
	}
	if err := r.ended(s.now()); err != nil {
		return Record{}, err
	}
	err = s.deps.Store.Atomic(ctx, lock.User(r.UserID), func(ctx context.Context) error {
		return s.move(ctx, who, &r, StepCancel, Move{
			At: s.now(), Live: true, Code: fault.InvalidTransaction, Message: "the operation was cancelled",
		}, "")
	})
	return r, err
}

// Decline ends a record of who that waits for its user, on the word of the user. Declining
// it again changes nothing. The fault is that of the state of a record that has ended
// otherwise; invalid_transaction for one that is confirmed.
func (s *Service) Decline(ctx context.Context, who audit.Principal, id string) (Record, error) {
	r, err := s.Find(ctx, who, id)
	if err != nil || r.State == Declined {
		return r, err
	}
	if err := r.ended(s.now()); err != nil {
		return Record{}, err
	}
	err = s.deps.Store.Atomic(ctx, lock.User(r.UserID), func(ctx context.Context) error {
		return s.move(ctx, who, &r, StepDecline, Move{
			At: s.now(), Live: true, Code: fault.AuthenticationDeclined, Message: "the user declined the operation",
		}, "")
	})
	return r, err
}

// expire ends records of a user, or of all, whose time is over, and returns their number.
// It joins the transaction of ctx.
func (s *Service) expire(ctx context.Context, userID string, now time.Time, limit int) (int, error) {
	from, to := leads(StepExpire)
	list, err := s.deps.Store.MoveConfirmations(ctx, userID, now, Move{
		From: from, To: to, At: now, Code: fault.TransactionExpired, Message: "the operation was not confirmed and carried out in time",
	}, limit)
	if err != nil {
		return 0, err
	}
	return len(list), s.noteAll(ctx, audit.Principal{}, list)
}

// Sweep ends records whose time is over, and deletes old records and counts. The server
// calls it from time to time.
func (s *Service) Sweep(ctx context.Context) error {
	for n := expirePortion; n == expirePortion; {
		err := s.deps.Store.Atomic(ctx, lock.Set{}, func(ctx context.Context) (err error) {
			n, err = s.expire(ctx, "", s.now(), expirePortion)
			return err
		})
		if err != nil {
			return err
		}
	}
	now := s.now()
	if s.settings.Keep > 0 {
		if err := s.deps.Store.SweepConfirmations(ctx, now.Add(-s.settings.Keep)); err != nil {
			return err
		}
	}
	return s.deps.Answers.SweepAnswers(ctx, now.Add(-s.settings.Wrong.Window), now)
}
