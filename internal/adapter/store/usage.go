// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"tamga/internal/domain/signing"
)

// totalLife is how long a process uses the total of all owners that it has read.
const totalLife = time.Second

// holding is a number of objects and their bytes. Both may be negative in a change.
type holding struct{ objects, size int64 }

func (h holding) plus(o holding) holding { return holding{h.objects + o.objects, h.size + o.size} }

func (h holding) minus(o holding) holding { return holding{h.objects - o.objects, h.size - o.size} }

func (h holding) fits(quota holding) bool {
	return h.objects <= quota.objects && h.size <= quota.size
}

// tally counts what owners hold, in a table with some rows for each owner. The quota of an
// owner is compared with the sum of the rows. A unit adds to any row of the owner that no
// other unit has locked, or adds a row, so units of one owner never wait for each other. An
// owner has as many rows as it had units at the same time, until a sweep merges them. A row
// may be negative, since an object is given back in any row too. Units that add at the same
// time do not see each other, so a quota may be exceeded by what they add in one moment.
//
// No row counts all owners. Each process sums the table at most once a second and adds its
// own changes, so the quota of all may be exceeded by what the other processes add in a
// second. The same statement sums what owners without a token hold, which have a share of
// that quota.
//
// beside counts things in another table that take room in the same quotas. That table is
// only read here.
type tally struct {
	use, move, sum, merge, merged string
	each                          string   // see forEach
	held                          holdings // of the owner {owner}

	mu       sync.Mutex
	total    totals // as it was read, with the changes of this process
	read     time.Time
	reserved totals // by units that have not ended
}

// totals are what all owners hold, and what those without a token hold of it.
type totals struct{ all, anonymous holding }

// totalsOf returns what an owner adds to the totals.
func totalsOf(owner string, h holding) totals {
	if strings.HasPrefix(owner, signing.OfAddress) {
		return totals{h, h}
	}
	return totals{all: h}
}

func (t totals) plus(o totals) totals {
	return totals{t.all.plus(o.all), t.anonymous.plus(o.anonymous)}
}

func (t totals) minus(o totals) totals {
	return totals{t.all.minus(o.all), t.anonymous.minus(o.anonymous)}
}

// beside is a table of other things that take room in the quotas of a tally. Its columns
// are the owner, and those that count objects and bytes. where selects its rows.
type beside struct{ table, objects, bytes, where string }

// holdings are expressions for what an owner holds.
type holdings struct{ objects, size string }

// of returns the expressions for the owner that an SQL expression names.
func (h holdings) of(owner string) holdings {
	return holdings{strings.ReplaceAll(h.objects, "$1", owner), strings.ReplaceAll(h.size, "$1", owner)}
}

// newTally returns the tally of a table. also is nil if nothing else takes room.
func newTally(db *DB, table, owner string, also *beside) *tally {
	words := strings.NewReplacer("{table}", table, "{owner}", owner, "{skip}", db.skipLocked(), "{anonymous}", owner+" LIKE '"+signing.OfAddress+"%'")
	fill := words.Replace
	alsoHeld, alsoAll := holdings{}, holdings{}
	if also != nil {
		sum := func(column, where string) string {
			return " + (SELECT CAST(COALESCE(SUM(b." + column + "), 0) AS BIGINT) FROM " + also.table + " b WHERE " + where + also.where + ")"
		}
		alsoHeld = holdings{sum(also.objects, "b.{owner} = $1 AND "), sum(also.bytes, "b.{owner} = $1 AND ")}
		alsoAll = holdings{sum(also.objects, ""), sum(also.bytes, "")}
	}
	held := func(column, also string) string {
		return fill("(SELECT COALESCE(SUM(x." + column + "), 0) FROM {table} x WHERE x.{owner} = $1)" + also)
	}
	ofOwner := holdings{held("objects", alsoHeld.objects), held("bytes", alsoHeld.size)}
	// $2 is the number of a row that does not exist.
	add := fill(`INSERT INTO {table} AS u ({owner}, shard, objects, bytes)
			SELECT CAST($1 AS TEXT), COALESCE((SELECT shard FROM {table} WHERE {owner} = $1 ORDER BY shard LIMIT 1{skip}), CAST($2 AS BIGINT)),
				CAST($3 AS BIGINT), CAST($4 AS BIGINT) WHERE {room}
			ON CONFLICT ({owner}, shard) DO UPDATE SET objects = u.objects + excluded.objects, bytes = u.bytes + excluded.bytes`)
	room := ofOwner.objects + " + $3 <= CAST($5 AS BIGINT) AND " + ofOwner.size + " + $4 <= CAST($6 AS BIGINT)"
	return &tally{
		held: ofOwner,
		use:  strings.ReplaceAll(add, "{room}", room),
		move: strings.ReplaceAll(add, "{room}", "TRUE"),
		each: fill(`INSERT INTO {table} AS u ({owner}, shard, objects, bytes)
			SELECT o.owner, COALESCE((SELECT x.shard FROM {table} x WHERE x.{owner} = o.owner ORDER BY x.shard LIMIT 1{skip}), {new}), o.objects, o.bytes FROM {from}
			ON CONFLICT ({owner}, shard) DO UPDATE SET objects = u.objects + excluded.objects, bytes = u.bytes + excluded.bytes`),
		sum: fill("SELECT CAST(COALESCE(SUM(objects), 0) AS BIGINT)" + alsoAll.objects + ", CAST(COALESCE(SUM(bytes), 0) AS BIGINT)" + alsoAll.size + `,
				CAST(COALESCE(SUM(CASE WHEN {anonymous} THEN objects ELSE 0 END), 0) AS BIGINT),
				CAST(COALESCE(SUM(CASE WHEN {anonymous} THEN bytes ELSE 0 END), 0) AS BIGINT) FROM {table}`),
		merge: fill(`DELETE FROM {table} WHERE ({owner}, shard) IN
			(SELECT {owner}, shard FROM {table} WHERE objects = 0 AND bytes = 0
				OR {owner} IN (SELECT {owner} FROM {table} GROUP BY {owner} HAVING COUNT(*) > 1) LIMIT $1{skip})
			RETURNING {owner}, objects, bytes`),
		merged: fill("INSERT INTO {table} ({owner}, shard, objects, bytes) VALUES ($1, $2, $3, $4)"),
	}
}

