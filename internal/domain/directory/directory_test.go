// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/directory"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

// source is a directory in memory.
type source struct {
	entries []directory.Entry
	broken  error  // after the entries
	during  func() // while it is read; optional
}

func (s *source) Entries(_ context.Context, take func(list []directory.Entry) error) error {
	if s.during != nil {
		s.during()
	}
	if err := take(s.entries); err != nil {
		return err
	}
	return s.broken
}

type methods struct{ store.Tokens }

func (m methods) GrantMethod(ctx context.Context, userID, name string) error {
	return m.SetMethod(ctx, userID, signin.StoredMethod{Name: name, Level: signin.LevelPrimary})
}

func (m methods) FirstMethod(ctx context.Context, userID, name string) error {
	return m.AddMethod(ctx, userID, signin.StoredMethod{Name: name, Level: signin.LevelPrimary})
}

type notices struct{}

func (notices) Emit(context.Context, notify.Event) error { return nil }

func (notices) Order(context.Context, notify.Direct) error { return nil }

type bench struct {
	*directory.Service
	source *source
	db     *store.DB
	now    time.Time
}

func newBench(t testing.TB, db *store.DB) *bench {
	t.Helper()
	b := &bench{source: &source{}, db: db, now: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return b.now }
	naming, err := user.NewNaming(user.DefaultComponents(), false)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := vault.NewRing("k", map[string][]byte{"k": make([]byte, 32)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	users, contacts, sessions := store.Users{DB: db}, store.Contacts{DB: db}, session.New(store.Tokens{DB: db})
	people := &user.Service{
		Store: users, GroupStore: users, LoginStore: users, NameStore: users, SearchStore: users, Batches: users,
		Sessions: sessions, Confirmations: storetest.Unconfirmed{}, Events: notices{}, Naming: naming, LocalIssuer: "realsts", Now: clock, Rand: rand.Reader,
	}
	people.Contacts, err = contact.New(contact.DefaultSettings(), contact.Deps{
		Store: contacts, Codes: contacts, Reach: people, Methods: sessions, Confirmations: storetest.Unconfirmed{}, Notices: notices{}, Vault: ring, Now: clock, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"Staff", "Guests"} {
		if _, err := people.AddGroup(t.Context(), group, ""); err != nil {
			t.Fatal(err)
		}
	}
	b.Service = &directory.Service{
		Rules:  directory.Rules{Name: "corp", Match: directory.MatchNone, LockAfter: 72 * time.Hour, Every: time.Hour, MostMissing: 0.1},
		Source: b.source, Store: store.Directories{Users: users}, Users: people, Methods: methods{store.Tokens{DB: db}}, Audit: store.Audit{DB: db}, Now: clock, Rand: rand.Reader,
		Noted: func(error) {}, Failed: func(err error) { t.Error(err) },
	}
	return b
}

// person is an entry.
func person(n int) directory.Entry {
	return directory.Entry{ID: fmt.Sprint("id", n), DN: fmt.Sprintf("uid=p%d,dc=example", n), Login: fmt.Sprint("p", n), Name: fmt.Sprint("Person ", n), Group: "Staff", Email: fmt.Sprintf("p%d@example.org", n)}
}

func (b *bench) sync(t *testing.T, p directory.Plan, want directory.Result) (changes []directory.Change) {
	t.Helper()
	p.Tell = func(c directory.Change) { changes = append(changes, c) }
	got, err := b.Sync(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%+v, want %+v; %+v", got, want, changes)
	}
	return changes
}

func (b *bench) user(t *testing.T, login string) user.User {
	t.Helper()
	u, err := b.Users.ByLogin(t.Context(), login)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSync(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for n := range 20 {
		b.source.entries = append(b.source.entries, person(n))
	}
	b.source.entries[3].Group = ""         // of no group
	b.source.entries[4].Disabled = true    // and unknown
	b.source.entries[5].Login = "p0"       // the login of another
	b.source.entries[6].Group = "Unknown"  // a group that is not there
	b.source.entries[7].Login = "a\x00\nb" // no login
	want := directory.Result{Entries: 20, Added: 15, Left: 2, Refused: 3}
	b.sync(t, directory.Plan{Dry: true}, want)
	if list, err := b.Users.Page(t.Context(), user.Query{Limit: 100}); err != nil || len(list) != 0 {
		t.Errorf("a dry run has added %d users, %v", len(list), err)
	}
	b.sync(t, directory.Plan{}, want)
	b.sync(t, directory.Plan{}, directory.Result{Entries: 20, Unchanged: 15, Left: 2, Refused: 3})
	u := b.user(t, "p1")
	b.source.entries[1].Name, b.source.entries[1].Group, b.source.entries[1].Login, b.source.entries[1].DN = "Another Name", "Guests", "renamed", "uid=x"
	b.source.entries[2].DN = "uid=moved" // the user is as before
	want = directory.Result{Entries: 20, Unchanged: 14, Changed: 1, Left: 2, Refused: 3}
	b.sync(t, directory.Plan{Dry: true}, want)
	if same := b.user(t, "p1"); same != u {
		t.Errorf("a dry run has changed %+v to %+v", u, same)
	}
	b.sync(t, directory.Plan{}, want)
	if x := b.user(t, "renamed"); x.ID != u.ID || x.DisplayName != "Another Name" || x.Group != "Guests" {
		t.Errorf("%+v", x)
	}
}

// TestLookAlikes has entries whose logins look like one of a user, or of each other. The owners of logins are read at once
// for all entries of a transaction.
func TestLookAlikes(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	if _, err := b.Users.Add(t.Context(), user.Account{Login: "pop", Group: "Staff"}); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		b.source.entries = append(b.source.entries, person(n))
	}
	b.source.entries[1].Login = "рор" // Cyrillic, as the user
	b.source.entries[2].Login = "xax"
	b.source.entries[3].Login = "хах" // Cyrillic, as the entry before
	changes := b.sync(t, directory.Plan{}, directory.Result{Entries: 4, Added: 2, Refused: 2})
	for _, c := range changes {
		if c.Err != nil && !fault.Is(c.Err, fault.DuplicateLogin) {
			t.Errorf("%s: %v", c.Login, c.Err)
		}
	}
	b.sync(t, directory.Plan{}, directory.Result{Entries: 4, Unchanged: 2, Refused: 2})
}

// TestVanish has people vanish, come back, and be locked by an operator meanwhile.
func TestVanish(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for n := range 10 {
		b.source.entries = append(b.source.entries, person(n))
	}
	all := b.source.entries
	b.sync(t, directory.Plan{}, directory.Result{Entries: 10, Added: 10})
	b.source.entries = all[3:]
	b.source.broken = errors.New("the connection broke")
	if _, err := b.Sync(t.Context(), directory.Plan{}); !errors.Is(err, b.source.broken) {
		t.Errorf("%v", err)
	}
	b.source.broken = nil
	b.sync(t, directory.Plan{Dry: true}, directory.Result{Entries: 7, Unchanged: 7, Missing: 3})
	b.sync(t, directory.Plan{}, directory.Result{Entries: 7, Unchanged: 7, Missing: 3}) // nothing was noted before
	b.now = b.now.Add(71 * time.Hour)
	b.sync(t, directory.Plan{}, directory.Result{Entries: 7, Unchanged: 7})
	if err := b.Users.Lock(t.Context(), b.user(t, "p0").ID); err != nil {
		t.Fatal(err)
	}
	b.source.entries = all[2:]
	b.sync(t, directory.Plan{}, directory.Result{Entries: 8, Unchanged: 8})
	b.now = b.now.Add(time.Hour)
	b.sync(t, directory.Plan{}, directory.Result{Entries: 8, Unchanged: 8, Locked: 1})
	for login, want := range map[string]bool{"p0": true, "p1": true, "p2": false, "p3": false} {
		if u := b.user(t, login); u.Locked != want {
			t.Errorf("%s: %+v", login, u)
		}
	}
	b.source.entries = all
	b.sync(t, directory.Plan{}, directory.Result{Entries: 10, Unchanged: 9, Unlocked: 1})
	for login, want := range map[string]bool{"p0": true, "p1": false} { // an operator has locked p0
		if u := b.user(t, login); u.Locked != want {
			t.Errorf("after the return, %s: %+v", login, u)
		}
	}
	b.source.entries = nil
	if _, err := b.Sync(t.Context(), directory.Plan{}); !errors.Is(err, directory.ErrTooMany) || !strings.Contains(err.Error(), "of 10 linked users 10 are missing") {
		t.Errorf("an empty directory: %v", err)
	}
	b.source.entries = all
	b.sync(t, directory.Plan{}, directory.Result{Entries: 10, Unchanged: 10})
	b.source.entries = nil
	b.sync(t, directory.Plan{AnyMissing: true}, directory.Result{Missing: 10})
}

// TestMatch joins users who were there before, and never operators.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		match directory.Match
		want  directory.Result
		// linked is the login of the user who follows the entry with the login p0.
		linked string
	}{
		{directory.MatchNone, directory.Result{Entries: 3, Refused: 3}, ""},
		{directory.MatchLogin, directory.Result{Entries: 3, Linked: 2, Refused: 1}, "p0"},
		{directory.MatchEmail, directory.Result{Entries: 3, Refused: 3}, ""},
	} {
		t.Run(string(c.match), func(t *testing.T) {
			b := newBench(t, storetest.SQLite(t))
			b.Match = c.match
			for _, a := range []user.Account{{Login: "p0", Group: "Staff"}, {Login: "P1", Group: "Guests"}, {Login: "p2", Operator: true, Groups: []string{"Staff"}}} {
				if _, err := b.Users.Add(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			b.source.entries = []directory.Entry{person(0), person(1), person(2)}
			b.sync(t, directory.Plan{Dry: true}, c.want)
			b.sync(t, directory.Plan{}, c.want)
			if of, _, err := b.Store.LinkOf(t.Context(), b.user(t, "p0").ID); err != nil || (of != "") != (c.linked != "") {
				t.Errorf("linked with %q, %v", of, err)
			}
			if of, _, err := b.Store.LinkOf(t.Context(), b.user(t, "p2").ID); err != nil || of != "" {
				t.Errorf("an operator is linked with %q, %v", of, err)
			}
		})
	}
	t.Run("address", func(t *testing.T) {
		b := newBench(t, storetest.SQLite(t))
		b.Match = directory.MatchEmail
		if _, err := b.Users.Add(t.Context(), user.Account{Login: "other", Group: "Staff", Contacts: []contact.Contact{{Type: contact.EmailAddress, Value: "P0@example.org", Primary: true}}}); err != nil {
			t.Fatal(err)
		}
		b.source.entries = []directory.Entry{person(0)}
		b.sync(t, directory.Plan{}, directory.Result{Entries: 1, Linked: 1})
		b.user(t, "p0") // has the login of the entry now
	})
}

// TestTurn has one process at a time synchronize, when it is due.
func TestTurn(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *store.DB{
		"SQLite":     func(t *testing.T) *store.DB { return storetest.SQLite(t) },
		"PostgreSQL": func(t *testing.T) *store.DB { return storetest.Open(t, storetest.PostgreSQL(t).Migrated(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, open(t))
			b.source.entries = []directory.Entry{person(0)}
			turn := func(force, want bool) {
				t.Helper()
				if _, ran, err := b.Turn(t.Context(), directory.Plan{}, force); err != nil || ran != want {
					t.Errorf("ran: %t, %v, want %t", ran, err, want)
				}
			}
			turn(false, true)
			turn(false, false)
			turn(true, true)
			b.now = b.now.Add(time.Hour)
			turn(false, true)
			// Another process, while this one reads the directory: also when it is due, or forced. A process
			// that was killed has the turn until its lease ends.
			other, minute := *b.Service, time.Minute
			other.Source = &source{}
			b.source.during = func() {
				for _, c := range []struct {
					after       time.Duration
					force, want bool
				}{{0, false, false}, {0, true, false}, {minute - time.Millisecond, true, false}, {minute, true, true}} {
					other.Now = func() time.Time { return b.now.Add(c.after) }
					if _, ran, err := other.Turn(t.Context(), directory.Plan{AnyMissing: true}, c.force); err != nil || ran != c.want {
						t.Errorf("another process after %s, forced: %t: ran: %t, %v, want %t", c.after, c.force, ran, err, c.want)
					}
				}
			}
			b.now = b.now.Add(2 * time.Hour)
			if _, ran, err := b.Turn(t.Context(), directory.Plan{}, false); !ran || err != nil {
				t.Errorf("ran: %t, %v", ran, err)
			}
			// The process that lost its lease has not replaced the result of the other one.
			if state, err := b.Store.SyncState(t.Context(), "corp"); err != nil || !state.EndedAt.Equal(b.now.Add(minute)) || state.Result.Entries != 0 {
				t.Errorf("%+v, %v", state, err)
			}
			b.source.during = nil
			b.source.broken = errors.New("the connection broke")
			if _, ran, err := b.Turn(t.Context(), directory.Plan{}, true); err == nil || !ran {
				t.Errorf("ran: %t, %v", ran, err)
			}
			state, err := b.Store.SyncState(t.Context(), "corp")
			if err != nil || state.Error != "the connection broke" || !state.DueAt.Equal(b.now.Add(time.Minute)) || state.Result.Entries != 1 {
				t.Errorf("%+v, %v", state, err)
			}
		})
	}
}

// stream is a directory of n people that are made while they are read.
type stream int

func (s stream) Entries(_ context.Context, take func(list []directory.Entry) error) error {
	for n := 0; n < int(s); n += 500 {
		var list []directory.Entry
		for i := n; i < min(n+500, int(s)); i++ {
			list = append(list, person(i))
		}
		if err := take(list); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkSync synchronizes 100,000 people: all new, then all unchanged.
func BenchmarkSync(b *testing.B) { synchronize(b, 100_000, b.Loop) }

// TestManyPeople is BenchmarkSync for fewer people, with a bound on memory.
func TestManyPeople(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	once := false
	synchronize(t, 3000, func() bool { once = !once; return once })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d MiB more in use", grown>>20)
	}
}

func synchronize(t testing.TB, n int, loop func() bool) {
	for loop() {
		b := newBench(t, storetest.SQLite(t))
		b.Source = stream(n)
		for _, want := range []directory.Result{{Entries: n, Added: n}, {Entries: n, Unchanged: n}} {
			began := time.Now()
			got, err := b.Sync(t.Context(), directory.Plan{})
			if err != nil || got != want {
				t.Fatalf("%+v, %v", got, err)
			}
			t.Logf("%s in %s", got, time.Since(began).Round(time.Millisecond))
		}
	}
}
