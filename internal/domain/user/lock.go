// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// MaxLockDelay is the longest delay of a lock.
const MaxLockDelay = 10 * 366 * 24 * time.Hour

// LockOrder locks or unlocks an account.
type LockOrder struct {
	Lock     bool
	UseDelay bool  // lock after Delay
	Delay    int64 // in units of Service.LockDelayUnit
}

// SetLocked locks an account at once or unlocks it. A lock ends all tokens and replaces a
// delayed lock. Unlocking also lifts the automatic locks for wrong
// passwords and codes. The fault is
// user_not_found.
func (s *Service) SetLocked(ctx context.Context, who audit.Principal, userID string, lock bool) error {
	return s.SetLockedEx(ctx, who, userID, LockOrder{Lock: lock})
}

// SetLockedEx is SetLocked with an optional delay. The time of the lock is stored and
// compared with the clock at every check, so the lock is exact to the second and survives
// a restart. An account that is locked already stays locked. Unlocking cancels a delayed
// lock and ignores the delay. Faults: user_not_found, invalid_parameters for a delay
// below zero or beyond MaxLockDelay.
func (s *Service) SetLockedEx(ctx context.Context, who audit.Principal, userID string, o LockOrder) error {
	unit := s.LockDelayUnit
	if unit == 0 {
		unit = time.Second
	}
	if !o.Lock || !o.UseDelay {
		o.Delay = 0
	}
	if o.Delay < 0 || o.Delay > int64(MaxLockDelay/unit) {
		return fault.Newf(fault.InvalidParameters, "LockoutDelay: want 0 to %d", int64(MaxLockDelay/unit))
	}
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		if !o.Lock {
			return s.unlock(ctx, who, userID)
		}
		return s.lock(ctx, who, userID, time.Duration(o.Delay)*unit)
	})
}

// lock locks a user after a delay; 0 means now.
func (s *Service) lock(ctx context.Context, who audit.Principal, userID string, delay time.Duration) error {
	u, err := s.Store.UserByID(ctx, userID)
	if err != nil {
		return notFound(err)
	}
	now := s.now()
	locked := u.Locked || !u.LockAt.IsZero() && !now.Before(u.LockAt)
	if delay > 0 && !locked {
		return s.Store.SetLock(ctx, userID, false, now.Add(delay))
	}
	at := now
	if locked {
		at = u.LockAt // start of the lock
	}
	if err := s.Store.SetLock(ctx, userID, true, at); err != nil {
		return err
	}
	return s.end(ctx, who, userID, "the account was locked")
}

// end ends all tokens of a user and cancels all open confirmations.
func (s *Service) end(ctx context.Context, who audit.Principal, userID, reason string) error {
	if err := s.Sessions.EndAll(ctx, userID); err != nil {
		return err
	}
	return s.Confirmations.CancelAll(ctx, who, userID, reason)
}

// unlock lifts the lock of a user. It ends tokens too: those from before a delayed lock
// were not ended when it came due.
func (s *Service) unlock(ctx context.Context, who audit.Principal, userID string) error {
	u, err := s.Store.UserByID(ctx, userID)
	if err != nil {
		return notFound(err)
	}
	if u.Barred(s.now()) {
		if err := s.end(ctx, who, userID, "the account was locked"); err != nil {
			return err
		}
	}
	if err := s.Store.SetLock(ctx, userID, false, time.Time{}); err != nil {
		return notFound(err)
	}
	if err := s.Sessions.Forgive(ctx, userID); err != nil {
		return err
	}
	return s.Confirmations.Forgive(ctx, userID)
}

// Approve sets or removes the approval of a user. A user without approval has no valid
// token and gets none. The fault is user_not_found.
func (s *Service) Approve(ctx context.Context, who audit.Principal, userID string, approved bool) error {
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		if err := s.Store.SetUnapproved(ctx, userID, !approved); err != nil {
			return err
		}
		// For both: an approval must not revive tokens that ended with its loss.
		return s.end(ctx, who, userID, "the approval of the account was changed")
	})
}
