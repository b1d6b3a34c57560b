// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
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

// TestMigrateAgain interrupts each migration after each statement. The next call starts it
// from its beginning and makes the same schema.
func TestMigrateAgain(t *testing.T) {
	cluster := storetest.PostgreSQL(t)
	want := schema(t, server(t, cluster.Migrated(t)))
	url := cluster.Database(t)
	db := open(t, url)
	for _, m := range store.Repeatables(t) {
		if err := store.MigrateTo(t.Context(), db, m.Version-1); err != nil {
			t.Fatal(err)
		}
		for n := range m.Statements {
			if err := m.Begin(t.Context(), db, n+1); err != nil {
				t.Fatalf("migration %d, interrupted after statement %d before: %v", m.Version, n, err)
			}
		}
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := schema(t, server(t, url)); got != want {
		t.Errorf("after interruptions the schema is\n%s\nwant\n%s", got, want)
	}
}

// TestMigrateInvalidIndex stops a migration while it builds an index. The next one builds
// the index again.
func TestMigrateInvalidIndex(t *testing.T) {
	url := storetest.PostgreSQL(t).Database(t)
	pool, db := server(t, url), open(t, url)
	if err := store.MigrateTo(t.Context(), db, 18); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "INSERT INTO user_groups (name, title, created_at) VALUES ('g', '', 0)")
	writer, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Rollback()
	exec(t, writer, "INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, created_at) VALUES ('u', 'u', 'u', 'u', 'g', FALSE, FALSE, 0)")

	const invalid = "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('users_in_group_next') AND NOT indisvalid)"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- db.Migrate(ctx) }()
	await(t, pool, invalid)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted migration: %v", err)
	}
	exec(t, writer, "UPDATE users SET lock_at = 7")
	if err := writer.Commit(); err != nil {
		t.Fatal(err)
	}
	await(t, pool, invalid) // an unfinished index is left
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var valid bool
	var definition string
	if err := pool.QueryRowContext(t.Context(), "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = 'users_in_group'::regclass").Scan(&valid, &definition); err != nil {
		t.Fatal(err)
	}
	if !valid || !strings.Contains(definition, "lock_at") {
		t.Errorf("valid %t: %s", valid, definition)
	}
	await(t, pool, "SELECT to_regclass('users_in_group_next') IS NULL")
}

// TestMigrateTakesTurns checks the lease: a process waits while another has it, takes it
// over after its end, and does not commit after it lost it.
func TestMigrateTakesTurns(t *testing.T) {
	url := storetest.PostgreSQL(t).Database(t)
	pool, db := server(t, url), open(t, url)
	if err := store.MigrateTo(t.Context(), db, 20); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "INSERT INTO migration_lock (id, lease, leased_until) VALUES (1, 'other', 99999999999999)")
	bounded, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := db.Migrate(bounded); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another process migrates: %v", err)
	}
	await(t, pool, "SELECT MAX(version_id) = 20 FROM goose_db_version")
	// The other process was killed, and its lease has ended.
	exec(t, pool, "UPDATE migration_lock SET leased_until = $1", time.Now().Add(-time.Hour).UnixMilli())
	reader, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	exec(t, reader, "LOCK TABLE audit IN ACCESS SHARE MODE") // 0021 waits for it
	ended := make(chan error, 1)
	go func() { ended <- db.Migrate(t.Context()) }()
	await(t, pool, "SELECT lease <> 'other' FROM migration_lock")
	exec(t, pool, "UPDATE migration_lock SET lease = 'thief', leased_until = 99999999999999")
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "took over") {
		t.Errorf("a process that lost its lease: %v", err)
	}
	await(t, pool, "SELECT MAX(version_id) = 20 FROM goose_db_version")
	exec(t, pool, "UPDATE migration_lock SET leased_until = 0")
	if err := errors.Join(db.Migrate(t.Context()), db.Migrated(t.Context())); err != nil {
		t.Error(err)
	}
	await(t, pool, "SELECT NOT EXISTS (SELECT 1 FROM migration_lock)")
}

// TestMigrateGivesWay checks that a migration that waits for a lock does not keep others
// behind it waiting.
func TestMigrateGivesWay(t *testing.T) {
	url := storetest.PostgreSQL(t).Database(t)
	pool, db := server(t, url), open(t, url)
	if err := store.MigrateTo(t.Context(), db, 20); err != nil {
		t.Fatal(err)
	}
	reader, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	exec(t, reader, "LOCK TABLE audit IN ACCESS SHARE MODE")
	ended := make(chan error, 1)
	go func() { ended <- db.Migrate(t.Context()) }()
	for range 3 { // the migration waits, and again
		await(t, pool, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'audit'::regclass AND NOT granted)")
		exec(t, pool, "SELECT 1 FROM audit LIMIT 1") // waits behind the migration, and ends although reader goes on
		await(t, pool, "SELECT NOT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'audit'::regclass AND NOT granted)")
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
			files := fstest.MapFS{"9001_portions.sql": {Data: []byte(`-- +goose NO TRANSACTION
				CREATE TABLE IF NOT EXISTS numbers (n BIGINT NOT NULL PRIMARY KEY, done BOOLEAN NOT NULL);
				INSERT INTO numbers (n, done) VALUES (1, FALSE), (2, FALSE), (3, FALSE), (4, FALSE), (5, FALSE);
				-- +portions
				UPDATE numbers SET done = TRUE WHERE n IN (SELECT n FROM numbers WHERE NOT done LIMIT 2);
				CREATE TABLE checked (n BIGINT NOT NULL CHECK (n = 0));
				INSERT INTO checked (n) SELECT COUNT(*) FROM numbers WHERE NOT done;`)}}
			if err := store.MigrateWith(t.Context(), db, files); err != nil {
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
			engine.exec(t, url, "DELETE FROM goose_db_version WHERE version_id = 17")
			db := open(t, url)
			for _, err := range []error{db.Migrate(t.Context()), db.Migrated(t.Context())} {
				if err == nil || !strings.Contains(err.Error(), "0017") {
					t.Errorf("%v, want the name of the migration", err)
				}
			}
		})
	}
}
