// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
)

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
