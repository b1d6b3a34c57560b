// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/testsize"
)

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *store.DB { return storetest.SQLite(t) })
}

func TestPostgreSQL(t *testing.T) {
	cluster := storetest.PostgreSQL(t)
	storetest.Run(t, func(t *testing.T) *store.DB {
		db := storetest.Open(t, cluster.Emptied(t))
		watch := store.WatchLocks(db)
		t.Cleanup(func() { watch.Check(t) })
		return db
	})
}

func TestSnapshot(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			storetest.Snapshot(t, storetest.Open(t, url), storetest.Open(t, url))
		})
	}
}

func TestConfirmedOnce(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.empty(t)
			storetest.ConfirmedOnce(t, storetest.Open(t, url), storetest.Open(t, url))
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"", "unknown kind"},
		{"mysql://root:secret@host/db", "unknown kind"},
		{"sqlite:", "want a file"},
		{"sqlite::memory:", "want a file"},
		{"sqlite:" + filepath.Join(t.TempDir(), "no", "folder", "x.db"), "no such file"},
		{"postgres://u:secret@127.0.0.1:notaport/db", "opening the database"},
	} {
		db, err := store.Open(t.Context(), store.Options{URL: c.url})
		if err == nil {
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v, want one with %q and without the password", c.url, err, c.want)
		}
	}
}

// TestSQLiteFile checks that any file name works, even with characters that have a
// meaning in an address.
func TestSQLiteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c=d#e%41.db")
	storetest.Open(t, "sqlite:"+path)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", filepath.Base(name), info.Mode())
		}
	}
}

func TestMigrated(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.empty(t)
			db, err := store.Open(t.Context(), store.Options{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var schema *store.SchemaError
			if err := db.Migrated(t.Context()); !errors.As(err, &schema) || schema.Have != 0 || schema.Newer() || !strings.Contains(err.Error(), "tamga migrate") {
				t.Errorf("empty database: %v", err)
			}
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.Migrated(t.Context()); err != nil {
				t.Errorf("migrated database: %v", err)
			}
			engine.exec(t, url, "INSERT INTO schema_versions (version, applied_at) VALUES (9999, 0)")
			if err := db.Migrated(t.Context()); !errors.As(err, &schema) || !schema.Newer() || !strings.Contains(err.Error(), "later release") {
				t.Errorf("newer database: %v", err)
			}
			if err := db.Migrate(t.Context()); err != nil {
				t.Errorf("migrating a newer database: %v, want it left alone", err)
			}
			engine.exec(t, url, "DELETE FROM schema_versions WHERE version = 9999")
			if err := changed.Migrated(t.Context(), db); !errors.As(err, &schema) || schema.Newer() || !strings.Contains(err.Error(), "tamga migrate") {
				t.Errorf("older database: %v", err)
			}
		})
	}
}

// TestMigrateAtOnce checks that processes that start together may all migrate. Each
// database here represents a process: they share nothing but the file or the server.
func TestMigrateAtOnce(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			const processes = 6
			rounds := 4
			if testsize.Of() < testsize.Whole {
				rounds = 1
			}
			for range rounds {
				url := engine.empty(t)
				gate := make(chan struct{})
				errs := make(chan error)
				for range processes {
					db, err := store.Open(t.Context(), store.Options{URL: url})
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						<-gate
						errs <- errors.Join(db.Migrate(t.Context()), db.Migrated(t.Context()), db.Close())
					}()
				}
				close(gate)
				for range processes {
					if err := <-errs; err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// engine is a kind of database that tests may damage.
type engine struct {
	name, driver string
	empty        func(t *testing.T) string // address of an empty database
	migrated     func(t *testing.T) string // the same with the schema of this release
	reused       func(t *testing.T) string // the same, for a test that keeps the schema: see storetest.Cluster.Emptied
	source       func(url string) string   // its address as the driver reads it
}

func engines(t *testing.T) []engine {
	cluster := storetest.PostgreSQL(t)
	return []engine{
		{"SQLite", "sqlite",
			func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "tamga.db") },
			func(t *testing.T) string { return storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")) },
			func(t *testing.T) string { return storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")) },
			func(url string) string { return strings.TrimPrefix(url, "sqlite:") }},
		{"PostgreSQL", "pgx",
			func(t *testing.T) string { return cluster.Database(t) },
			func(t *testing.T) string { return cluster.Migrated(t) },
			func(t *testing.T) string { return cluster.Emptied(t) },
			func(url string) string { return url }},
	}
}

// exec runs a statement past the store.
func (e engine) exec(t *testing.T, url, statement string) {
	t.Helper()
	pool, err := sql.Open(e.driver, e.source(url))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkAudit shows what the group committer is for: all waiting callers share one
// flush to disk.
func BenchmarkAudit(b *testing.B) {
	entry := audit.Entry{Operation: "Sign", Phase: audit.Done, Outcome: audit.OK, RequestID: "0123456789abcdef", Detail: strings.Repeat("x", 100)}
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			log := store.Audit{DB: storetest.SQLite(b)}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var done sync.WaitGroup
			for range callers {
				done.Go(func() {
					for left.Add(-1) >= 0 {
						if err := log.Record(context.Background(), entry); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			done.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// BenchmarkAtomic does the same work without sharing.
func BenchmarkAtomic(b *testing.B) {
	db := storetest.SQLite(b)
	log := store.Audit{DB: db}
	for b.Loop() {
		if err := db.Atomic(b.Context(), func(ctx context.Context) error {
			return log.Record(ctx, audit.Entry{Operation: "Sign"})
		}); err != nil {
			b.Fatal(err)
		}
	}
}
