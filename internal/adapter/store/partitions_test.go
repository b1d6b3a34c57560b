// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
)

// partitionsVersion is the migration that gives the audit log its partitions.
const partitionsVersion = 23

// oldEntry adds an entry as releases before the partitions do.
const oldEntry = `INSERT INTO audit (at, request_id, operation, phase, outcome, object, remote, detail,
	user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor, correlation_id)
	VALUES ($1, $2, 'Sign', 'done', 'ok', '', '', '', 'user', 'login', 'Default', FALSE, '', '', '', 0, '', '')`

// partitionOf returns the partition of the entry of a request.
func partitionOf(t *testing.T, admin *sql.DB, request string) (name string) {
	t.Helper()
	if err := admin.QueryRowContext(t.Context(), "SELECT tableoid::regclass::text FROM audit WHERE request_id = $1", request).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}

func requestIDs(t *testing.T, db *store.DB) (ids []string) {
	t.Helper()
	list, err := store.Audit{DB: db}.Last(t.Context(), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		ids = append(ids, e.RequestID)
	}
	return ids
}

// TestPartitions checks that processes make the partitions of the next months together,
// and that an entry of any time is kept.
func TestPartitions(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	db := storetest.Open(t, url)
	log := store.Audit{DB: db}
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	now := time.Now().UTC()
	month := func(n int) time.Time {
		return time.Date(now.Year(), now.Month()+time.Month(n), 15, 0, 0, 0, 0, time.UTC)
	}
	record := func(id string, at time.Time) {
		t.Helper()
		if err := log.Record(t.Context(), audit.Entry{RequestID: id, At: at}); err != nil {
			t.Fatal(err)
		}
	}
	record("early", month(3)) // keeps its month in audit_other
	record("distant", time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))
	record("old", time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC))
	for range 2 {
		for _, err := range atOnce(4, func() error { return store.Audit{DB: openLimited(t, url, store.Options{})}.MakePartitions(t.Context()) }) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	record("now", now)
	record("two", month(2))
	record("three", month(3))
	for id, want := range map[string]string{
		"early": "audit_other", "distant": "audit_other", "old": "audit_first", "now": "audit_first",
		"two": "audit_" + month(2).Format("2006_01"), "three": "audit_other",
	} {
		if got := partitionOf(t, admin, id); got != want {
			t.Errorf("the entry %q is in %s, want %s", id, got, want)
		}
	}
	if d := cmp.Diff([]string{"early", "distant", "old", "now", "two", "three"}, requestIDs(t, db)); d != "" {
		t.Error(d)
	}
	var indexes string
	if err := admin.QueryRowContext(t.Context(), `SELECT string_agg(a.amname || ' ' || CAST(i.indisunique AS TEXT), ', ' ORDER BY a.amname, i.indisunique)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam WHERE i.indrelid = CAST($1 AS regclass)`,
		"audit_"+month(2).Format("2006_01")).Scan(&indexes); err != nil || indexes != "brin false, btree false, btree false, btree true" {
		t.Errorf("indexes of a partition: %s, %v", indexes, err)
	}
}