// forEach returns a statement that adds to what several owners hold. from ends it with a relation o of
// the columns owner, objects and bytes, one row for each owner, and with conditions. new is the parameter
// with the number of a row that does not exist.
func (t *tally) forEach(from, new string) string {
	return strings.NewReplacer("{from}", from, "{new}", "CAST("+new+" AS BIGINT)").Replace(t.each)
}

// newRow returns the number of a row that does not exist.
func newRow() int64 { return rand.Int64() }

// errNoRoom rolls back what exceeds a quota.
var errNoRoom = errors.New("store: a quota is used up")

// adding runs unit, which adds more to what an owner holds, and reports whether the quotas
// had room: that of all, and for an owner without a token also the part of it that those owners
// have together. unit returns errNoRoom if the quota of the owner has none.
func (t *tally) adding(ctx context.Context, db *DB, owner string, more, all holding, unit func() error) (bool, error) {
	if owner == "" {
		return false, errors.New("store: an object without an owner")
	}
	adds := totalsOf(owner, more)
	room, err := t.reserve(ctx, db, adds, all)
	if err != nil || !room {
		return false, err
	}
	err = unit()
	t.end(adds, err == nil)
	if errors.Is(err, errNoRoom) {
		return false, nil
	}
	return err == nil, err
}

// room returns what the quotas of an owner with a token, and of all, have room for.
func (t *tally) room(ctx context.Context, db *DB, owner string, quota, all holding) (holding, error) {
	if err := t.refresh(ctx, db); err != nil {
		return holding{}, err
	}
	held, _, err := one(ctx, db, func(r row) (h holding, err error) {
		err = r.Scan(&h.objects, &h.size)
		return h, err
	}, "SELECT CAST("+t.held.objects+" AS BIGINT), CAST("+t.held.size+" AS BIGINT)", owner)
	if err != nil {
		return holding{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	total := t.total.plus(t.reserved).all
	return holding{
		min(quota.objects-held.objects, all.objects-total.objects),
		min(quota.size-held.size, all.size-total.size),
	}, nil
}

// reserve counts more in the totals if their quotas have room.
func (t *tally) reserve(ctx context.Context, db *DB, more totals, all holding) (bool, error) {
	if err := t.refresh(ctx, db); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	share := signing.Quota{Objects: all.objects, Bytes: all.size}.Share()
	if sum := t.total.plus(t.reserved).plus(more); !sum.all.fits(all) || more.anonymous != (holding{}) && !sum.anonymous.fits(holding{share.Objects, share.Bytes}) {
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
	total, _, err := one(ctx, db, scanTotals, t.sum)
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
func (t *tally) end(more totals, added bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved = t.reserved.minus(more)
	if added {
		t.total = t.total.plus(more)
	}
}

func scanTotals(r row) (t totals, err error) {
	err = r.Scan(&t.all.objects, &t.all.size, &t.anonymous.objects, &t.anonymous.size)
	return t, err
}

// take adds to what an owner holds, or returns errNoRoom.
func (t *tally) take(ctx context.Context, db *DB, owner string, more, quota holding) error {
	n, err := db.exec(ctx, t.use, owner, newRow(), more.objects, more.size, quota.objects, quota.size)
	if err == nil && n == 0 {
		err = errNoRoom
	}
	return err
}

// back is what a unit gives back, by owner.
type back map[string]holding

func (b back) add(owner string, h holding) { b[owner] = b[owner].plus(h) }

// giveBack subtracts what a unit gives back.
func (t *tally) giveBack(ctx context.Context, db *DB, b back) error {
	var sum totals
	for owner, h := range b {
		sum = sum.plus(totalsOf(owner, h))
		if h == (holding{}) {
			continue
		}
		if _, err := db.exec(ctx, t.move, owner, newRow(), -h.objects, -h.size); err != nil {
			return err
		}
	}
	t.gone(sum)
	return nil
}

// gone subtracts from the total what a unit has given back. If the unit rolls back, the
// total is right again in a second.
func (t *tally) gone(h totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total = t.total.minus(h)
}

// sweep deletes rows that count nothing, and merges the rows of an owner. Other units use
// other rows meanwhile.
func (t *tally) sweep(ctx context.Context, db *DB) error {
	for again := true; again; {
		err := db.Unit(ctx, func(ctx context.Context) error {
			gone, err := all(ctx, db, func(r row) (u usage, err error) {
				err = r.Scan(&u.caller, &u.objects, &u.size)
				return u, err
			}, t.merge, sweepPortion)
			if err != nil {
				return err
			}
			rest := map[string]holding{}
			for _, u := range gone {
				if h := rest[u.caller].plus(holding{u.objects, u.size}); h != (holding{}) {
					rest[u.caller] = h
				} else {
					delete(rest, u.caller)
				}
			}
			again = len(gone) == sweepPortion && len(rest) < len(gone)
			for owner, h := range rest {
				if _, err := db.exec(ctx, t.merged, owner, newRow(), h.objects, h.size); err != nil {
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
