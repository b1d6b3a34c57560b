// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
)

// Prepared implements signing.PreparedStore.
type Prepared struct{ *DB }

var _ signing.PreparedStore = Prepared{}

const insertPrepared = `INSERT INTO prepared (id, caller, type, job, document, original, bytes,
	created_at, expires_at, failures, lease, leased_until, spent_at) `

// AddPrepared implements signing.PreparedStore.
func (s Prepared) AddPrepared(ctx context.Context, p *signing.PreparedRecord, all, caller signing.Quota, beside signing.Beside) (bool, error) {
	quota := holding{caller.Objects, caller.Bytes}
	return s.prepared.adding(ctx, s.DB, p.Caller, holding{1, p.Bytes}, holding{all.Objects, all.Bytes}, func() error {
		add := s.addInSteps
		if s.engine == postgresEngine {
			if add = s.addOnce; beside.Record == nil {
				return add(ctx, p, quota, beside.Entry)
			}
		}
		return s.Unit(ctx, func(ctx context.Context) error {
			err := add(ctx, p, quota, beside.Entry)
			if err != nil || beside.Record == nil {
				return err
			}
			return fault.Rollback(beside.Record(ctx))
		})
	})
}

// addedPrepared are the statements that count and insert an object, which saves round trips. SQLite has no
// such statements.
type addedPrepared struct{ alone, noted string } // noted also adds an audit entry

func newAddedPrepared(t *tally) addedPrepared {
	used := "WITH used AS (" + t.use + " RETURNING 1)"
	insert := insertPrepared + `
		SELECT CAST($7 AS TEXT), $1, CAST($8 AS TEXT), CAST($9 AS BYTEA), CAST($10 AS TEXT), CAST($11 AS TEXT), $4,
			CAST($12 AS BIGINT), CAST($13 AS BIGINT), CAST($14 AS BIGINT), '', 0, CAST($15 AS BIGINT) FROM used`
	return addedPrepared{
		used + " " + insert,
		used + ", added AS (" + insert + " RETURNING 1) INSERT INTO audit (" + auditColumns + ") SELECT " + entryMarks(16, "CAST($%d AS %s)") + " FROM added",
	}
}

// addOnce adds an object on PostgreSQL.
func (s Prepared) addOnce(ctx context.Context, p *signing.PreparedRecord, quota holding, entry *audit.Entry) error {
	query := s.addedPrepared.alone
	args := []any{p.Caller, newRow(), 1, p.Bytes, quota.objects, quota.size,
		p.ID, p.Type, p.Job, p.Document, p.Original, millis(p.CreatedAt), millis(p.ExpiresAt), p.Failures, millis(p.SpentAt)}
	if entry != nil {
		query, args = s.addedPrepared.noted, append(args, Audit(s).unit(ctx, *entry).entry...)
	}
	n, err := s.exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = errNoRoom
	}
	return err
}

// addInSteps adds an object in the transaction of ctx.
func (s Prepared) addInSteps(ctx context.Context, p *signing.PreparedRecord, quota holding, entry *audit.Entry) error {
	if err := s.prepared.take(ctx, s.DB, p.Caller, holding{1, p.Bytes}, quota); err != nil {
		return err
	}
	_, err := s.exec(ctx, insertPrepared+`VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '', 0, $11)`,
		p.ID, p.Caller, p.Type, p.Job, p.Document, p.Original, p.Bytes,
		millis(p.CreatedAt), millis(p.ExpiresAt), p.Failures, millis(p.SpentAt))
	if err == nil && entry != nil {
		err = fault.Rollback(Audit(s).Record(ctx, *entry))
	}
	return err
}

// FindPrepared implements signing.PreparedStore.
func (s Prepared) FindPrepared(ctx context.Context, id string) (*signing.PreparedRecord, bool, error) {
	return s.preparedObjects.read(ctx, id, time.Time{})
}

const preparedQuery = "SELECT " + preparedColumns + " FROM prepared WHERE id = $1"

const preparedColumns = "id, caller, type, job, document, original, bytes, created_at, expires_at, failures, spent_at"

func scanPrepared(r row, before ...any) (*signing.PreparedRecord, error) {
	p := &signing.PreparedRecord{}
	err := r.Scan(append(before, &p.ID, &p.Caller, &p.Type, &p.Job, &p.Document, &p.Original, &p.Bytes,
		(*timeField)(&p.CreatedAt), (*timeField)(&p.ExpiresAt), &p.Failures, (*timeField)(&p.SpentAt))...)
	return p, err
}

// claimPrepared leases an object.
var claimPrepared = leasedPrepared.claimOne("", completable("$4", "$5"), "id")

// completable is the condition that an object has not expired and had fewer wrong values than discard it.
func completable(now, wrong string) string { return "expires_at > " + now + " AND failures < " + wrong }

// ClaimPrepared implements signing.PreparedStore.
func (s Prepared) ClaimPrepared(ctx context.Context, id, lease string, now, until time.Time, wrong int) (bool, error) {
	_, claimed, err := returning(ctx, s.DB, scalar[string], claimPrepared, id, lease, millis(until), millis(now), wrong)
	return claimed, err
}