// TestPlanOfUserEntries reads the entries of a user whom the statistics do not know. It must not sort
// all of them.
func TestPlanOfUserEntries(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	db := storetest.Open(t, url)
	if err := (store.Audit{DB: db}).MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	now := time.Now().UTC()
	next := time.Date(now.Year(), now.Month()+2, 15, 0, 0, 0, 0, time.UTC)
	const write = `INSERT INTO audit (at, request_id, operation, phase, outcome, object, remote, detail, user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor, correlation_id)
		SELECT CASE i % 2 WHEN 0 THEN CAST($1 AS BIGINT) ELSE CAST($2 AS BIGINT) END, '', '', 'done', '', '', '', '', `
	for _, statement := range []string{
		write + "'user ' || i, '', '', FALSE, '', '', '', 0, '', '' FROM generate_series(1, 100000) AS n(i)",
		"ANALYZE audit",
		write + "'heavy', '', '', FALSE, '', '', '', 0, '', '' FROM generate_series(1, 10000) AS n(i)",
	} {
		var args []any
		if strings.HasPrefix(statement, write) {
			args = []any{now.UnixMilli(), next.UnixMilli()}
		}
		if _, err := admin.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	c, err := admin.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "PREPARE entries (TEXT, BIGINT) AS SELECT id FROM audit WHERE user_id = $1 AND phase = 'done' AND id < $2 ORDER BY id DESC LIMIT 50"); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		if _, err := c.ExecContext(t.Context(), "SET plan_cache_mode = "+mode); err != nil {
			t.Fatal(err)
		}
		var plan string
		if err := c.QueryRowContext(t.Context(), "EXPLAIN (FORMAT JSON) EXECUTE entries ('heavy', 1000000)").Scan(&plan); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, `"Merge Append"`) || strings.Contains(plan, `"Node Type": "Sort"`) {
			t.Errorf("%s sorts the entries:\n%s", mode, plan)
		}
	}
}

