// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
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
			_, planned := db.Plan(t.Context())
			for _, err := range []error{db.Migrate(t.Context()), db.Migrated(t.Context()), planned} {
				if err == nil || !strings.Contains(err.Error(), "0017") {
					t.Errorf("%v, want the name of the migration", err)
				}
			}
		})
	}
}

// TestPlan checks that a plan has what is pending and changes nothing.
func TestPlan(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			db := open(t, engine.empty(t))
			plan, err := db.Plan(t.Context())
			if err != nil || plan.Database != engine.name || len(plan.Migrations) == 0 || plan.Migrations[0].Name != "0001_users.sql" || !plan.Migrations[0].Transaction {
				t.Fatalf("empty database: %+v, %v", plan, err)
			}
			all := len(plan.Migrations)
			if err := store.MigrateTo(t.Context(), db, 18); err != nil {
				t.Fatal(err)
			}
			plan, err = db.Plan(t.Context())
			if err != nil || len(plan.Migrations) >= all || plan.Migrations[0].Name != "0019_users_in_group.sql" {
				t.Fatalf("version 18: %+v, %v", plan, err)
			}
			if first := plan.Migrations[0]; engine.driver == "pgx" {
				s := first.Statements[0]
				if first.Transaction || !s.Known || s.Blocks != store.BlocksNothing || s.Cost != store.Scan ||
					!slices.Equal(s.Locks, []store.Lock{{Table: "users", Mode: store.ShareUpdateExclusive}}) {
					t.Errorf("the index of 0019: %+v", s)
				}
			} else if !first.Transaction || first.Statements[0].Blocks != store.BlocksWrites {
				t.Errorf("0019: %+v", first)
			}
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if plan, err := db.Plan(t.Context()); err != nil || len(plan.Migrations) != 0 {
				t.Errorf("migrated database: %+v, %v", plan, err)
			}
		})
	}
}

// TestMigrationsStopNobody checks that migrations can run beside signatures: what stops
// others is over in an instant. Migrations up to 15 are older than any installation.
func TestMigrationsStopNobody(t *testing.T) {
	for _, m := range store.PlanOfEach(t) {
		if m.Name < "0016" {
			continue
		}
		stopped := map[string]bool{}
		for _, s := range m.Statements {
			if !s.Known {
				t.Errorf("%s: nothing says what this statement locks: %s", m.Name, s.Statement)
				continue
			}
			if len(s.Locks) > 0 && s.Cost != store.Instant && (m.Transaction || s.Blocks == store.BlocksWrites || s.Blocks == store.BlocksAll) {
				t.Errorf("%s blocks %s for long (%s, transaction %t): %s", m.Name, s.Blocks, s.Cost, m.Transaction, s.Statement)
			}
			for _, l := range s.Locks {
				if l.Mode >= store.Share {
					stopped[l.Table] = true
				}
			}
		}
		if m.Transaction && len(stopped) > 2 {
			t.Errorf("%s stops %v until the end of its transaction", m.Name, slices.Sorted(maps.Keys(stopped)))
		}
	}
}

