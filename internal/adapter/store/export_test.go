// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

// Bearers reads the bearers of tokens together, as callers do who come at the same time. On
// PostgreSQL the caller with a context that has ended gets no answer.
func Bearers(ctx context.Context, db *DB, callers []context.Context, tokens []string, now time.Time) (list []token.Bearer, found []bool, errs []error) {
	if j := db.signers.joint; j != nil {
		asked := make([]*read[bearerSnapshot], len(tokens))
		for i, id := range tokens {
			asked[i] = &read[bearerSnapshot]{ctx: callers[i], key: id, at: millis(now)}
		}
		j.readAll(slices.Clone(asked))
		for _, q := range asked {
			list, found, errs = append(list, q.answer.value.bearer), append(found, q.answer.found), append(errs, q.answer.err)
		}
		return list, found, errs
	}
	asked := make([]*lookup[bearerSnapshot], len(tokens))
	for i, id := range tokens {
		asked[i] = &lookup[bearerSnapshot]{ctx: callers[i], key: id, at: millis(now), answer: make(chan foundOf, 1)}
	}
	db.signers.readAll(ctx, asked)
	for _, q := range asked {
		select {
		case a := <-q.answer:
			list, found, errs = append(list, a.value.bearer), append(found, a.found), append(errs, a.err)
		default:
			list, found, errs = append(list, token.Bearer{}), append(found, false), append(errs, q.ctx.Err())
		}
	}
	return list, found, errs
}

type foundOf = found[bearerSnapshot]

// MostFew is mostFew.
const MostFew = mostFew

// MostPrepared is mostPrepared.
const MostPrepared = mostPrepared

// AddEntries adds audit entries with one statement, as callers do who come at the same
// time.
func AddEntries(ctx context.Context, db *DB, entries []audit.Entry) (errs []error) {
	list := make([]*change, len(entries))
	for i, e := range entries {
		list[i] = &change{Audit{db}.unit(ctx, e).entry, make(chan changed, 1)}
	}
	db.entries.runAll(ctx, list)
	for _, c := range list {
		errs = append(errs, (<-c.answer).err)
	}
	return errs
}

// AddPrepared adds objects with one statement, as callers do who come at the same time, and reports
// which of them were added.
func AddPrepared(ctx context.Context, db *DB, objects []*signing.PreparedRecord, caller signing.Quota) ([]bool, error) {
	var rows [][]any
	for _, p := range objects {
		rows = append(rows, Prepared{db}.addition(ctx, p, holding{caller.Objects, caller.Bytes}, audit.Beside{Entry: &audit.Entry{RequestID: p.ID}}))
	}
	return Prepared{db}.addRows(ctx, rows)
}

// SpendPrepared spends objects with one statement, as callers do who come at the same time, and reports
// which of them were spent.
func SpendPrepared(ctx context.Context, db *DB, ids []string, now time.Time, wrong int) ([]bool, error) {
	var rows [][]any
	for _, id := range ids {
		rows = append(rows, Prepared{db}.spending(ctx, id, "", now, wrong, audit.Beside{Entry: &audit.Entry{RequestID: id}}))
	}
	return Prepared{db}.spendRows(ctx, rows)
}

// Plans returns how often the sessions of a pool of one connection ran statements with a
// text in them by a plan for any argument, and by one for the very arguments.
func Plans(t testing.TB, db *DB, like string) (general, special int64) {
	t.Helper()
	_, _, err := one(t.Context(), db, func(r row) (struct{}, error) { return struct{}{}, r.Scan(&general, &special) },
		"SELECT COALESCE(SUM(generic_plans), 0), COALESCE(SUM(custom_plans), 0) FROM pg_prepared_statements WHERE statement LIKE $1 AND statement NOT LIKE '%pg_prepared%'", like)
	if err != nil {
		t.Fatal(err)
	}
	return general, special
}

// Exec runs a statement past the units of the store.
func Exec(db *DB, ctx context.Context, query string, args ...any) error {
	_, err := db.exec(ctx, query, args...)
	return err
}