// TestPartitionsBesideAMaker checks for missing partitions while another process makes one,
// and so has locked the table of all other entries. Writers add entries meanwhile. A step
// that waits ends with an error of lock_timeout.
func TestPartitionsBesideAMaker(t *testing.T) {
	db, _, _, admin := twoProcesses(t, storetest.PostgreSQL(t).Database(t))
	log := store.Audit{DB: db}
	if err := log.MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	making, err := admin.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer making.Rollback()
	for _, statement := range []string{
		"CREATE TABLE audit_later (LIKE audit INCLUDING DEFAULTS)",
		"ALTER TABLE audit_later ADD PRIMARY KEY (id)",
		"ALTER TABLE audit ATTACH PARTITION audit_later FOR VALUES FROM (8000000000000) TO (8100000000000)",
	} {
		if _, err := making.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.MakePartitions(t.Context()); err != nil {
		t.Error(err)
	}
	if err := log.Record(t.Context(), audit.Entry{RequestID: "beside", At: time.Now()}); err != nil {
		t.Error(err)
	}
}

// TestPartitionsBesideOldRelease checks the migration to partitions while processes of the
// release before go on writing: no entry fails or is lost, the order and the privileges
// stay, and the writers of both releases find each other's entries.
func TestPartitionsBesideOldRelease(t *testing.T) {
	url := storetest.PostgreSQL(t).Database(t)
	if err := store.MigrateTo(t.Context(), openLimited(t, url, store.Options{}), partitionsVersion-1); err != nil {
		t.Fatal(err)
	}
	old, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	for _, statement := range []string{"CREATE ROLE partition_reader", "CREATE ROLE partition_writer", "GRANT SELECT ON audit TO partition_reader", "GRANT INSERT, SELECT ON audit TO partition_writer"} {
		if _, err := old.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	defer old.ExecContext(context.Background(), "DROP OWNED BY partition_reader, partition_writer; DROP ROLE partition_reader, partition_writer")
	var last atomic.Int64
	add := func() error {
		n := last.Add(1)
		_, err := old.ExecContext(t.Context(), oldEntry, time.Now().UnixMilli(), fmt.Sprint(n))
		return err
	}
	for range 50 {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	migrated := make(chan struct{})
	writing := make(chan []error)
	go func() {
		writing <- atOnce(4, func() error {
			for {
				select {
				case <-migrated:
					return nil
				default:
					if err := add(); err != nil {
						return err
					}
				}
			}
		})
	}()
	db := storetest.Open(t, url) // migrates
	close(migrated)
	for _, err := range <-writing {
		if err != nil {
			t.Errorf("a writer of the old release: %v", err)
		}
	}
	if err := add(); err != nil {
		t.Errorf("the old release after the migration: %v", err)
	}
	if err := (store.Audit{DB: db}).Record(t.Context(), audit.Entry{RequestID: "new", At: time.Now()}); err != nil {
		t.Error(err)
	}
	ids := requestIDs(t, db)
	n := int(last.Load())
	if len(ids) != n+1 || ids[n] != "new" || ids[n-1] != fmt.Sprint(n) {
		t.Errorf("%d entries that end with %v, want %d of the old release, then the new one", len(ids), ids[max(0, len(ids)-3):], n)
	}
	if first := ids[:50]; !slices.Equal(first, numbered(50)) {
		t.Errorf("the entries from before: %v", first)
	}
	for _, c := range []struct {
		role, statement string
		allowed         bool
	}{
		{"partition_reader", "SELECT COUNT(*) FROM audit", true},
		{"partition_reader", strings.NewReplacer("$1", "1", "$2", "'x'").Replace(oldEntry), false},
		{"partition_writer", strings.NewReplacer("$1", "1", "$2", "'x'").Replace(oldEntry), true},
		{"partition_writer", "DELETE FROM audit", false},
	} {
		_, err := old.ExecContext(t.Context(), "BEGIN; SET LOCAL ROLE "+c.role+"; "+c.statement+"; ROLLBACK")
		if (err == nil) != c.allowed {
			t.Errorf("%s: %s: %v", c.role, c.statement, err)
		}
		old.ExecContext(t.Context(), "ROLLBACK")
	}
}

func numbered(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(i+1))
	}
	return list
}

// TestPartitionsResumed checks that the migration to partitions can be interrupted after
// each of its statements and run again, whatever was written before.
func TestPartitionsResumed(t *testing.T) {
	list := store.Repeatables(t)
	migration := list[slices.IndexFunc(list, func(m store.Repeatable) bool { return m.Version == partitionsVersion })]
	for done := range migration.Statements + 1 {
		url := storetest.PostgreSQL(t).Database(t)
		db := openLimited(t, url, store.Options{})
		if err := store.MigrateTo(t.Context(), db, partitionsVersion-1); err != nil {
			t.Fatal(err)
		}
		admin, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		if _, err := admin.ExecContext(t.Context(), oldEntry, 1, "1"); err != nil {
			t.Fatal(err)
		}
		if err := migration.Begin(t.Context(), db, done); err != nil {
			t.Fatal(err)
		}
		if err := db.Migrate(t.Context()); err != nil {
			t.Errorf("after %d statements: %v", done, err)
		}
		if err := (store.Audit{DB: db}).Record(t.Context(), audit.Entry{RequestID: "2"}); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([]string{"1", "2"}, requestIDs(t, db)); d != "" {
			t.Errorf("after %d statements: %s", done, d)
		}
		var shape string
		if err := admin.QueryRowContext(t.Context(), `SELECT string_agg(c.relname, ' ' ORDER BY c.relname) || ' ' || (SELECT COUNT(*) FROM pg_index WHERE NOT indisvalid)
			FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'audit_first'::regclass`).Scan(&shape); err != nil || shape != "audit_first_by_at audit_first_by_object audit_first_by_user audit_pkey 0" {
			t.Errorf("after %d statements: indexes %s, %v", done, shape, err)
		}
	}
}

// TestAuditIsAppendOnly checks that no statement of the store changes or deletes an entry.
func TestAuditIsAppendOnly(t *testing.T) {
	changes := regexp.MustCompile(`(?i)\b(UPDATE|DELETE\s+FROM|TRUNCATE(\s+TABLE)?|MERGE\s+INTO)\s+audit(_\w+)?\b|INTO\s+audit\b[^;]*\bDO\s+UPDATE`)
	if !changes.MatchString("DELETE FROM audit WHERE") || changes.MatchString("INSERT INTO audit (at)") {
		t.Fatal("the expression finds nothing")
	}
	files := 0
	for _, pattern := range []string{"*.go", "migrations/*.sql"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files++
			if found := changes.Find(text); found != nil {
				t.Errorf("%s: %q", name, found)
			}
		}
	}
	if files < 30 {
		t.Errorf("only %d files were read", files)
	}
}