// locksHeld returns the locks of a session on the tables of the schema, without those on
// tables of its own transaction.
func locksHeld(t *testing.T, from *sql.DB, pid int) map[string]string {
	t.Helper()
	rows, err := from.QueryContext(t.Context(), `SELECT c.relname, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
		WHERE l.pid = $1 AND l.locktype = 'relation' AND c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace`, pid)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	held := map[string]string{}
	for rows.Next() {
		var table, mode string
		if err := rows.Scan(&table, &mode); err != nil {
			t.Fatal(err)
		}
		// The server writes AccessExclusiveLock, the manual ACCESS EXCLUSIVE.
		mode = strings.TrimSpace(strings.ToUpper(words.Replace(strings.TrimSuffix(mode, "Lock"))))
		if slices.Index(modes, mode) > slices.Index(modes, held[table]) {
			held[table] = mode
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return held
}

var (
	words = strings.NewReplacer("Access", "Access ", "Row", "Row ", "Share", "Share ", "Update", "Update ", "Exclusive", "Exclusive ")
	modes = []string{"", "ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"}
)

// checkLocks runs a statement in a transaction and compares its locks with the expected
// ones.
func checkLocks(t *testing.T, pool *sql.DB, e store.Effect) {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var pid int
	if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	exec(t, tx, e.Statement)
	held := locksHeld(t, pool, pid) // of tables that others see
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if !e.Known {
		t.Logf("%s: unknown: %s", e.Migration, e.Statement)
		return
	}
	want := map[string]string{}
	for _, l := range e.Locks {
		want[l.Table] = l.Mode.String()
	}
	if !maps.Equal(held, want) {
		t.Errorf("%s: %s\nlocks %v, the server has %v", e.Migration, e.Statement, want, held)
	}
}

// TestLocksOfMigrations compares the expected locks of all statements with those that the
// server shows.
func TestLocksOfMigrations(t *testing.T) {
	pool := server(t, storetest.PostgreSQL(t).Database(t))
	for _, e := range store.Effects(t) {
		if strings.Contains(e.Statement, "CONCURRENTLY") {
			exec(t, pool, e.Statement)
			continue
		}
		checkLocks(t, pool, e)
	}
}

// TestLocksOfStatements does the same for statements that no migration has yet.
func TestLocksOfStatements(t *testing.T) {
	pool := server(t, storetest.PostgreSQL(t).Database(t))
	exec(t, pool, `CREATE TABLE a (id BIGINT PRIMARY KEY, n BIGINT, x TEXT);
		CREATE TABLE b (id BIGINT PRIMARY KEY, a BIGINT);
		CREATE TABLE p (id BIGINT, at BIGINT NOT NULL) PARTITION BY RANGE (at);
		CREATE TABLE p1 (id BIGINT, at BIGINT NOT NULL);`)
	for _, e := range store.Effects(t,
		"CREATE INDEX a_n ON a (n)",
		"ALTER INDEX a_n RENAME TO a_m",
		"DROP INDEX a_m",
		"CREATE UNIQUE INDEX a_u ON a (n)",
		"ALTER TABLE a ADD CONSTRAINT a_unique UNIQUE USING INDEX a_u",
		"ALTER TABLE a DROP CONSTRAINT a_unique",
		"ALTER TABLE a ADD COLUMN y BIGINT NOT NULL DEFAULT 0, ADD COLUMN z TEXT DEFAULT 'a, b'",
		"ALTER TABLE a ADD COLUMN r BIGINT DEFAULT random()",
		"ALTER TABLE a ADD COLUMN i BIGINT GENERATED BY DEFAULT AS IDENTITY",
		"ALTER TABLE a ADD COLUMN f BIGINT REFERENCES b (id)",
		"ALTER TABLE a ADD CONSTRAINT positive CHECK (n > 0) NOT VALID",
		"ALTER TABLE a VALIDATE CONSTRAINT positive",
		"ALTER TABLE a ADD CONSTRAINT other CHECK (n > 0)",
		"ALTER TABLE b ADD CONSTRAINT of_a FOREIGN KEY (a) REFERENCES a (id) NOT VALID",
		"ALTER TABLE a ALTER COLUMN y SET DEFAULT 1",
		"ALTER TABLE a ALTER COLUMN y DROP NOT NULL",
		"ALTER TABLE a ALTER COLUMN y SET NOT NULL",
		"ALTER TABLE a ALTER COLUMN y SET STATISTICS 10",
		"ALTER TABLE a ALTER COLUMN y TYPE TEXT",
		"ALTER TABLE a SET (fillfactor = 90)",
		"ALTER TABLE a RENAME COLUMN y TO w",
		"ALTER TABLE a DROP COLUMN w",
		"INSERT INTO a (id, n) VALUES (1, 1)",
		"INSERT INTO a (id, n) SELECT id + 1, 1 FROM p1",
		"UPDATE a SET n = 2",
		"DELETE FROM p1",
		"LOCK TABLE a IN SHARE ROW EXCLUSIVE MODE",
		"ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (10)",
		"CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)",
		"ALTER TABLE p DETACH PARTITION p1",
		"TRUNCATE TABLE p1",
		"DROP TABLE p1",
	) {
		if !e.Known {
			t.Errorf("unknown: %s", e.Statement)
		}
		checkLocks(t, pool, e)
	}
	for _, e := range store.Effects(t, "DO $$ BEGIN END $$", "SELECT 1", "ALTER TABLE a DROP CONSTRAINT a_b_fkey", "ALTER TABLE a CLUSTER ON x", "VACUUM a", "ALTER TABLE a ADD COLUMN n TEXT, CLUSTER ON x") {
		if e.Known || len(e.Locks) > 0 {
			t.Errorf("%s: %+v, want unknown", e.Statement, e)
		}
	}
}

// TestLocksOfConcurrentIndexes looks at an index while it is built and while it is dropped.
func TestLocksOfConcurrentIndexes(t *testing.T) {
	pool := server(t, storetest.PostgreSQL(t).Database(t))
	exec(t, pool, "CREATE TABLE a (id BIGINT PRIMARY KEY, n BIGINT)")
	for _, e := range store.Effects(t, "CREATE INDEX CONCURRENTLY a_n ON a (n)", "DROP INDEX CONCURRENTLY a_n") {
		writer, err := pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Rollback()
		exec(t, writer, "INSERT INTO a (id) VALUES (0)")
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var pid int
		if err := conn.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := conn.ExecContext(t.Context(), e.Statement)
			ended <- err
		}()
		await(t, pool, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted)", pid)
		if got, want := fmt.Sprint(locksHeld(t, pool, pid)), fmt.Sprint(map[string]string{"a": e.Locks[0].Mode.String()}); got != want {
			t.Errorf("%s: the server has %s, want %s", e.Statement, got, want)
		}
		if err := errors.Join(writer.Rollback(), <-ended); err != nil {
			t.Error(err)
		}
	}
}
