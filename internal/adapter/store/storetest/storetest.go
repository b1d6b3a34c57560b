// SPDX-License-Identifier: Apache-2.0

// Package storetest tests the behaviour of the store on each engine (Run), and opens
// databases for the tests of other packages (SQLite, SQLiteFile, PostgreSQL, Open). Only
// tests use it.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/user"
)

// start is the time of the clock of every opened database.
var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// suite is the behaviour, by domain package.
var suite = []struct {
	name string
	test func(t *testing.T, open func(t *testing.T) *store.DB)
}{
	{"Atomic", testAtomic},
	{"Committer", testCommitter},
	{"Users", testUsers},
	{"People", testPeople},
	{"Search", testSearch},
	{"Words", Words},
	{"Methods", testMethods},
	{"Tokens", testTokens},
	{"Grants", testGrants},
	{"Oath", testOath},
	{"Policies", testPolicies},
	{"TSPServices", testTSPServices},
	{"Audit", testAudit},
	{"AuditExport", testAuditExport},
	{"Authority", testAuthority},
	{"Keys", testKeys},
	{"Requests", testRequests},
	{"Prepared", testPrepared},
	{"Documents", testDocuments},
	{"Retention", testRetention},
	{"Operations", testOperations},
	{"Answers", testAnswers},
	{"Contacts", testContacts},
	{"Outbox", testOutbox},
	{"Webhooks", testWebhooks},
	{"Captured", testCaptured},
	{"Devices", testDevices},
	{"Browsers", testBrowsers},
	{"Passkeys", testPasskeys},
	{"Reports", testReports},
	{"Zones", testZones},
	{"Confirmations", testConfirmations},
	{"Approvals", testApprovals},
	{"Sealed", testSealed},
	{"Waiting", testWaiting},
}

// Run tests the behaviour. open must return an empty, migrated database each time.
func Run(t *testing.T, open func(t *testing.T) *store.DB) { RunEach(t, 1, open) }

// RunEach runs each nth test of the suite.
func RunEach(t *testing.T, n int, open func(t *testing.T) *store.DB) {
	for i := 0; i < len(suite); i += n {
		s := suite[i]
		t.Run(s.name, func(t *testing.T) { s.test(t, open) })
	}
}

// SQLite opens an empty, migrated database in a temporary file.
func SQLite(t testing.TB) *store.DB {
	t.Helper()
	return Open(t, SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")))
}

// SQLiteFile writes an empty, migrated database to a file and returns its address. The
// file is a copy of one that was migrated once: the migrations take most of the time of a
// short test.
func SQLiteFile(t testing.TB, file string) (url string) {
	t.Helper()
	image, err := migratedFile()
	must(t, err)
	must(t, os.WriteFile(file, image, 0o600))
	return "sqlite:" + file
}

// migratedFile returns the bytes of a migrated SQLite file.
var migratedFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "tamga-sqlite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "tamga.db")
	if err := migrate(context.Background(), "sqlite:"+file); err != nil {
		return nil, err
	}
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return nil, errors.New("the closed database has not moved its write-ahead log into its file")
	}
	return os.ReadFile(file)
})

// migrate makes the schema of an empty database.
func migrate(ctx context.Context, url string) error {
	db, err := store.Open(ctx, store.Options{URL: url})
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(ctx), db.Close())
}

// Open opens the database at an address, migrates it, and closes it at the end of the
// test.
func Open(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: url, Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// cases runs each test on its own database.
type cases []struct {
	name string
	test func(t *testing.T, db *store.DB)
}

func (list cases) run(t *testing.T, open func(t *testing.T) *store.DB) {
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// must fails the test at once on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// group adds a group.
func group(t testing.TB, db *store.DB, name string) {
	t.Helper()
	must(t, store.Users{DB: db}.AddGroup(t.Context(), user.Group{Name: name, CreatedAt: start}))
}

// person adds a user with number n to the group "Default", which must exist.
func person(t testing.TB, db *store.DB, n int) user.User {
	t.Helper()
	u := user.User{
		ID:    fmt.Sprintf("00000000-0000-4000-8000-%012d", n),
		Login: fmt.Sprintf("User%d", n), DisplayName: fmt.Sprintf("User number %d", n),
		Group: "Default", CreatedAt: start.Add(time.Duration(n) * time.Second),
	}
	must(t, store.Users{DB: db}.AddUser(t.Context(), u, user.FoldLogin(u.Login)))
	return u
}

// together runs n functions concurrently and returns their errors.
func together(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-gate
			errs[i] = do(i)
		})
	}
	ready.Wait()
	close(gate)
	done.Wait()
	return errs
}

// canceled returns a context that has ended.
func canceled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
