// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// tokensOf adds users with a token each and returns the ids of the tokens.
func tokensOf(t *testing.T, db *store.DB, n int) (ids []string) {
	t.Helper()
	users, tokens := store.Users{DB: db}, store.Tokens{DB: db}
	if err := users.AddGroup(t.Context(), user.Group{Name: "Default"}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		u := user.User{ID: fmt.Sprint("user ", i), Login: fmt.Sprint("login ", i), Group: "Default"}
		if err := users.AddUser(t.Context(), u, u.Login); err != nil {
			t.Fatal(err)
		}
		r := token.Record{ID: fmt.Sprint("token ", i), UserID: u.ID, ExpiresAt: time.Now().Add(time.Hour)}
		if added, err := tokens.AddToken(t.Context(), r, token.Proof{Delegated: true, Granted: true, Now: time.Now()}); err != nil || !added {
			t.Fatal(added, err)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// TestGatheredLookups checks the answers to callers who read together: each gets its own
// row, an unknown key is not found, and a row that cannot be read is the error of those who
// asked for it only.
func TestGatheredLookups(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		testGatheredLookups(t, storetest.PostgreSQL(t).Migrated(t), "pgx", true)
	})
	t.Run("SQLite", func(t *testing.T) {
		testGatheredLookups(t, storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")), "sqlite", false)
	})
}

// testGatheredLookups is the test for one engine. leaves: a caller who has left gets no answer.
func testGatheredLookups(t *testing.T, url, driver string, leaves bool) {
	db := storetest.Open(t, url)
	ids := tokensOf(t, db, 3)
	admin, err := sql.Open(driver, strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.ExecContext(t.Context(), "INSERT INTO user_policies (user_id, kind, actions, notifiers) VALUES ('user 1', 'operation', 1, 'no JSON')"); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	here := t.Context()
	list, found, errs := store.Bearers(t.Context(), db, []context.Context{here, here, here, gone, here, here, here},
		[]string{ids[2], "unknown", ids[1], ids[0], ids[0], ids[2], ids[1]}, time.Now())
	for i, want := range []struct{ user, err string }{{user: "user 2"}, {}, {err: "invalid character"}, {user: "user 0", err: "canceled"}, {user: "user 0"}, {user: "user 2"}, {err: "invalid character"}} {
		switch {
		case want.err != "" && (leaves || want.user == ""):
			if errs[i] == nil || !strings.Contains(errs[i].Error(), want.err) {
				t.Errorf("caller %d: error %v, want %q", i, errs[i], want.err)
			}
		case errs[i] != nil || list[i].User.ID != want.user || found[i] != (want.user != ""):
			t.Errorf("caller %d: %q, %v, %v; want %q", i, list[i].User.ID, found[i], errs[i], want.user)
		}
	}
	// Through the front: hostile keys, and a caller who left.
	snapshots := store.Snapshots{DB: db}
	for _, id := range []string{"", "\x00", "\xff", "a' OR TRUE --", strings.Repeat("x", 1<<20)} {
		if _, _, err := snapshots.BearerByToken(t.Context(), id, time.Now()); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("token %.20q: %v", id, err)
		}
	}
	if _, _, err := snapshots.BearerByToken(gone, ids[0], time.Now()); leaves && !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	// Inside a transaction the statement sees what the transaction wrote.
	if err := (store.Tokens{DB: db}).Atomic(t.Context(), lock.User("user 0"), func(ctx context.Context) error {
		if err := (store.Tokens{DB: db}).RevokeTokens(ctx, "user 0"); err != nil {
			return err
		}
		b, _, err := snapshots.BearerByToken(ctx, ids[0], time.Now())
		if err == nil && !b.Token.Revoked {
			t.Error("a lookup inside a transaction does not see its changes")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestLookupsSeeTheirPast checks that a lookup reads what was committed before its call, also if
// others read at the same moment.
func TestLookupsSeeTheirPast(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")) },
		"PostgreSQL": func(t *testing.T) string { return storetest.PostgreSQL(t).Migrated(t) },
	} {
		t.Run(name, func(t *testing.T) {
			db := storetest.Open(t, url(t))
			ids := tokensOf(t, db, 8)
			snapshots, tokens := store.Snapshots{DB: db}, store.Tokens{DB: db}
			var readers sync.WaitGroup
			stop := make(chan struct{})
			for i := range 2 * len(ids) {
				readers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						k := i % len(ids)
						b, snap, err := snapshots.BearerByToken(t.Context(), ids[k], time.Now())
						if want := fmt.Sprint("user ", k); err != nil || b.User.ID != want || snap.UserID != want {
							t.Errorf("token %d: %q, %v", k, b.User.ID, err)
							return
						}
					}
				})
			}
			for k, id := range ids {
				if b, _, err := snapshots.BearerByToken(t.Context(), id, time.Now()); err != nil || b.Token.Revoked {
					t.Errorf("token %d before: revoked %v, %v", k, b.Token.Revoked, err)
				}
				if err := tokens.RevokeTokens(t.Context(), fmt.Sprint("user ", k)); err != nil {
					t.Error(err)
				}
				if b, _, err := snapshots.BearerByToken(t.Context(), id, time.Now()); err != nil || !b.Token.Revoked {
					t.Errorf("token %d after: revoked %v, %v", k, b.Token.Revoked, err)
				}
			}
			close(stop)
			readers.Wait()
		})
	}
}

// TestGatheredPlans checks that PostgreSQL plans a gathered statement a few times and not
// for each number of callers: planning takes longer than the statement.
func TestGatheredPlans(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	ids := tokensOf(t, storetest.Open(t, url), 1)
	db := openLimited(t, url, store.Options{Connections: 1})
	const rounds = 20
	for i := range rounds {
		n := i%3 + 1
		callers, tokens, entries := make([]context.Context, n), make([]string, n), make([]audit.Entry, n)
		for k := range n {
			callers[k], tokens[k] = t.Context(), ids[0]
		}
		store.Bearers(t.Context(), db, callers, tokens, time.Now())
		for _, err := range store.AddEntries(t.Context(), db, entries) {
			if err != nil {
				t.Fatal(err)
			}
		}
		objects, names := preparedObjects(3*i, n, "user")
		added, err := store.AddPrepared(t.Context(), db, objects, signing.Quota{Objects: wide, Bytes: wide})
		if err != nil || slices.Contains(added, false) {
			t.Fatalf("added %v, %v", added, err)
		}
		spent, err := store.SpendPrepared(t.Context(), db, names, time.Now(), 3)
		if err != nil || slices.Contains(spent, false) {
			t.Fatalf("spent %v, %v", spent, err)
		}
	}
	for _, text := range []string{"SELECT w.n%", "INSERT INTO audit%", "%INSERT INTO prepared %", "%UPDATE prepared %"} {
		if general, special := store.Plans(t, db, text); general != rounds-5 || special != 5 {
			t.Errorf("%s: %d by the general plan, %d by others; want %d and the 5 that PostgreSQL tries", text, general, special, rounds-5)
		}
	}
}

// preparedObjects returns objects of one byte, and their names.
func preparedObjects(first, n int, caller string) (list []*signing.PreparedRecord, names []string) {
	for i := range n {
		p := &signing.PreparedRecord{ID: fmt.Sprintf("%s-%04d", caller, first+i), Caller: caller, Type: "CAdES", Job: []byte("job"), Document: "d", Bytes: 1,
			CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}
		list, names = append(list, p), append(names, p.ID)
	}
	return list, names
}

// TestGatheredPrepared adds and spends objects of several callers with one statement: each quota is kept,
// each object is spent once, and each change has its entry.
func TestGatheredPrepared(t *testing.T) {
	db := storetest.Open(t, storetest.PostgreSQL(t).Migrated(t))
	s := store.Prepared{DB: db}
	noted := func() (ids []string) {
		list, err := store.Audit{DB: db}.Last(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			ids = append(ids, e.RequestID)
		}
		return ids
	}
	a, names := preparedObjects(0, 2, "a")
	b, _ := preparedObjects(0, 3, "b")
	three := signing.Quota{Objects: 3, Bytes: 1 << 20}
	if added, err := store.AddPrepared(t.Context(), db, a, three); err != nil || !slices.Equal(added, []bool{true, true}) {
		t.Fatalf("added %v, %v", added, err)
	}
	// Two more of a exceed its quota, and b has room.
	more, moreNames := preparedObjects(2, 2, "a")
	added, err := store.AddPrepared(t.Context(), db, []*signing.PreparedRecord{more[0], b[0], more[1], b[1], b[2]}, three)
	if err != nil || !slices.Equal(added, []bool{false, true, false, true, true}) {
		t.Fatalf("added %v, %v", added, err)
	}
	if d := cmp.Diff(append(slices.Clone(names), "b-0000", "b-0001", "b-0002"), noted()); d != "" {
		t.Error(d)
	}
	// One of the two is added alone.
	results := atOnceNumbered(2, func(i int) error {
		added, err := s.AddPrepared(t.Context(), more[i], signing.Quota{Objects: wide, Bytes: wide}, three, audit.Beside{Entry: &audit.Entry{RequestID: more[i].ID}})
		if err == nil && !added {
			err = errors.New("no room")
		}
		return err
	})
	if (results[0] == nil) == (results[1] == nil) {
		t.Errorf("of two objects where one has room: %v", results)
	}
	// An object that is there twice is spent once, and so is one in two statements.
	before := len(noted())
	spent, err := store.SpendPrepared(t.Context(), db, []string{names[1], "b-0000", names[1], "unknown"}, time.Now(), 3)
	if err != nil || spent[0] == spent[2] || !spent[1] || spent[3] {
		t.Errorf("spent %v, %v", spent, err)
	}
	if n := len(noted()) - before; n != 2 {
		t.Errorf("%d entries of two objects", n)
	}
	var twice atomic.Int64
	all := append([]string{names[0], names[1], "b-0000", "b-0001", "b-0002"}, moreNames...)
	for _, err := range atOnceNumbered(8, func(i int) error {
		list := slices.Clone(all)
		if i%2 == 0 {
			slices.Reverse(list)
		}
		spent, err := store.SpendPrepared(t.Context(), db, list, time.Now(), 3)
		for _, is := range spent {
			if is {
				twice.Add(1)
			}
		}
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if twice.Load() != 4 { // names[0], b-0001, b-0002 and one of more
		t.Errorf("%d objects were spent, want 4", twice.Load())
	}
	// Everything was given back.
	again, _ := preparedObjects(10, 3, "a")
	if added, err := store.AddPrepared(t.Context(), db, again, three); err != nil || slices.Contains(added, false) {
		t.Errorf("after all were spent: %v, %v", added, err)
	}
}

// TestGatheredEntries checks that entries of one statement keep their order, and that an
// entry that the database refuses is the error of its caller only.
func TestGatheredEntries(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	db := storetest.Open(t, url)
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var entries []audit.Entry
	var want []string
	for i := range 300 {
		entries = append(entries, audit.Entry{RequestID: fmt.Sprint(i), Operation: "Sign"})
		want = append(want, fmt.Sprint(i))
	}
	kept := func() (ids []string) {
		list, err := store.Audit{DB: db}.Last(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			ids = append(ids, e.RequestID)
		}
		return ids
	}
	for _, err := range store.AddEntries(t.Context(), db, entries) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, kept()); d != "" {
		t.Error(d)
	}
	if _, err := admin.ExecContext(t.Context(), "ALTER TABLE audit ADD CHECK (operation <> 'refused')"); err != nil {
		t.Fatal(err)
	}
	errs := store.AddEntries(t.Context(), db, []audit.Entry{{RequestID: "a"}, {RequestID: "b", Operation: "refused"}, {RequestID: "c"}})
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("errors %v, want one for the second entry only", errs)
	}
	if d := cmp.Diff([]string{"a", "c"}, kept()[300:]); d != "" {
		t.Error(d)
	}
}

// TestEntriesOfManyCallers checks that entries of each caller keep their order, however
// they gather, and that Close finishes those that were accepted.
func TestEntriesOfManyCallers(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	db := openLimited(t, url, store.Options{})
	log := store.Audit{DB: db}
	const callers, each = 20, 20
	var waits [callers][]func(context.Context) error
	for _, err := range atOnceNumbered(callers, func(c int) error {
		for i := range each {
			e := audit.Entry{RequestID: fmt.Sprint(c), Detail: fmt.Sprint(i)}
			if i%2 == 0 {
				if err := log.Record(t.Context(), e); err != nil {
					return err
				}
				continue
			}
			waits[c] = append(waits[c], log.Begin(t.Context(), e))
		}
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	for _, list := range waits {
		for _, wait := range list {
			if err := wait(t.Context()); err != nil {
				t.Errorf("an accepted entry: %v", err)
			}
		}
	}
	if err := log.Record(t.Context(), audit.Entry{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	kept, err := store.Audit{DB: storetest.Open(t, url)}.Last(t.Context(), 2*callers*each)
	if err != nil || len(kept) != callers*each {
		t.Fatalf("%d entries, %v", len(kept), err)
	}
	next := map[string]int{}
	for _, e := range kept {
		if e.Detail != fmt.Sprint(next[e.RequestID]) {
			t.Fatalf("request %s: entry %s comes after %d others", e.RequestID, e.Detail, next[e.RequestID])
		}
		next[e.RequestID]++
	}
}

// TestLostAnswerOfEntries checks entries whose statement was not answered: their callers
// get an outage, and the entries, which the server has, are not added again.
func TestLostAnswerOfEntries(t *testing.T) {
	t.Parallel() // it waits most of the time
	url := storetest.PostgreSQL(t).Migrated(t)
	direct := storetest.Open(t, url)
	proxy := storetest.NewProxy(t, url)
	db := openLimited(t, proxy.URL, store.Options{Limits: store.Limits{Call: 10 * time.Second}})
	log := store.Audit{DB: db}
	if err := log.Record(patience(t), audit.Entry{Operation: "before"}); err != nil {
		t.Fatal(err)
	}
	muted := proxy.Mute("the entry without an answer")
	wait := log.Begin(patience(t), audit.Entry{Operation: "the entry without an answer"})
	<-muted
	if err := wait(patience(t)); !isOutage(err) {
		t.Errorf("%v, want an outage", err)
	}
	if err := log.Record(patience(t), audit.Entry{Operation: "after"}); err != nil {
		t.Errorf("a later entry: %v", err)
	}
	if err := db.Close(); err != nil { // waits for the statement
		t.Error(err)
	}
	list, err := store.Audit{DB: direct}.Last(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range list {
		count[e.Operation]++
	}
	if count["before"] != 1 || count["after"] != 1 || count["the entry without an answer"] != 1 {
		t.Errorf("entries %v", count)
	}
}
