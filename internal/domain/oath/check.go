// SPDX-License-Identifier: Apache-2.0

package oath

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath/otp"
	"tamga/internal/domain/vault"
)

// All checks of codes go through tryCode and share the token's budget of wrong codes:
// assignment and synchronization by an operator, and the second step of signing in.

// codes are the codes of a request: one, or two in a row.
type codes struct{ first, second string }

// passed is a correct code that is not accepted yet: accept must move the watermark to its
// step.
type passed struct {
	row    Record
	record *sealedToken // with the new watermark and drift; wiped by the caller
}

// errCode returns the fault for a code that is wrong for any reason.
func errCode() *fault.Error {
	return fault.New(fault.InvalidCode, "the code is wrong, was used before, or its time is over; where the token's clock or counter may have run away give two codes in a row")
}

// errPair returns the fault for two codes of which one is wrong for any reason.
func errPair() *fault.Error {
	return fault.New(fault.InvalidCode, "the two codes do not follow each other on this token, were used before, or are too far from what it is expected to show; give two new codes in a row")
}

// tryCode counts an attempt durably and then checks the codes. Faults:
// invalid_confirmation_code, max_attempts_exceeded while the token is locked,
// wrong_operation for a token that has expired or is not valid yet, and for one code of a token
// whose counter was moved back.
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
	if row.Behind && c.second == "" {
		return nil, fault.New(fault.WrongOperation, "the counter of the token was moved back when the service was restored from a backup: an operator must synchronize the token with two codes in a row")
	}
	record, err := s.openToken(row)
	if err != nil {
		return nil, err
	}
	step, ok, err := s.match(record, c, now)
	switch {
	case err != nil:
	case !ok && c.second != "":
		err = errPair()
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

// match returns the step, above the watermark, of the code or of the second of two codes.
func (s *Service) match(t *sealedToken, c codes, now time.Time) (step int64, ok bool, err error) {
	k, err := otp.New(t.Algorithm, t.Digits, t.Secret)
	if err != nil || t.Type == TOTP && t.Period <= 0 {
		return 0, false, errors.New("oath: the sealed record of the token has invalid parameters")
	}
	o := s.settings
	from, to := t.Watermark+1, t.Watermark+o.LookAhead
	if c.second != "" {
		to = t.Watermark + o.SyncLookAhead
	}
	if t.Type == TOTP {
		// Expect the known drift of the token's clock. With two codes also search without
		// the drift: it may be wrong, because our clock was wrong when it was measured.
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

// accept uses up the step for a user. The fault is invalid_confirmation_code if another
// call was faster or the token has changed meanwhile.
func (s *Service) accept(ctx context.Context, p *passed, userID string, assignedAt time.Time) error {
	p.record.UserID = userID
	after, err := s.sealToken(p.row.Key, p.record)
	if err != nil {
		return err
	}
	step := Acceptance{
		Key: p.row.Key, UserID: userID, Step: p.record.Watermark, Before: p.row.Sealed, After: after, AssignedAt: assignedAt,
	}
	accepted, err := s.store.AcceptOathStep(ctx, step)
	if err != nil || accepted {
		return err
	}
	// The record may have moved to another master key since it was read. Nothing else of the
	// token has changed then.
	now, found, err := s.store.OathToken(ctx, p.row.Key)
	if err != nil {
		return err
	}
	before, _ := vault.KeyID(p.row.Sealed)
	moved, _ := vault.KeyID(now.Sealed)
	if !found || moved == before || now.UserID != p.row.UserID || now.Watermark != p.row.Watermark {
		return errCode()
	}
	step.Before = now.Sealed
	accepted, err = s.store.AcceptOathStep(ctx, step)
	if err == nil && !accepted {
		err = errCode()
	}
	return err
}

// CheckOneTimePassword accepts a code of the user's token once: of all calls with the same
// code, one returns nil. The attempt counts even if the caller then fails. Only an accepted
// code resets the count. Faults: invalid_confirmation_code, also for a user without a
// token; max_attempts_exceeded; wrong_operation for a token that has expired or is not
// valid yet.
func (s *Service) CheckOneTimePassword(ctx context.Context, userID, code string) error {
	row, found, err := s.store.OathTokenOf(ctx, userID)
	if err != nil {
		return err
	}
	if !found {
		return errCode().With(errors.New("oath: the user has no token"))
	}
	p, err := s.tryCode(ctx, row.Key, codes{first: code})
	if err != nil {
		return err
	}
	defer p.record.wipe()
	if p.row.UserID != userID {
		return errCode().With(errors.New("oath: the token was removed from the user meanwhile"))
	}
	return s.accept(ctx, p, userID, p.row.AssignedAt)
}
