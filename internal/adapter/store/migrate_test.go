// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
)

// open opens a database without migrating it.
func open(t *testing.T, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// server opens a PostgreSQL database past the store.
func server(t *testing.T, url string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

func exec(t *testing.T, to interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, query string, args ...any) {
	t.Helper()
	if _, err := to.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// await waits until a query is true.
func await(t *testing.T, pool *sql.DB, query string, args ...any) {
	t.Helper()
	for is := false; !is; time.Sleep(time.Millisecond) {
		if err := pool.QueryRowContext(t.Context(), query, args...).Scan(&is); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// schema returns the columns, indexes and constraints of a PostgreSQL database.
func schema(t *testing.T, pool *sql.DB) string {
	t.Helper()
	var text string
	err := pool.QueryRowContext(t.Context(), `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
		SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) AS line FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT indexdef || ' ' || i.indisvalid FROM pg_indexes p JOIN pg_index i ON i.indexrelid = p.indexname::regclass WHERE schemaname = 'public'
		UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
	) AS lines`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// next returns the release after this one. Its migration shows all rules of migrate.go.
func next(t *testing.T) store.Next {
	t.Helper()
	text, err := os.ReadFile("testdata/next.sql")
	if err != nil {
		t.Fatal(err)
	}
	return store.NextRelease(string(text))
}

// TestMigrateAgain interrupts each migration after each statement. The next call starts it
// from its beginning and makes the same schema.
func TestMigrateAgain(t *testing.T) {
	cluster, next := storetest.PostgreSQL(t), next(t)
	uninterrupted := cluster.Migrated(t)
	if err := next.Migrate(t.Context(), open(t, uninterrupted)); err != nil {
		t.Fatal(err)
	}
	want := schema(t, server(t, uninterrupted))
	url := cluster.Database(t)
	db := open(t, url)
	interruptions := 0
	for _, m := range next.Repeatables(t) {
		if err := next.MigrateTo(t.Context(), db, m.Version-1); err != nil {
			t.Fatal(err)
		}
		for n := range m.Statements {
			if err := m.Begin(t.Context(), db, n+1); err != nil {
				t.Fatalf("migration %d, interrupted after statement %d before: %v", m.Version, n, err)
			}
			interruptions++
		}
	}
	if err := errors.Join(next.Migrate(t.Context(), db), next.Migrated(t.Context(), db)); err != nil {
		t.Fatal(err)
	}
	if got := schema(t, server(t, url)); got != want {
		t.Errorf("after interruptions the schema is\n%s\nwant\n%s", got, want)
	}
	if interruptions < 10 || !strings.Contains(want, "users_rank CHECK ((rank >= 0))\n") {
		t.Errorf("%d interruptions lead to\n%s\nwant all statements of the example", interruptions, want)
	}
}

// TestReleaseBefore uses a database that the next release has migrated. This release goes on in it.
func TestReleaseBefore(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url, next := engine.migrated(t), next(t)
			if err := next.Migrate(t.Context(), open(t, url)); err != nil {
				t.Fatal(err)
			}
			var schema *store.SchemaError
			if err := open(t, url).Migrated(t.Context()); !errors.As(err, &schema) || !schema.Newer() {
				t.Errorf("the release before: %v", err)
			}
			storetest.Snapshot(t, storetest.Open(t, url), storetest.Open(t, url))
		})
	}
}

// TestMigrateInvalidIndex stops a migration while it builds an index. The next one builds
// the index again.
func TestMigrateInvalidIndex(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	pool, db, next := server(t, url), open(t, url), next(t)
	exec(t, pool, "INSERT INTO user_groups (name, title, created_at) VALUES ('g', '', 0)")
	reader, err := pool.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	exec(t, reader, "SELECT 1 FROM user_groups") // an index becomes valid after the end of this snapshot

	const invalid = "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('users_in_group_next') AND NOT indisvalid)"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- next.Migrate(ctx, db) }()
	await(t, pool, invalid)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted migration: %v", err)
	}
	exec(t, pool, "INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at) VALUES ('u', 'u', 'u', 'u', 'g', FALSE, FALSE, 7, FALSE, 0)")
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	await(t, pool, invalid) // an unfinished index is left
	if err := next.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	var valid bool
	var definition string
	if err := pool.QueryRowContext(t.Context(), "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = 'users_in_group'::regclass").Scan(&valid, &definition); err != nil {
		t.Fatal(err)
	}
	if !valid || !strings.Contains(definition, "rank") {
		t.Errorf("valid %t: %s", valid, definition)
	}
	await(t, pool, "SELECT to_regclass('users_in_group_next') IS NULL")
}

// changed is a release with a change of the catalog in a transaction.
var changed = store.NextRelease("ALTER TABLE access_tokens ADD COLUMN browser TEXT NOT NULL DEFAULT ''")

// TestMigrateTakesTurns checks the lease: a process waits while another has it, takes it
// over after its end, and does not commit after it lost it.
func TestMigrateTakesTurns(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	pool, db := server(t, url), open(t, url)
	unchanged := fmt.Sprintf("SELECT MAX(version) = %d FROM schema_versions", store.NextVersion(t)-1)
	exec(t, pool, "INSERT INTO migration_lock (id, lease, leased_until) VALUES (1, 'other', 99999999999999)")
	bounded, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := changed.Migrate(bounded, db); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another process migrates: %v", err)
	}
	await(t, pool, unchanged)
	// The other process was killed, and its lease has ended.
	exec(t, pool, "UPDATE migration_lock SET leased_until = $1", time.Now().Add(-time.Hour).UnixMilli())
	reader, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	exec(t, reader, "LOCK TABLE access_tokens IN ACCESS SHARE MODE") // the migration waits for it
	ended := make(chan error, 1)
	go func() { ended <- changed.Migrate(t.Context(), db) }()
	await(t, pool, "SELECT lease <> 'other' FROM migration_lock")
	exec(t, pool, "UPDATE migration_lock SET lease = 'thief', leased_until = 99999999999999")
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "took over") {
		t.Errorf("a process that lost its lease: %v", err)
	}
	await(t, pool, unchanged)
	exec(t, pool, "UPDATE migration_lock SET leased_until = 0")
	if err := errors.Join(changed.Migrate(t.Context(), db), changed.Migrated(t.Context(), db)); err != nil {
		t.Error(err)
	}
	await(t, pool, "SELECT NOT EXISTS (SELECT 1 FROM migration_lock)")
}

