package oath

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath/otp"
)

// Every path on which a code of a token is looked at goes through tryCode, and so shares
// the token's budget of wrong codes: the operator's assignment and synchronisation, and
// the second step of signing in.

// codes are what somebody presents: one code, or two in a row.
type codes struct{ first, second string }

// passed is a code that was right when it was looked at. It counts only once the
// watermark is moved to its step.
type passed struct {
	row    Record
	record *sealedToken // with the new watermark and drift; wiped by the caller
}

// errCode is the answer to whatever is wrong with a code.
func errCode() *fault.Error {
	return fault.New(fault.InvalidCode, "the code is wrong, was used before, or its time is over; where the token's clock or counter may have run away give two codes in a row")
}

// tryCode counts an attempt at a token, durably, and then judges the codes. Faults:
// invalid_confirmation_code, max_attempts_exceeded while the token is locked,
// wrong_operation after the end of its use.
func (s *Service) tryCode(ctx context.Context, key string, c codes) (*passed, error) {
	now := s.now()
	o := s.settings
	row, counted, err := s.store.BeginOathAttempt(ctx, key, now, Lock{o.Attempts, o.LockOut, o.MaxAttempts})
	if err != nil {
		return nil, err
	}
	if !counted {
		return nil, fault.New(fault.MaxAttempts, "too many wrong codes of this token: wait, or have it unlocked or another one assigned")
	}
	record, err := s.openToken(row)
	if err != nil {
		return nil, err
	}
	step, ok, err := s.match(record, c, now)
	switch {
	case err != nil:
	case !ok:
		err = errCode()
	case !record.valid(now):
		err = fault.New(fault.WrongOperation, "the token has expired or may not be used yet: assign another one")
	}
	if err != nil {
		record.wipe()
		return nil, err
	}
	record.Watermark = step
	if record.Type == TOTP {
		record.Drift = step - otp.Step(now, record.period())
	}
	return &passed{row, record}, nil
}

// match finds the step of a code, or of the second of two, above the watermark.
func (s *Service) match(t *sealedToken, c codes, now time.Time) (step int64, ok bool, err error) {
	k, err := otp.New(t.Algorithm, t.Digits, t.Secret)
	if err != nil || t.Type == TOTP && t.Period <= 0 {
		return 0, false, errors.New("auth: token: its record is of no token that this program knows")
	}
	o := s.settings
	from, to := t.Watermark+1, t.Watermark+o.LookAhead
	if c.second != "" {
		to = t.Watermark + o.SyncLookAhead
	}
	if t.Type == TOTP {
		// What a clock is known to be wrong by is expected of it; where two codes are
		// given it may as well have been our clock that was wrong.
		here := otp.Step(now, t.period())
		from, to = here+t.Drift-o.Window, here+t.Drift+o.Window
		if c.second != "" {
			from, to = here+min(t.Drift, 0)-o.SyncWindow, here+max(t.Drift, 0)+o.SyncWindow
		}
		from = max(from, t.Watermark+1)
	}
	if c.second != "" {
		step, ok = k.MatchPair(c.first, c.second, from, to)
	} else {
		step, ok = k.Match(c.first, from, to)
	}
	return step, ok, nil
}

// accept spends the step for a user. The fault is invalid_confirmation_code where
// somebody else was faster, or the token has changed meanwhile.
func (s *Service) accept(ctx context.Context, p *passed, userID string, assignedAt time.Time) error {
	p.record.UserID = userID
	after, err := s.sealToken(p.row.Key, p.record)
	if err != nil {
		return err
	}
	accepted, err := s.store.AcceptOathStep(ctx, Acceptance{
		Key: p.row.Key, UserID: userID, Step: p.record.Watermark, Before: p.row.Sealed, After: after, AssignedAt: assignedAt,
	})
	if err == nil && !accepted {
		err = errCode()
	}
	return err
}

// CheckOneTimePassword accepts a code of the user's token once: of any number of calls
// with one code one returns nil. The attempt counts even if the caller then fails, and
// only a code that is accepted makes earlier ones forgotten. Faults:
// invalid_confirmation_code, for a user without a token too, max_attempts_exceeded,
// wrong_operation after the end of the token's use.
func (s *Service) CheckOneTimePassword(ctx context.Context, userID, code string) error {
	row, found, err := s.store.OathTokenOf(ctx, userID)
	if err != nil {
		return err
	}
	if !found {
		return errCode().With(errors.New("auth: the user has no token"))
	}
	p, err := s.tryCode(ctx, row.Key, codes{first: code})
	if err != nil {
		return err
	}
	defer p.record.wipe()
	if p.row.UserID != userID {
		return errCode().With(errors.New("auth: the token was taken from the user meanwhile"))
	}
	return s.accept(ctx, p, userID, p.row.AssignedAt)
}
