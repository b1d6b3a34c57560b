// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"tamga/internal/domain/lock"
)

const (
	// shards is the number of shards that processes draw one from. Two processes that drew
	// the same one count rightly, even without exceeding a quota. Their units of one owner
	// wait for each other's commit, as those of one process do.
	shards = 64
	// totalLife is how long a process uses the total of all owners that it has read.
	totalLife = time.Second
	// uncounted is the shard of an object that an earlier release has counted in a table
	// without shards, where the owner "" is the sum of all.
	uncounted = -1
)

// holding is a number of objects and their bytes. Both may be negative in a change.
type holding struct{ objects, size int64 }

func (h holding) plus(o holding) holding { return holding{h.objects + o.objects, h.size + o.size} }

func (h holding) minus(o holding) holding { return holding{h.objects - o.objects, h.size - o.size} }

func (h holding) fits(quota holding) bool {
	return h.objects <= quota.objects && h.size <= quota.size
}

// tally counts what owners hold, in a table with one row for each owner and shard. The
// quota of an owner is compared with the sum of the rows. Processes that add at the same
// time do not see each other, so a quota may be exceeded by what they add in one moment.
//
// No row counts all owners. Each process sums the table at most once a second and adds its
// own changes, so the quota of all may be exceeded by what the other processes add in a
// second.
//
// While an earlier release runs beside this one, it counts in the earlier table. Its
// objects count here too. Objects of this release do not count there, so together the
// releases hold at most twice the quota.
type tally struct {
	use, move, moveEarlier, sum, clean, recount string

	shard int64

	mu        sync.Mutex
	total     holding // as it was read, with the changes of this process
	read      time.Time
	reserved  holding // by units that have not ended
	recounted time.Time
}

// newTally returns the tally of a table. earlier is the table without shards, and objects
// is the condition that selects what the owner $1 holds.
func newTally(table, earlier, owner, objects string) *tally {
	words := strings.NewReplacer("{table}", table, "{earlier}", earlier, "{owner}", owner, "{held}", objects)
	others := strings.NewReplacer("{other objects}", `(SELECT COALESCE(SUM(x.objects), 0) FROM {table} x WHERE x.{owner} = $1 AND x.shard <> $2)
			+ (SELECT COALESCE(SUM(e.objects), 0) FROM {earlier} e WHERE e.{owner} = $1)`,
		"{other bytes}", `(SELECT COALESCE(SUM(x.octets), 0) FROM {table} x WHERE x.{owner} = $1 AND x.shard <> $2)
			+ (SELECT COALESCE(SUM(e.octets), 0) FROM {earlier} e WHERE e.{owner} = $1)`)
	fill := func(text string) string { return words.Replace(others.Replace(text)) }
	return &tally{
		shard: rand.Int64N(shards),
		use: fill(`INSERT INTO {table} AS u ({owner}, shard, objects, octets)
			SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT)
			WHERE {other objects} + $3 <= CAST($5 AS BIGINT) AND {other bytes} + $4 <= CAST($6 AS BIGINT)
			ON CONFLICT ({owner}, shard) DO UPDATE SET objects = u.objects + excluded.objects, octets = u.octets + excluded.octets
			WHERE u.objects + excluded.objects + {other objects} <= $5 AND u.octets + excluded.octets + {other bytes} <= $6`),
		move:        fill("UPDATE {table} SET objects = objects + $3, octets = octets + $4 WHERE {owner} = $1 AND shard = $2"),
		moveEarlier: fill("UPDATE {earlier} SET objects = objects + $2, octets = octets + $3 WHERE {owner} = $1"),
		sum: fill(`SELECT t.objects + COALESCE(e.objects, 0), t.octets + COALESCE(e.octets, 0)
			FROM (SELECT CAST(COALESCE(SUM(objects), 0) AS BIGINT) AS objects, CAST(COALESCE(SUM(octets), 0) AS BIGINT) AS octets FROM {table}) t
			LEFT JOIN {earlier} e ON e.{owner} = ''`),
		clean: fill(`DELETE FROM {table} WHERE objects = 0 AND octets = 0 AND ({owner}, shard) IN
			(SELECT {owner}, shard FROM {table} WHERE objects = 0 AND octets = 0 LIMIT $1{skip})`),
		recount: fill(`INSERT INTO {table} AS u ({owner}, shard, objects, octets)
			SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), c.objects - u.objects, c.octets - u.octets
			FROM (SELECT COUNT(*) AS objects, CAST(COALESCE(SUM(octets), 0) AS BIGINT) AS octets FROM {held}) c,
				(SELECT CAST(COALESCE(SUM(objects), 0) AS BIGINT) AS objects, CAST(COALESCE(SUM(octets), 0) AS BIGINT) AS octets FROM
					(SELECT objects, octets FROM {table} WHERE {owner} = $1 UNION ALL SELECT objects, octets FROM {earlier} WHERE {owner} = $1) a) u
			WHERE c.objects <> u.objects OR c.octets <> u.octets
			ON CONFLICT ({owner}, shard) DO UPDATE SET objects = u.objects + excluded.objects, octets = u.octets + excluded.octets`),
	}
}

// errNoRoom rolls back what exceeds a quota.
var errNoRoom = errors.New("store: a quota is used up")