// TestMigrateGivesWay checks that a migration that waits for a lock does not keep others
// behind it waiting.
func TestMigrateGivesWay(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	pool, db := server(t, url), open(t, url)
	reader, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	exec(t, reader, "LOCK TABLE access_tokens IN ACCESS SHARE MODE")
	ended := make(chan error, 1)
	go func() { ended <- changed.Migrate(t.Context(), db) }()
	for range 3 { // the migration waits, and again
		await(t, pool, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'access_tokens'::regclass AND NOT granted)")
		exec(t, pool, "SELECT 1 FROM access_tokens LIMIT 1") // waits behind the migration, and ends although reader goes on
		await(t, pool, "SELECT NOT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'access_tokens'::regclass AND NOT granted)")
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestMigratePortions checks that a statement in portions runs until it changes no row.
func TestMigratePortions(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			db := open(t, engine.migrated(t))
			release := store.NextRelease(`-- +no transaction
				CREATE TABLE IF NOT EXISTS numbers (n BIGINT NOT NULL PRIMARY KEY, done BOOLEAN NOT NULL);
				INSERT INTO numbers (n, done) VALUES (1, FALSE), (2, FALSE), (3, FALSE), (4, FALSE), (5, FALSE);
				-- +portions
				UPDATE numbers SET done = TRUE WHERE n IN (SELECT n FROM numbers WHERE NOT done LIMIT 2);
				CREATE TABLE checked (n BIGINT NOT NULL CHECK (n = 0));
				INSERT INTO checked (n) SELECT COUNT(*) FROM numbers WHERE NOT done;`)
			if err := release.Migrate(t.Context(), db); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMissingMigration checks that a schema of another program is refused.
func TestMissingMigration(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			db := open(t, url)
			if err := changed.Migrate(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			engine.exec(t, url, "DELETE FROM schema_versions WHERE version = 1")
			for _, err := range []error{db.Migrate(t.Context()), db.Migrated(t.Context()), changed.Migrate(t.Context(), db), changed.Migrated(t.Context(), db)} {
				if err == nil || !strings.Contains(err.Error(), "0001_tamga.sql was not applied") {
					t.Errorf("%v, want the name of the migration", err)
				}
			}
		})
	}
}

// TestEarlyBuild checks that a database of a build before the first release is refused and not changed.
func TestEarlyBuild(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.empty(t)
			db := open(t, url)
			engine.exec(t, url, "CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id BIGINT NOT NULL, is_applied BOOLEAN NOT NULL)")
			engine.exec(t, url, "INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (1, 1, TRUE)")
			_, opened := store.Open(t.Context(), store.Options{URL: url})
			for what, err := range map[string]error{"Migrate": db.Migrate(t.Context()), "Migrated": db.Migrated(t.Context()), "Open": opened} {
				if !errors.Is(err, store.ErrEarlyBuild) || !strings.Contains(err.Error(), "tamga import") {
					t.Errorf("%s: %v", what, err)
				}
			}
			// Another program may keep its versions in a table of this name beside the tables of Tamga.
			engine.exec(t, url, "ALTER TABLE goose_db_version RENAME TO elsewhere")
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatalf("something was made: %v", err)
			}
			engine.exec(t, url, "ALTER TABLE elsewhere RENAME TO goose_db_version")
			if err := open(t, url).Migrated(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
