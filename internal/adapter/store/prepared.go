// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"strings"
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
func (s Prepared) AddPrepared(ctx context.Context, p *signing.PreparedRecord, all, caller signing.Quota, beside audit.Beside) (bool, error) {
	quota := holding{caller.Objects, caller.Bytes}
	return s.prepared.adding(ctx, s.DB, p.Caller, holding{1, p.Bytes}, holding{all.Objects, all.Bytes}, func() error {
		add := s.addInSteps
		if s.engine == postgresEngine {
			if add = s.addAlone; beside.Record == nil && s.transaction(ctx) == nil {
				return s.addTogether(ctx, p, quota, beside)
			}
		}
		return s.Unit(ctx, func(ctx context.Context) error {
			err := add(ctx, p, quota, beside)
			if err != nil || beside.Record == nil {
				return err
			}
			return fault.Rollback(beside.Record(ctx))
		})
	})
}

// mostPrepared is the number of objects of one statement. An object may contain documents of
// documents.in_database bytes.
const mostPrepared = 32

// addTogether adds an object on PostgreSQL, with those of other callers. If they exceed a quota
// together, each of them is added alone.
func (s Prepared) addTogether(ctx context.Context, p *signing.PreparedRecord, quota holding, beside audit.Beside) error {
	if added, err := s.additions.do(ctx, s.addition(ctx, p, quota, beside)); added || err != nil {
		return err
	}
	return s.addAlone(ctx, p, quota, beside)
}

// addAlone adds an object on PostgreSQL.
func (s Prepared) addAlone(ctx context.Context, p *signing.PreparedRecord, quota holding, beside audit.Beside) error {
	added, err := s.addRows(ctx, [][]any{s.addition(ctx, p, quota, beside)})
	if err == nil && !added[0] {
		err = errNoRoom
	}
	return err
}

// addition returns the row of an object for addRows.
func (s Prepared) addition(ctx context.Context, p *signing.PreparedRecord, quota holding, beside audit.Beside) []any {
	return append(legible([]any{p.ID, p.Caller, p.Type, p.Job, p.Document, p.Original, p.Bytes, millis(p.CreatedAt), millis(p.ExpiresAt),
		int64(p.Failures), millis(p.SpentAt), quota.objects, quota.size}), s.noted(ctx, beside)...)
}

// noted returns the values of notedTypes.
func (s Prepared) noted(ctx context.Context, beside audit.Beside) []any {
	var e audit.Entry
	if beside.Entry != nil {
		e = *beside.Entry
	}
	return append([]any{beside.Entry != nil, beside.Attempt}, Audit(s).unit(ctx, e).entry...)
}

// notedTypes are the columns of an item that has audit entries: whether it has one of an outcome, whether
// also the one of the attempt, and the entry.
func notedTypes() string { return "noted BOOLEAN, attempted BOOLEAN, " + entryTypes() }

// addNoted is the statement that adds the entries of items for which a condition is true; see
// audit.Entry.Begun.
func addNoted(condition string) string {
	attempt := map[string]string{"at": "i.at - i.duration_us / 1000", "phase": "'" + audit.Attempt + "'", "outcome": "''", "object": "''", "detail": "''", "duration_us": "0"}
	var values []string
	for name := range strings.SplitSeq(auditColumns, ",") {
		name = strings.TrimSpace(name)
		value := "i." + name
		if begun, differs := attempt[name]; differs {
			value = "CASE WHEN p.done THEN " + value + " ELSE " + begun + " END"
		}
		values = append(values, value)
	}
	return "INSERT INTO audit (" + auditColumns + ") SELECT " + strings.Join(values, ", ") +
		" FROM item i JOIN (VALUES (FALSE), (TRUE)) AS p (done) ON p.done OR i.attempted WHERE i.noted AND " + condition + " ORDER BY i.n, p.done"
}

// addedPrepared is the statement of addRows.
func addedPrepared(t *tally) string {
	rows, next := gathered("id TEXT, caller TEXT, type TEXT, job BYTEA, document TEXT, original TEXT, bytes BIGINT, created_at BIGINT, expires_at BIGINT," +
		"failures BIGINT, spent_at BIGINT, most_objects BIGINT, most_bytes BIGINT, " + notedTypes())
	room := t.held.of("o.owner")
	return "WITH item AS (" + rows + `),
		o AS (SELECT caller AS owner, COUNT(*) AS objects, CAST(SUM(bytes) AS BIGINT) AS bytes, MIN(most_objects) AS most_objects, MIN(most_bytes) AS most_bytes
			FROM item GROUP BY caller),
		used AS (` + t.forEach("o WHERE "+room.objects+" + o.objects <= o.most_objects AND "+room.size+" + o.bytes <= o.most_bytes", next) + ` RETURNING caller),
		added AS (` + insertPrepared + `SELECT i.id, i.caller, i.type, i.job, i.document, i.original, i.bytes, i.created_at, i.expires_at, i.failures, '', 0, i.spent_at
			FROM item i WHERE i.caller IN (SELECT caller FROM used)),
		noted AS (` + addNoted("i.caller IN (SELECT caller FROM used)") + `)
		SELECT i.n FROM item i WHERE i.caller IN (SELECT caller FROM used)`
}

