// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tamga/internal/adapter/store/lite"
)

// LockWatch looks at the order in which the units of a database on PostgreSQL lock rows.
type LockWatch struct {
	mu    sync.Mutex
	wrong []string
	seen  map[string]bool // pairs of tables that units locked one after the other
}

// WatchLocks begins to watch a database. It replaces fields that the clock of the server
// reads at any time, so the database was opened with Options.Now.
func WatchLocks(db *DB) *LockWatch {
	if db.clock != nil {
		panic("store: WatchLocks: open the database with Options.Now")
	}
	watch := &LockWatch{seen: map[string]bool{}}
	if _, is := db.units.(alone); is {
		wrapWork(db, false, func(w work) work { return &watchedWork{work: w, watch: watch} })
	}
	return watch
}

// Check fails the test if a unit left the order.
func (w *LockWatch) Check(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.wrong {
		t.Error(text)
	}
}

// Saw reports whether a unit locked a row of one table and then a row of another.
func (w *LockWatch) Saw(first, then string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[first+" "+then]
}

// wrapWork wraps the transactions of a database. singles: also those of one statement.
func wrapWork(db *DB, singles bool, wrap func(w work) work) {
	if one, is := db.units.(alone); is {
		db.units = wrappedUnits{one, singles, wrap}
	}
	db.database = wrappedDatabase{db.database, wrap}
}

type wrappedUnits struct {
	alone
	singles bool
	wrap    func(w work) work
}

func (u wrappedUnits) unit(ctx context.Context, fn func(ctx context.Context) error) error {
	return u.alone.unit(ctx, u.wrapped(fn))
}

func (u wrappedUnits) single(ctx context.Context, fn func(ctx context.Context) error) error {
	if u.singles {
		fn = u.wrapped(fn)
	}
	return u.alone.single(ctx, fn)
}

func (u wrappedUnits) wrapped(fn func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		t := u.db.transaction(ctx)
		t.work = u.wrap(t.work)
		return fn(ctx)
	}
}

type wrappedDatabase struct {
	database
	wrap func(w work) work
}

func (d wrappedDatabase) begin(ctx context.Context, level sql.IsolationLevel) (work, error) {
	w, err := d.database.begin(ctx, level)
	if err != nil {
		return nil, err
	}
	return d.wrap(w), nil
}

// OnStatements calls at before and after each statement of a transaction and before and after each commit, with the
// first words of the statement. at does not return if the process ends there. It is called before the database is used.
func OnStatements(db *DB, at func(point string)) {
	wrapWork(db, true, func(w work) work { return &pointedWork{w, at} })
}

type pointedWork struct {
	work
	at func(point string)
}

func (w *pointedWork) exec(ctx context.Context, query string, args []any) (int64, error) {
	words := firstWords(query)
	w.at("before " + words)
	defer w.at("after " + words)
	return w.work.exec(ctx, query, args)
}

func (w *pointedWork) query(ctx context.Context, keep lite.Keeping, query string, args []any, each func(row) error) error {
	words := firstWords(query)
	w.at("before " + words)
	defer w.at("after " + words)
	return w.work.query(ctx, keep, query, args, each)
}

func (w *pointedWork) commit() error {
	if _, is := w.work.(postgresStatement); is { // it has committed itself
		return w.work.commit()
	}
	w.at("before the commit")
	err := w.work.commit()
	if err == nil {
		w.at("after the commit")
	}
	return err
}

// Statements calls seen with each statement of a database, outside of transactions, too. It is called before the database is
// used.
func Statements(db *DB, seen func(query string, args []any)) {
	wrapWork(db, true, func(w work) work { return &seenWork{w, seen} })
	db.database = seenDatabase{db.database, seen}
}

type seenDatabase struct {
	database
	seen func(query string, args []any)
}

func (d seenDatabase) query(ctx context.Context, keep lite.Keeping, query string, args []any, each func(row) error) error {
	d.seen(query, args)
	return d.database.query(ctx, keep, query, args, each)
}

type seenWork struct {
	work
	seen func(query string, args []any)
}

