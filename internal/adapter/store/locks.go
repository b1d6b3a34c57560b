// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/domain/lock"
)

// locked runs fn in one transaction that first locks a set. Two units with a common
// member run one after the other, across all processes, so what a unit reads about its
// members stays true until it ends. It is the Atomic of the stores of people.
//
// SQLite has one writer, so all its units run this way. On PostgreSQL the rows of the
// users and of the values are locked in one statement. A nested unit joins. It may name
// only members that the outermost unit has locked: a lock that is taken later would break
// the order of locks, and what was read before it may be old.
//
// A unit that names users does not stop what is decided by the condition of one statement
// elsewhere: failed attempts, codes, budgets. Signatures lock no user.
func (db *DB) locked(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	if t := db.transaction(ctx); t != nil {
		return t.join(ctx, func(ctx context.Context) error {
			if lacks := t.locks.Lacks(set); lacks != "" {
				return fmt.Errorf("store: a nested unit needs a lock that the outer one did not name: %s", lacks)
			}
			return fn(ctx)
		})
	}
	return db.units.unit(ctx, func(ctx context.Context) error {
		t := db.transaction(ctx)
		if t.locks = set; db.engine == postgresEngine {
			if err := lockRows(ctx, t, set); err != nil {
				return fmt.Errorf("store: locking: %w", err)
			}
		}
		return fn(ctx)
	})
}

// lockOrder is the order in which units lock rows. Rows of one table are locked in the
// order of their keys. Two units that lock in one order never wait for each other in a
// circle. A test watches the order of every unit of the suite.
//
// A unit locks at most one row of issued_certificates, and before that of authorities. New
// certificates are added in any order.
//
// A table is missing here if its rows are only locked by units that have locked their
// user, or by single statements, which commit at once: such a lock is never waited for by
// a unit that holds something else. Inserting waits only for a unit that inserts an equal
// key. Sweeps skip rows that are locked, and so does whatever counts in a table of shares.
//
// Deleting a user locks all that refers to the user. Single statements change keys and
// certificates, and the codes of a user, without the lock of the user. If PostgreSQL finds
// that one of them and a deletion wait for each other, it ends one, and that one runs again.
var lockOrder = []string{
	"users",              // in one statement, before anything is read
	"lock_stripes",       // in the same statement
	"access_tokens",      // by id: tokens of an operator for others belong to two users
	"confirmations",      // by id: one is carried out without the lock of its user
	"confirmation_usage", // by user and purpose
	"operations",         // by id: before the events and the documents of its end
	"authorities",        // the one whose list of revoked certificates changes
	"message_budgets",    // of callers and addresses
	"outbox",             // by id
	"prepared",           // one row
	"documents",          // by id
}

// stripes is the number of rows of lock_stripes. A value has the row that its hash
// selects, so values that do not exist yet can be locked. Two values may share a row:
// then units that lock them wait for each other.
const stripes = 16384

func stripe(value string) int64 {
	h := fnv.New32a()
	h.Write([]byte(value))
	return int64(h.Sum32() % stripes)
}

// The rows of users are locked so that references to them may still be added, by
// signatures for example. The counts make PostgreSQL read the users before the stripes.
const (
	lockUsers   = "SELECT 0 FROM users WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE"
	lockStripes = `WITH s AS MATERIALIZED (SELECT 1 FROM lock_stripes WHERE stripe = ANY($1) ORDER BY stripe FOR NO KEY UPDATE)
		SELECT (SELECT COUNT(*) FROM s)`
	lockBoth = `WITH u AS MATERIALIZED (SELECT 1 FROM users WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE),
		s AS MATERIALIZED (SELECT 1 FROM lock_stripes WHERE stripe = ANY($2) ORDER BY stripe FOR NO KEY UPDATE)
		SELECT (SELECT COUNT(*) FROM u) * 0 + (SELECT COUNT(*) FROM s)`
)

// lockRows locks the rows of a set.
func lockRows(ctx context.Context, t *transaction, set lock.Set) error {
	users := make([]string, len(set.Users()))
	for i, id := range set.Users() {
		users[i] = legible([]any{id})[0].(string)
	}
	var rows []int64
	for _, v := range set.Values() {
		rows = append(rows, stripe(v))
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	query, args := lockBoth, []any{users, rows}
	switch {
	case len(users) == 0 && len(rows) == 0:
		return nil
	case len(rows) == 0:
		query, args = lockUsers, []any{users}
	case len(users) == 0:
		query, args = lockStripes, []any{rows}
	}
	locked := int64(0)
	err := t.query(ctx, lite.Keep, query, args, func(r row) error { return r.Scan(&locked) })
	if err == nil && locked != int64(len(rows)) {
		err = fmt.Errorf("%d of %d rows of lock_stripes are missing", int64(len(rows))-locked, len(rows))
	}
	return err
}

// inOrder ends a query that selects rows to change several of them: it locks them in the
// order of a column. SQLite has one writer and needs no order.
func (db *DB) inOrder(column string) string {
	if db.engine != postgresEngine {
		return ""
	}
	return " ORDER BY " + column + db.forUpdate()
}

// forUpdate is the end of inOrder, for a query with an order of its own.
func (db *DB) forUpdate() string {
	if db.engine != postgresEngine {
		return ""
	}
	return " FOR NO KEY UPDATE"
}

// skipLocked ends a query that selects rows to sweep: it leaves rows that another unit
// has locked to the next sweep, so a sweep does not wait.
func (db *DB) skipLocked() string {
	if db.engine != postgresEngine {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}