// addRows adds objects, each with its audit entry, on PostgreSQL. The objects of an owner are added
// if all of them fit into the quota.
func (s Prepared) addRows(ctx context.Context, rows [][]any) ([]bool, error) {
	list, err := allReturning(ctx, s.DB, scalar[int64], s.addedPrepared, append(columnsOf(rows), newRow())...)
	added := make([]bool, len(rows))
	for _, n := range list {
		added[n-1] = true
	}
	return added, err
}

// addInSteps adds an object in the transaction of ctx.
func (s Prepared) addInSteps(ctx context.Context, p *signing.PreparedRecord, quota holding, beside audit.Beside) error {
	if err := s.prepared.take(ctx, s.DB, p.Caller, holding{1, p.Bytes}, quota); err != nil {
		return err
	}
	_, err := s.exec(ctx, insertPrepared+`VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '', 0, $11)`,
		p.ID, p.Caller, p.Type, p.Job, p.Document, p.Original, p.Bytes,
		millis(p.CreatedAt), millis(p.ExpiresAt), p.Failures, millis(p.SpentAt))
	if err != nil {
		return err
	}
	return fault.Rollback(Audit(s).RecordAll(ctx, beside.Entries()))
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

// SpendPrepared implements signing.PreparedStore.
func (s Prepared) SpendPrepared(ctx context.Context, id, lease string, now time.Time, wrong int, beside audit.Beside) (spent bool, err error) {
	spend := func(ctx context.Context) (bool, error) {
		return s.spendInSteps(ctx, id, lease, now, wrong, beside)
	}
	if s.engine == postgresEngine {
		row := s.spending(ctx, id, lease, now, wrong, beside)
		if beside.Record == nil && s.transaction(ctx) == nil {
			return s.spendings.do(ctx, row)
		}
		spend = func(ctx context.Context) (bool, error) {
			spent, err := s.spendRows(ctx, [][]any{row})
			return spent[0], err
		}
	}
	err = s.Unit(ctx, func(ctx context.Context) (err error) {
		spent, err = spend(ctx)
		if err != nil || !spent || beside.Record == nil {
			return err
		}
		return fault.Rollback(beside.Record(ctx))
	})
	return spent && err == nil, err
}

// spending returns the row of an object for spendRows.
func (s Prepared) spending(ctx context.Context, id, lease string, now time.Time, wrong int, beside audit.Beside) []any {
	return append(legible([]any{id, lease, millis(now), int64(wrong)}), s.noted(ctx, beside)...)
}

// spentPrepared is the statement of spendRows. It locks the objects in the order of their names, so that
// two statements with the same objects do not wait for each other, and decides on what it has locked. The
// planner then expects one object and takes the index; joined to all rows of the statement, a plan made
// while the table was small read the whole table from then on.
func spentPrepared(t *tally) string {
	rows, next := gathered("name TEXT, holder TEXT, moment BIGINT, wrong BIGINT, " + notedTypes())
	free := leasedPrepared.free("i.moment") + " AND " + completable("i.moment", "i.wrong")
	return "WITH item AS (" + rows + `),
		locked AS (SELECT i.n, i.holder, i.moment, i.wrong, p.* FROM (SELECT n, name, holder, moment, wrong FROM item ORDER BY name) i
			CROSS JOIN LATERAL (SELECT id, lease, leased_until, expires_at, failures, spent_at FROM prepared WHERE id = i.name FOR UPDATE) p),
		due AS (SELECT n, id, moment FROM locked i WHERE lease = i.holder AND lease <> '' AND spent_at = 0 OR i.holder = '' AND ` + free + `),
		spent AS (UPDATE prepared SET spent_at = i.moment, job = '', document = '', original = '', ` + freed + ` FROM due i WHERE prepared.id = i.id
			RETURNING i.n, prepared.caller, prepared.bytes),
		o AS (SELECT caller AS owner, -COUNT(*) AS objects, CAST(-SUM(bytes) AS BIGINT) AS bytes FROM spent GROUP BY caller),
		back AS (` + t.forEach("o", next) + `),
		noted AS (` + addNoted("i.n IN (SELECT n FROM spent)") + `)
		SELECT n, caller, bytes FROM spent`
}

// spendRows spends objects, each with its audit entry, and gives their usage back, on PostgreSQL. Of
// several rows for one object, one spends it.
func (s Prepared) spendRows(ctx context.Context, rows [][]any) ([]bool, error) {
	type of struct {
		n int64
		usage
	}
	list, err := allReturning(ctx, s.DB, func(r row) (u of, err error) {
		err = r.Scan(&u.n, &u.caller, &u.size)
		return u, err
	}, s.spentPrepared, append(columnsOf(rows), newRow())...)
	spent := make([]bool, len(rows))
	for _, u := range list {
		spent[u.n-1] = true
		s.prepared.gone(totalsOf(u.caller, holding{1, u.size}))
	}
	return spent, err
}

// spendInSteps spends an object in the transaction of ctx.
func (s Prepared) spendInSteps(ctx context.Context, id, lease string, now time.Time, wrong int, beside audit.Beside) (spent bool, err error) {
	held, spent, err := returning(ctx, s.DB, scanUsage, spendPrepared+" RETURNING caller, bytes, spent_at", id, millis(now), wrong, lease, []byte{})
	if err != nil || !spent {
		return false, err
	}
	if err := fault.Rollback(Audit(s).RecordAll(ctx, beside.Entries())); err != nil {
		return false, err
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