// freePrepared is the condition that an object may be completed at $2, had fewer wrong values than $3, and
// that no completion has it.
var freePrepared = leasedPrepared.free("$2") + " AND " + completable("$2", "$3")

// failPrepared counts a wrong value.
var failPrepared = "UPDATE prepared SET failures = failures + 1 WHERE id = $1 AND " + freePrepared + " RETURNING failures"

// FailPrepared implements signing.PreparedStore.
func (s Prepared) FailPrepared(ctx context.Context, id string, now time.Time, wrong int) (int, bool, error) {
	n, counted, err := returning(ctx, s.DB, scalar[int64], failPrepared, id, millis(now), wrong)
	return int(n), counted, err
}

// ExtendPrepared implements signing.PreparedStore.
func (s Prepared) ExtendPrepared(ctx context.Context, id, lease string, until time.Time) (bool, error) {
	return leasedPrepared.extend(ctx, s.DB, lease, until, id)
}

// ReleasePrepared implements signing.PreparedStore.
func (s Prepared) ReleasePrepared(ctx context.Context, id, lease string) error {
	return leasedPrepared.release(ctx, s.DB, id, lease)
}

// spendPrepared marks an object as completed by the holder of its lease $4, or if $4 is empty without a lease.
var spendPrepared = "UPDATE prepared SET spent_at = $2, job = $5, document = '', original = '', " + freed +
	" WHERE id = $1 AND (lease = $4 AND lease <> '' AND spent_at = 0 OR $4 = '' AND " + freePrepared + ")"

// spendCounted spends an object and gives its usage back, in one statement and so in one
// round trip. SQLite has no such statement.
var spendCounted = "WITH spent AS (" + spendPrepared + ` RETURNING caller, bytes, spent_at),
		back AS (INSERT INTO prepared_shares AS u (caller, shard, objects, bytes)
			SELECT s.caller, COALESCE((SELECT x.shard FROM prepared_shares x WHERE x.caller = s.caller ORDER BY x.shard LIMIT 1 FOR UPDATE SKIP LOCKED), CAST($6 AS BIGINT)),
				-1, -s.bytes FROM spent s
			ON CONFLICT (caller, shard) DO UPDATE SET objects = u.objects + excluded.objects, bytes = u.bytes + excluded.bytes)`

const spentUsage = " SELECT caller, bytes, spent_at FROM spent"

// spendNoted also adds an audit entry.
var spendNoted = spendCounted + ", noted AS (INSERT INTO audit (" + auditColumns + ") SELECT " + entryMarks(7, "CAST($%d AS %s)") + " FROM spent)" + spentUsage

// SpendPrepared implements signing.PreparedStore.
func (s Prepared) SpendPrepared(ctx context.Context, id, lease string, now time.Time, wrong int, beside signing.Beside) (spent bool, err error) {
	args := []any{id, millis(now), wrong, lease, []byte{}}
	spend := s.spendInSteps
	if s.engine == postgresEngine {
		if spend = s.spendOnce; beside.Record == nil {
			return spend(ctx, args, beside.Entry)
		}
	}
	err = s.Unit(ctx, func(ctx context.Context) (err error) {
		spent, err = spend(ctx, args, beside.Entry)
		if err != nil || !spent || beside.Record == nil {
			return err
		}
		return fault.Rollback(beside.Record(ctx))
	})
	return spent && err == nil, err
}

// spendOnce spends an object on PostgreSQL. args are those of spendPrepared.
func (s Prepared) spendOnce(ctx context.Context, args []any, entry *audit.Entry) (spent bool, err error) {
	query := spendCounted + spentUsage
	args = append(slices.Clone(args), newRow())
	if entry != nil {
		query, args = spendNoted, append(args, Audit(s).unit(ctx, *entry).entry...)
	}
	held, spent, err := returning(ctx, s.DB, scanUsage, query, args...)
	if err == nil && spent {
		s.prepared.gone(totalsOf(held.caller, holding{1, held.size}))
	}
	return spent && err == nil, err
}

// spendInSteps spends an object in the transaction of ctx. args are those of spendPrepared.
func (s Prepared) spendInSteps(ctx context.Context, args []any, entry *audit.Entry) (spent bool, err error) {
	held, spent, err := returning(ctx, s.DB, scanUsage, spendPrepared+" RETURNING caller, bytes, spent_at", args...)
	if err != nil || !spent {
		return false, err
	}
	if entry != nil {
		if err := fault.Rollback(Audit(s).Record(ctx, *entry)); err != nil {
			return false, err
		}
	}
	return true, s.prepared.giveBack(ctx, s.DB, back{held.caller: {1, held.size}})
}

// usage is what one object adds to the usage.
type usage struct {
	caller  string
	objects int64
	size    int64
	spent   bool
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
				RETURNING caller, bytes, spent_at`, millis(now), sweepPortion)
			if err != nil {
				return err
			}
			n = len(gone)
			held := back{}
			for _, u := range gone {
				if !u.spent { // the usage of spent objects was given back before
					held.add(u.caller, holding{1, u.size})
				}
			}
			return s.prepared.giveBack(ctx, s.DB, held)
		})
		if err != nil {
			return err
		}
	}
	return s.prepared.sweep(ctx, s.DB)
}