// SessionSettings returns settings of a session of the pool.
func SessionSettings(t testing.TB, db *DB, names ...string) string {
	t.Helper()
	var values []string
	for _, name := range names {
		v, _, err := one(t.Context(), db, scalar[string], "SELECT current_setting($1)", name)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return strings.Join(values, " ")
}

// MigrationSettings returns settings of a session that migrates.
func MigrationSettings(t testing.TB, db *DB, names ...string) string {
	t.Helper()
	m, err := db.database.migrating(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.end()
	var values []string
	for _, name := range names {
		var v string
		if err := m.pool.QueryRowContext(t.Context(), "SELECT current_setting($1)", name).Scan(&v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return strings.Join(values, " ")
}

// Next is a release after this one: its migrations are those of this program and one more.
type Next struct{ text string }

// NextRelease returns the release whose last migration has a text.
func NextRelease(text string) Next { return Next{text} }

// NextVersion is the version of the last migration of a Next.
func NextVersion(t testing.TB) int64 {
	t.Helper()
	list, err := (&DB{engine: sqliteEngine}).migrations()
	if err != nil {
		t.Fatal(err)
	}
	return list[len(list)-1].version + 1
}

func (n Next) migrations(e engine) ([]migration, error) {
	list, err := (&DB{engine: e}).migrations()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%04d_next.sql", list[len(list)-1].version+1)
	more, err := readMigrations(fstest.MapFS{name: {Data: []byte(n.text)}}, e)
	return append(list, more...), err
}

// Migrate is DB.Migrate of the release.
func (n Next) Migrate(ctx context.Context, db *DB) error {
	list, err := n.migrations(db.engine)
	if err != nil {
		return err
	}
	return db.apply(ctx, list)
}

// Migrated is DB.Migrated of the release.
func (n Next) Migrated(ctx context.Context, db *DB) error {
	list, err := n.migrations(db.engine)
	if err != nil {
		return err
	}
	return db.migrated(ctx, list)
}

// MigrateTo applies the migrations of the release up to a version.
func (n Next) MigrateTo(ctx context.Context, db *DB, version int64) error {
	list, err := n.migrations(db.engine)
	if err != nil {
		return err
	}
	return db.apply(ctx, slices.DeleteFunc(list, func(m migration) bool { return m.version > version }))
}

// Repeatable is a migration that each interruption repeats from its beginning.
type Repeatable struct {
	Version    int64
	Statements int
	migration  migration
}

// Repeatables returns the migrations of the release for PostgreSQL whose statements are on their own.
func (n Next) Repeatables(t testing.TB) (list []Repeatable) {
	t.Helper()
	all, err := n.migrations(postgresEngine)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.alone {
			list = append(list, Repeatable{m.version, len(m.statements), m})
		}
	}
	return list
}

// Begin runs the first statements of the migration and leaves it there.
func (r Repeatable) Begin(ctx context.Context, db *DB, statements int) error {
	m, err := db.database.migrating(ctx)
	if err != nil {
		return err
	}
	defer m.end()
	for _, s := range r.migration.statements[:statements] {
		if err := m.alone(m.held, s); err != nil {
			return fmt.Errorf("%s: %w", s.text, err)
		}
	}
	return nil
}

// Setting returns a setting of the PostgreSQL session of a snapshot.
func (s *Snapshot) Setting(t *testing.T, name string) (value string) {
	t.Helper()
	err := s.each(t.Context(), "SHOW "+name, func(r *sql.Rows) error { return r.Scan(&value) })
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// RarestTerm returns the number of the term that a search begins with, when it counts words up to each of the bounds.
func RarestTerm(ctx context.Context, s Users, bounds []int, terms []user.Term) (int, error) {
	return s.rarestTerm(ctx, terms, bounds)
}

// SwapPlan returns how SQLite carries out the exchange of a sealed record.
func SwapPlan(ctx context.Context, db *DB, c vault.Column) (string, error) {
	list, err := allUnprepared(ctx, db, func(r row) (detail string, err error) {
		var n int64
		err = r.Scan(&n, &n, &n, &detail)
		return detail, err
	}, "EXPLAIN QUERY PLAN "+swap(c), "row", []byte("old"), []byte("new"))
	return strings.Join(list, "; "), err
}