func (w *seenWork) exec(ctx context.Context, query string, args []any) (int64, error) {
	w.seen(query, args)
	return w.work.exec(ctx, query, args)
}

func (w *seenWork) query(ctx context.Context, keep lite.Keeping, query string, args []any, each func(row) error) error {
	w.seen(query, args)
	return w.work.query(ctx, keep, query, args, each)
}

func firstWords(query string) string {
	words := strings.Fields(query)
	return strings.Join(words[:min(len(words), 4)], " ")
}

type watchedWork struct {
	work
	watch *LockWatch
	held  []string // tables, in the order of their first lock
}

func (w *watchedWork) exec(ctx context.Context, query string, args []any) (int64, error) {
	w.note(query)
	return w.work.exec(ctx, query, args)
}

func (w *watchedWork) query(ctx context.Context, keep lite.Keeping, query string, args []any, each func(row) error) error {
	w.note(query)
	return w.work.query(ctx, keep, query, args, each)
}

var locking = regexp.MustCompile(`(?i)\b(?:INSERT INTO|UPDATE|DELETE FROM) +([a-z_]+)|\bFROM ([a-z_]+) (?:[^()]|\([^()]*\))*? FOR NO KEY UPDATE`)

// tablesOf returns the tables whose rows a statement locks, in its order.
func tablesOf(query string) (tables []string) {
	for _, m := range locking.FindAllStringSubmatch(query, -1) {
		if table := cmp.Or(m[1], m[2]); table != "SET" && table != "SKIP" {
			tables = append(tables, table)
		}
	}
	return tables
}

func (w *watchedWork) note(query string) {
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	for _, table := range tablesOf(query) {
		rank := slices.Index(lockOrder, table)
		if rank < 0 {
			continue
		}
		if slices.Contains(w.held, table) {
			continue
		}
		for _, before := range w.held {
			w.watch.seen[before+" "+table] = true
			if slices.Index(lockOrder, before) > rank {
				w.watch.wrong = append(w.watch.wrong, fmt.Sprintf("a unit locks %s after %s: %s", table, before, query))
			}
		}
		w.held = append(w.held, table)
	}
}

func TestTablesOf(t *testing.T) {
	for query, want := range map[string]string{
		lockUsers: "users", lockStripes: "lock_stripes", lockBoth: "users lock_stripes",
		"SELECT 1 FROM users": "",
		"UPDATE access_tokens SET revoked = TRUE WHERE id IN (SELECT id FROM access_tokens WHERE (a OR b = (SELECT c FROM d)) ORDER BY id FOR NO KEY UPDATE)": "access_tokens",
		"INSERT INTO a (b) VALUES ($1) ON CONFLICT (b) DO UPDATE SET c = 1":                                                                                   "a",
		"DELETE FROM a WHERE b IN (SELECT b FROM a LIMIT $1 FOR UPDATE SKIP LOCKED)":                                                                          "a",
	} {
		if got := strings.Join(tablesOf(query), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestLockOrderIsWatched(t *testing.T) {
	for name, c := range map[string]struct {
		statements []string
		wrong      bool
	}{
		"in order":      {[]string{lockUsers, "UPDATE access_tokens SET x = 1", "UPDATE users SET x = 1", "INSERT INTO outbox (x) VALUES (1)"}, false},
		"out of order":  {[]string{"INSERT INTO outbox (x) VALUES (1)", "UPDATE access_tokens SET x = 1"}, true},
		"user too late": {[]string{"UPDATE access_tokens SET x = 1", "UPDATE users SET x = 1"}, true},
		"own tables":    {[]string{lockUsers, "UPDATE outbox SET x = 1", "UPDATE contacts SET x = 1"}, false},
	} {
		w := &LockWatch{seen: map[string]bool{}}
		unit := &watchedWork{watch: w}
		for _, s := range c.statements {
			unit.note(s)
		}
		if (len(w.wrong) > 0) != c.wrong {
			t.Errorf("%s: %q", name, w.wrong)
		}
	}
}