// adding runs unit, which adds more to what an owner holds, and reports whether the quotas
// had room. unit returns errNoRoom if that of the owner has none.
func (t *tally) adding(ctx context.Context, db *DB, owner string, more, all holding, unit func() error) (bool, error) {
	if owner == "" {
		return false, errors.New("store: an object without an owner")
	}
	room, err := t.reserve(ctx, db, more, all)
	if err != nil || !room {
		return false, err
	}
	err = unit()
	if errors.Is(err, errNoRoom) && db.transaction(ctx) == nil {
		var again bool
		if again, err = t.correct(ctx, db, owner); err == nil {
			if err = errNoRoom; again {
				err = unit()
			}
		}
	}
	t.end(more, err == nil)
	if errors.Is(err, errNoRoom) {
		return false, nil
	}
	return err == nil, err
}

// reserve counts more in the total if its quota has room.
func (t *tally) reserve(ctx context.Context, db *DB, more, quota holding) (bool, error) {
	if err := t.refresh(ctx, db); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.total.plus(t.reserved).plus(more).fits(quota) {
		return false, nil
	}
	t.reserved = t.reserved.plus(more)
	return true, nil
}

// refresh reads the total if it is too old. The first caller reads, and others use the
// earlier total meanwhile. The lock is not held while it reads: units take it inside their
// transactions, and together they may hold all connections.
func (t *tally) refresh(ctx context.Context, db *DB) error {
	now := db.now()
	t.mu.Lock()
	first := t.read.IsZero()
	if age := now.Sub(t.read); !first && age >= 0 && age < totalLife {
		t.mu.Unlock()
		return nil
	}
	if !first {
		t.read = now
	}
	t.mu.Unlock()
	total, _, err := one(ctx, db, scanHolding, t.sum)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !first || t.read.IsZero() {
		t.total, t.read = total, db.now()
	}
	return nil
}

// end ends a reservation.
func (t *tally) end(more holding, added bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved = t.reserved.minus(more)
	if added {
		t.total = t.total.plus(more)
	}
}

func scanHolding(r row) (h holding, err error) {
	err = r.Scan(&h.objects, &h.size)
	return h, err
}

// take adds to what an owner holds, or returns errNoRoom. Units do it last, because other
// units of the owner wait for the row until the end of the transaction.
func (t *tally) take(ctx context.Context, db *DB, owner string, shard int64, more, quota holding) error {
	if shard == uncounted {
		return t.change(ctx, db, counter{owner, shard}, more)
	}
	n, err := db.exec(ctx, t.use, owner, shard, more.objects, more.size, quota.objects, quota.size)
	if err == nil && n == 0 {
		err = errNoRoom
	}
	return err
}

// counter is a row that counts.
type counter struct {
	owner string
	shard int64
}

// back is what a unit gives back.
type back map[counter]holding

func (b back) add(owner string, shard int64, h holding) {
	c := counter{owner, shard}
	b[c] = b[c].plus(h)
}

// giveBack subtracts what a unit gives back. It locks the rows in their order.
func (t *tally) giveBack(ctx context.Context, db *DB, b back) error {
	rows := make([]counter, 0, len(b))
	for c := range b {
		rows = append(rows, c)
	}
	slices.SortFunc(rows, func(a, b counter) int {
		// The rows of uncounted objects are in an earlier table.
		return cmp.Or(cmp.Compare(min(a.shard, 0), min(b.shard, 0)), cmp.Compare(a.owner, b.owner), cmp.Compare(a.shard, b.shard))
	})
	var sum holding
	for _, c := range rows {
		if err := t.change(ctx, db, c, holding{}.minus(b[c])); err != nil {
			return err
		}
		sum = sum.plus(b[c])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total = t.total.minus(sum) // if the unit rolls back, this is right again in a second
	return nil
}

func (t *tally) change(ctx context.Context, db *DB, c counter, by holding) error {
	if by == (holding{}) {
		return nil
	}
	if c.shard != uncounted {
		_, err := db.exec(ctx, t.move, c.owner, c.shard, by.objects, by.size)
		return err
	}
	for _, owner := range []string{"", c.owner} {
		if _, err := db.exec(ctx, t.moveEarlier, owner, by.objects, by.size); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes rows that count nothing.
func (t *tally) sweep(ctx context.Context, db *DB) error {
	query := strings.ReplaceAll(t.clean, "{skip}", db.skipLocked())
	for n := int64(sweepPortion); n == sweepPortion; {
		var err error
		if n, err = db.exec(ctx, query, sweepPortion); err != nil {
			return err
		}
	}
	return nil
}

// correct counts what an owner holds, whose quota is used up, and reports whether the sum
// was wrong. An earlier release that runs beside this one subtracts the objects of this
// one from its own table only. A process counts at most once a second.
func (t *tally) correct(ctx context.Context, db *DB, owner string) (wrong bool, err error) {
	t.mu.Lock()
	now := db.now()
	early := !t.recounted.IsZero() && now.Sub(t.recounted) < totalLife && !now.Before(t.recounted)
	if !early {
		t.recounted = now
	}
	t.mu.Unlock()
	if early {
		return false, nil
	}
	err = db.locked(ctx, lock.Named("usage "+owner), func(ctx context.Context) error {
		n, err := db.exec(ctx, t.recount, owner, t.shard)
		wrong = n > 0
		return err
	})
	return wrong && err == nil, err
}
