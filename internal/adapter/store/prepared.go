// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
)

// Prepared implements signing.PreparedStore.
type Prepared struct{ *DB }

var _ signing.PreparedStore = Prepared{}

// errFull rolls back an object that exceeds a quota.
var errFull = errors.New("store: a quota of prepared objects is used up")

// allCallers is the row of prepared_usage that counts all callers.
const allCallers = ""

// AddPrepared implements signing.PreparedStore. Every change of the usage begins with the
// row of all callers, so that transactions lock rows in the same order.
func (s Prepared) AddPrepared(ctx context.Context, p *signing.PreparedRecord, all, caller signing.Quota) (bool, error) {
	if p.Caller == allCallers {
		return false, errors.New("store: a prepared object without a caller")
	}
	err := s.Unit(ctx, func(ctx context.Context) error {
		for _, u := range []struct {
			caller string
			quota  signing.Quota
		}{{allCallers, all}, {p.Caller, caller}} {
			if u.quota.Objects < 1 || p.Bytes > u.quota.Bytes {
				return errFull
			}
			n, err := s.exec(ctx, `INSERT INTO prepared_usage AS u (caller, objects, octets) VALUES ($1, 1, $2)
				ON CONFLICT (caller) DO UPDATE SET objects = u.objects + 1, octets = u.octets + excluded.octets
				WHERE u.objects < $3 AND u.octets + excluded.octets <= $4`,
				u.caller, p.Bytes, u.quota.Objects, u.quota.Bytes)
			if err != nil {
				return err
			}
			if n == 0 {
				return errFull
			}
		}
		_, err := s.exec(ctx, `INSERT INTO prepared (id, caller, type, job, document, original, octets,
			created_at, expires_at, failures, lease, leased_until, spent_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '', 0, $11)`,
			p.ID, p.Caller, p.Type, p.Job, p.Document, p.Original, p.Bytes,
			millis(p.CreatedAt), millis(p.ExpiresAt), p.Failures, millis(p.SpentAt))
		return err
	})
	if errors.Is(err, errFull) {
		return false, nil
	}
	return err == nil, err
}

// giveBack subtracts objects from the usage of a caller and of all.
func (s Prepared) giveBack(ctx context.Context, caller string, objects, size int64) error {
	for _, c := range []string{allCallers, caller} {
		if _, err := s.exec(ctx, "UPDATE prepared_usage SET objects = objects - $2, octets = octets - $3 WHERE caller = $1", c, objects, size); err != nil {
			return err
		}
	}
	_, err := s.exec(ctx, "DELETE FROM prepared_usage WHERE caller = $1 AND objects = 0", caller)
	return err
}

// FindPrepared implements signing.PreparedStore.
func (s Prepared) FindPrepared(ctx context.Context, id string) (*signing.PreparedRecord, bool, error) {
	return one(ctx, s.DB, func(r row) (*signing.PreparedRecord, error) {
		p := &signing.PreparedRecord{}
		err := r.Scan(&p.ID, &p.Caller, &p.Type, &p.Job, &p.Document, &p.Original, &p.Bytes,
			(*timeField)(&p.CreatedAt), (*timeField)(&p.ExpiresAt), &p.Failures, (*timeField)(&p.SpentAt))
		return p, err
	}, `SELECT id, caller, type, job, document, original, octets, created_at, expires_at, failures, spent_at
		FROM prepared WHERE id = $1`, id)
}

// FailPrepared implements signing.PreparedStore.
func (s Prepared) FailPrepared(ctx context.Context, id string) (int, error) {
	n, _, err := returning(ctx, s.DB, scalar[int64],
		"UPDATE prepared SET failures = failures + 1 WHERE id = $1 RETURNING failures", id)
	return int(n), err
}

// LeasePrepared implements signing.PreparedStore.
func (s Prepared) LeasePrepared(ctx context.Context, id, lease string, now, until time.Time, wrong int) (bool, error) {
	n, err := s.exec(ctx, `UPDATE prepared SET lease = $2, leased_until = $3
		WHERE id = $1 AND spent_at = 0 AND expires_at > $4 AND failures < $5 AND leased_until <= $4`,
		id, lease, millis(until), millis(now), wrong)
	return n == 1, err
}

// ReleasePrepared implements signing.PreparedStore.
func (s Prepared) ReleasePrepared(ctx context.Context, id, lease string) error {
	_, err := s.exec(ctx, "UPDATE prepared SET lease = '', leased_until = 0 WHERE id = $1 AND lease = $2 AND spent_at = 0", id, lease)
	return err
}

// SpendPrepared implements signing.PreparedStore.
func (s Prepared) SpendPrepared(ctx context.Context, id, lease string, now time.Time, beside func(ctx context.Context) error) (spent bool, err error) {
	err = s.Unit(ctx, func(ctx context.Context) error {
		var held usage
		held, spent, err = returning(ctx, s.DB, scanUsage, `UPDATE prepared
			SET spent_at = $3, job = $4, lease = '', leased_until = 0
			WHERE id = $1 AND lease = $2 AND lease <> '' AND spent_at = 0
			RETURNING caller, octets, spent_at`, id, lease, millis(now), []byte{})
		if err != nil || !spent {
			return err
		}
		if err := s.giveBack(ctx, held.caller, 1, held.size); err != nil {
			return err
		}
		return fault.Rollback(beside(ctx))
	})
	return spent && err == nil, err
}

// usage is what one object adds to the usage.
type usage struct {
	caller string
	size   int64
	spent  bool
}

func scanUsage(r row) (u usage, err error) {
	var spentAt int64
	err = r.Scan(&u.caller, &u.size, &spentAt)
	u.spent = spentAt != 0
	return u, err
}

// SweepPrepared implements signing.PreparedStore. A leased object stays until its
// completion has ended.
func (s Prepared) SweepPrepared(ctx context.Context, now time.Time) error {
	for n := sweepPortion; n == sweepPortion; {
		err := s.Unit(ctx, func(ctx context.Context) error {
			gone, err := all(ctx, s.DB, scanUsage, `DELETE FROM prepared WHERE id IN
				(SELECT id FROM prepared WHERE expires_at <= $1 AND leased_until <= $1 ORDER BY expires_at LIMIT $2`+s.skipLocked()+`)
				RETURNING caller, octets, spent_at`, millis(now), sweepPortion)
			if err != nil {
				return err
			}
			n = len(gone)
			type sum struct{ objects, size int64 }
			sums := map[string]sum{}
			for _, u := range gone {
				if !u.spent { // the usage of spent objects was given back before
					sums[u.caller] = sum{sums[u.caller].objects + 1, sums[u.caller].size + u.size}
				}
			}
			for caller, held := range sums {
				if err := s.giveBack(ctx, caller, held.objects, held.size); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
