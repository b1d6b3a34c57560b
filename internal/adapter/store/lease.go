// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// leased is a table whose rows one process at a time works on; see package lease. Its rows have the
// columns lease, the token of the holder, and leased_until. A row without a lease has an empty token and 0.
type leased struct {
	table string
	key   []string // columns
	open  string   // the condition that a row may be worked on
}

// The tables with leases. Uploads of documents and held requests have the end of a lease and no token:
// their rows are worked on by the process that made them, or in one transaction.
var (
	leasedOperations = leased{"operations", []string{"id"}, "state = 'Confirmed'"}
	leasedPrepared   = leased{"prepared", []string{"id"}, "spent_at = 0"}
	leasedAnswers    = leased{"answers", []string{"caller", "name"}, "done_at = 0"}
	leasedMessages   = leased{"outbox", []string{"message_id"}, "state = 'pending'"}
	leasedSyncs      = leased{"directory_syncs", []string{"directory"}, "due_at >= 0"}
	leasedExports    = leased{"exports", []string{"name"}, "position >= 0"}
	leasedRetained   = leased{"retained", []string{"document"}, "due_at >= 0"}
)

// freed ends a lease.
const freed = "lease = '', leased_until = 0"

// holder is the WHERE clause of the holder of a lease: first the columns of the key as $1 and so on, then
// the token. Later parameters are the caller's.
func (t leased) holder() string {
	var where strings.Builder
	for i, column := range t.key {
		fmt.Fprintf(&where, "%s = $%d AND ", column, i+1)
	}
	token := len(t.key) + 1
	return fmt.Sprintf(" WHERE %slease = $%d AND lease <> '' AND %s", where.String(), token, t.open)
}

// finish is a statement of the holder that sets columns and ends the lease.
func (t leased) finish(set string) string {
	return "UPDATE " + t.table + " SET " + set + ", " + freed + t.holder()
}

// claimNext is a statement that leases the row that has been due for the longest time, and counts the
// attempt. set sets more columns. $1 is the token, $2 the end of the lease, $3 now. If two processes see the same row, the later
// one finds it leased and claims nothing.
func (t leased) claimNext(db *DB, set, due, columns string) string {
	due = t.open + " AND due_at <= $3 AND leased_until <= $3 AND " + due
	key := t.key[0]
	return "UPDATE " + t.table + " SET lease = $1, leased_until = $2, attempts = attempts + 1" + set + " WHERE " + key +
		" = (SELECT " + key + " FROM " + t.table + " WHERE " + due + " ORDER BY due_at LIMIT 1" + db.skipLocked() + ") AND " + due +
		" RETURNING " + columns
}

// anAttempt counts an attempt.
const anAttempt = ", attempts = attempts + 1"

// claimOne is a statement that leases one row if it has no lease and meets a condition. set sets more
// columns. $1 is the key, $2 the token, $3 the end of the lease, $4 now.
func (t leased) claimOne(set, condition, columns string) string {
	return "UPDATE " + t.table + " SET lease = $2, leased_until = $3" + set + " WHERE " + t.key[0] + " = $1 AND " + t.free("$4") +
		" AND " + condition + " RETURNING " + columns
}

// free is the condition that a row may be worked on and has no lease at a time.
func (t leased) free(now string) string { return t.open + " AND leased_until <= " + now }

// extend gives a lease a new end. It reports false if the lease is lost.
func (t leased) extend(ctx context.Context, db *DB, token string, until time.Time, key ...any) (bool, error) {
	n, err := db.exec(ctx, fmt.Sprintf("UPDATE %s SET leased_until = $%d%s", t.table, len(t.key)+2, t.holder()), append(key, token, millis(until))...)
	return n == 1, err
}

// release ends a lease, so that another process may take the row at once.
func (t leased) release(ctx context.Context, db *DB, key, token string) error {
	_, err := db.exec(ctx, "UPDATE "+t.table+" SET "+freed+t.holder(), key, token)
	return err
}
