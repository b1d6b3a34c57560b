package user

import (
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// MaxLockDelay is the longest a lock may be put off.
const MaxLockDelay = 10 * 366 * 24 * time.Hour

// LockOrder says how an account is locked or unlocked.
type LockOrder struct {
	Lock     bool
	UseDelay bool  // lock later: Delay counts
	Delay    int64 // in units of Service.LockDelayUnit
}

// SetLocked locks an account at once or unlocks it. A lock ends every token; it
// also takes the place of a lock that was to come. Unlocking lifts the automatic
// lock for wrong passwords as well. The fault is user_not_found.
func (s *Service) SetLocked(ctx context.Context, who audit.Principal, userID string, lock bool) error {
	return s.SetLockedEx(ctx, who, userID, LockOrder{Lock: lock})
}

// SetLockedEx is SetLocked, with a delay where one is asked for: the time a lock
// comes due is stored and compared with the clock at every check, so it comes to
// the second and survives a restart. An account that is locked already stays so.
// Unlocking cancels a lock to come; a delay means nothing to it. Faults:
// user_not_found, invalid_parameters for a delay below zero or beyond MaxLockDelay.
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
			return s.unlock(ctx, userID)
		}
		return s.lock(ctx, userID, time.Duration(o.Delay)*unit)
	})
}

// lock locks a user after a delay; with none at once.
func (s *Service) lock(ctx context.Context, userID string, delay time.Duration) error {
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
		at = u.LockAt // since when it is
	}
	if err := s.Store.SetLock(ctx, userID, true, at); err != nil {
		return err
	}
	return s.Sessions.EndAll(ctx, userID)
}

// unlock lets a user in again. Tokens end here, too: those from before a lock that
// came due by itself are out still.
func (s *Service) unlock(ctx context.Context, userID string) error {
	u, err := s.Store.UserByID(ctx, userID)
	if err != nil {
		return notFound(err)
	}
	if u.Barred(s.now()) {
		if err := s.Sessions.EndAll(ctx, userID); err != nil {
			return err
		}
	}
	if err := s.Store.SetLock(ctx, userID, false, time.Time{}); err != nil {
		return notFound(err)
	}
	return s.Sessions.Forgive(ctx, userID)
}

// Approve lets a user in, or out until approved. Who is not approved has no valid
// token and gets none. The fault is user_not_found.
func (s *Service) Approve(ctx context.Context, who audit.Principal, userID string, approved bool) error {
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		if err := s.Store.SetUnapproved(ctx, userID, !approved); err != nil {
			return err
		}
		// Both ways: approval must not revive what ended with its loss.
		return s.Sessions.EndAll(ctx, userID)
	})
}
