// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/testsize"
)

// The audit log of the benchmark: entries of 100,000 users. With -short it is a hundredth
// of that.
const (
	logEntries = 2_000_000
	logUsers   = 100_000
)

// BenchmarkAuditLog reads the newest entries of a user in a large audit log, and of one who
// has none, searches for what no entry has, and adds entries from 32 callers. The processor
// time of a reading includes that of the server only on SQLite.
//
//	go test -run '^$' -bench AuditLog ./internal/adapter/store
func BenchmarkAuditLog(b *testing.B) {
	entries, users := logEntries, logUsers
	if testsize.Of() == testsize.Quick {
		entries, users = entries/100, users/100
	}
	userID := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n*7919%users) }
	for _, engine := range []struct {
		name string
		url  func(b *testing.B) string
		fill string // $1: the users, $2: the entries
	}{
		{"SQLite", func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "tamga.db") }, `
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2)
			INSERT INTO audit (at, request_id, operation, phase, outcome, object, remote, detail, user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor, correlation_id)
			SELECT 1790000000000 + i, 'VOFSFTOAAYCGOF4FCYSYSR5PMM', 'SignDocument', CASE i % 2 WHEN 0 THEN 'done' ELSE 'attempt' END, 'ok', 'default certificate', '127.0.0.1', '',
				printf('%08d-0000-4000-8000-000000000000', i / 2 * 7919 % $1), 'login', 'Default', FALSE, '771d5c5c-aabc-4116-ad69-06380bb31abc', 'client', 'password', 1234, '', '' FROM n`},
		{"PostgreSQL", func(b *testing.B) string {
			return storetest.OwnPostgreSQL(b, "fsync=on", "max_wal_size=8GB", "shared_buffers=512MB").Database(b, "TEMPLATE template0 LC_COLLATE 'C'")
		}, `
			INSERT INTO audit (at, request_id, operation, phase, outcome, object, remote, detail, user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor, correlation_id)
			SELECT 1790000000000 + i, 'VOFSFTOAAYCGOF4FCYSYSR5PMM', 'SignDocument', CASE i % 2 WHEN 0 THEN 'done' ELSE 'attempt' END, 'ok', 'default certificate', '127.0.0.1', '',
				lpad(CAST(i / 2 * 7919 % $1 AS TEXT), 8, '0') || '-0000-4000-8000-000000000000', 'login', 'Default', FALSE, '771d5c5c-aabc-4116-ad69-06380bb31abc', 'client', 'password', 1234, '', ''
			FROM generate_series(1, CAST($2 AS BIGINT)) i`},
	} {
		b.Run(engine.name, func(b *testing.B) {
			url := engine.url(b)
			log := store.Audit{DB: storetest.Open(b, url)}
			driver := "pgx"
			if engine.name == "SQLite" {
				driver, url = "sqlite", strings.TrimPrefix(url, "sqlite:")
			}
			admin, err := sql.Open(driver, url)
			if err != nil {
				b.Fatal(err)
			}
			defer admin.Close()
			if _, err := admin.ExecContext(b.Context(), engine.fill, int64(users), int64(entries)); err != nil {
				b.Fatal(err)
			}
			if driver == "pgx" {
				if _, err := admin.ExecContext(b.Context(), "VACUUM ANALYZE"); err != nil {
					b.Fatal(err)
				}
			}
			for _, c := range []struct {
				name   string
				filter func(i int) store.AuditFilter
				want   int
			}{
				{"OfUser", func(i int) store.AuditFilter { return store.AuditFilter{UserID: userID(i), OutcomesOnly: true} }, entries / users / 2},
				{"OfUnknownUser", func(int) store.AuditFilter { return store.AuditFilter{UserID: userID(0)[:35] + "f"} }, 0},
				{"Newest", func(int) store.AuditFilter { return store.AuditFilter{} }, 100},
				{"NoOperation", func(int) store.AuditFilter { return store.AuditFilter{Operation: "ReadAudit", OutcomesOnly: true} }, 0},
				{"NoOutcome", func(int) store.AuditFilter { return store.AuditFilter{Outcome: "access_denied"} }, 0},
				{"NoLogin", func(int) store.AuditFilter { return store.AuditFilter{Login: "operator"} }, 0},
				{"OldLogin", func(i int) store.AuditFilter {
					return store.AuditFilter{Login: "operator", Before: int64(entries - i*7919%(entries/2)), Since: time.UnixMilli(1790000000000)}
				}, 0},
				{"OldOperation", func(i int) store.AuditFilter {
					until := int64(entries - i*7919%(entries/2))
					return store.AuditFilter{Operation: "ReadAudit", Since: time.UnixMilli(1790000000000 + until - 1000), Until: time.UnixMilli(1790000000000 + until)}
				}, 0},
				{"Since", func(int) store.AuditFilter {
					return store.AuditFilter{Since: time.UnixMilli(1790000000000 + int64(entries) - 50)}
				}, 51},
			} {
				b.Run(c.name, func(b *testing.B) {
					used := processorTime(b)
					b.ResetTimer()
					for i := range b.N {
						list, _, err := log.Read(b.Context(), c.filter(i), 100)
						if err != nil || len(list) != c.want {
							b.Fatalf("%d entries, want %d: %v", len(list), c.want, err)
						}
					}
					b.ReportMetric((processorTime(b)-used).Seconds()*1e3/float64(b.N), "cpu-ms/op")
				})
			}
			b.Run("Record", func(b *testing.B) {
				var left atomic.Int64
				left.Store(int64(b.N))
				var all sync.WaitGroup
				for range 32 {
					all.Go(func() {
						for i := left.Add(-1); i >= 0; i = left.Add(-1) {
							e := audit.Entry{RequestID: "VOFSFTOAAYCGOF4FCYSYSR5PMM", Operation: "SignDocument", Object: "default certificate", Principal: audit.Principal{UserID: userID(int(i)), TokenID: userID(0)}}
							if err := log.Record(b.Context(), e); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
			})
		})
	}
}
