// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/directory"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
)

// TestLocksOfOperators has an operator lock and unlock a user whom the directory disables, misses and has back. Each step is
// one of a letter: d and e disable and enable the entry, v and r have it vanish for long enough and return, n renames the person;
// each of them is followed by a synchronization. L, U and W are the operator: lock, unlock, lock in a day. T lets two days pass.
func TestLocksOfOperators(t *testing.T) {
	for _, c := range []struct {
		steps  string
		locked bool
		why    string
	}{
		{"d", true, "the directory locks"},
		{"de", false, "and unlocks"},
		{"v", true, "the directory locks who is gone"},
		{"vr", false, "and unlocks"},
		{"Lde", true, "locked before"},
		{"Lvr", true, "locked before"},
		{"dLe", true, "locked by the directory first, then by the operator"},
		{"vLr", true, "locked by the directory first, then by the operator"},
		{"dU", false, "an unlock"},
		{"dUn", false, "stays at the next synchronization"},
		{"vUn", false, "stays at the next synchronization"},
		{"dUed", true, "the next time the entry is disabled it locks again"},
		{"vUrv", true, "the next time the entry is gone it locks again"},
		{"dULe", true, "locked again by the operator"},
		{"dULUe", false, "unlocked by the operator in the end"},
		{"Ud", true, "an unlock before the entry is disabled changes nothing"},
		{"Wd", true, "a lock for later does not put off the one of the directory"},
		{"Wde", true, "which does not lift it"},
		{"WTde", true, "a lock whose time has come is the operator's"},
		{"dvr", true, "gone and back, disabled"},
		{"dvre", false, "and enabled"},
	} {
		t.Run(c.steps, func(t *testing.T) {
			b := newBench(t, storetest.SQLite(t))
			b.LockAfter = 0
			p := person(0)
			b.source.entries = []directory.Entry{p}
			sync := func() {
				t.Helper()
				if got, err := b.Sync(t.Context(), directory.Plan{}); err != nil || got.Refused > 0 {
					t.Fatalf("%s, %v", got, err)
				}
			}
			sync()
			id := b.user(t, "p0").ID
			for _, step := range c.steps {
				var err error
				switch step {
				case 'd', 'e':
					p.Disabled = step == 'd'
				case 'n':
					p.Name += "n"
				case 'L':
					err = b.Users.Lock(t.Context(), id)
				case 'U':
					err = b.Users.Unlock(t.Context(), id)
				case 'W':
					err = (store.Users{DB: b.db}).SetLock(t.Context(), id, false, b.now.Add(24*time.Hour))
				case 'T':
					b.now = b.now.Add(48 * time.Hour)
				}
				if err != nil {
					t.Fatal(err)
				}
				switch step {
				case 'v':
					b.source.entries = nil
					sync()
				case 'd', 'e', 'n', 'r':
					if step != 'n' || b.source.entries != nil {
						b.source.entries = []directory.Entry{p}
					}
					sync()
				}
			}
			if got := b.user(t, p.Login).Barred(b.now); got != c.locked {
				t.Errorf("%s: locked: %t", c.why, got)
			}
		})
	}
}

// TestUnlink has an operator make a user a local one. No synchronization joins the user and the entry again until that is forgotten.
func TestUnlink(t *testing.T) {
	for _, match := range []directory.Match{directory.MatchNone, directory.MatchLogin, directory.MatchEmail} {
		t.Run(string(match), func(t *testing.T) {
			b := newBench(t, storetest.SQLite(t))
			b.Match = match
			b.source.entries = []directory.Entry{person(0), person(1)}
			tokens := store.Tokens{DB: b.db}
			sessions := session.New(tokens)
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Added: 2})
			id := b.user(t, "p0").ID
			// A password from before the link.
			if _, err := b.Store.Unlink(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
			if err := tokens.SetPassword(t.Context(), id, "encoded"); err != nil {
				t.Fatal(err)
			}
			if err := b.Store.PutLink(t.Context(), "corp", directory.Link{UserID: id, Entry: "id0"}); err != nil {
				t.Fatal(err)
			}
			failing := errors.New("no session ends")
			if err := directory.Unlink(t.Context(), b.Store, sessionsFail{failing}, id, false); !errors.Is(err, failing) {
				t.Errorf("%v", err)
			}
			if of, unlinked, err := b.Store.LinkOf(t.Context(), id); of != "corp" || unlinked || err != nil {
				t.Errorf("half of an unlink: %q, %t, %v", of, unlinked, err)
			}
			if err := directory.Unlink(t.Context(), b.Store, sessions, id, false); err != nil {
				t.Fatal(err)
			}
			if c, err := tokens.CredentialOf(t.Context(), "p0", "", ""); err != nil || c.Encoded != "" || c.Directory != "" {
				t.Errorf("%+v, %v", c, err)
			}
			if err := directory.Unlink(t.Context(), b.Store, sessions, id, false); !fault.Is(err, fault.WrongOperation) {
				t.Errorf("a second time: %v", err)
			}
			// Neither the entry, renamed or not, nor another entry with the login.
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Left: 1})
			b.source.entries[0].Login = "renamed"
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Left: 1})
			other := person(0)
			other.ID = "made again"
			b.source.entries = append(b.source.entries, other)
			changes := b.sync(t, directory.Plan{}, directory.Result{Entries: 3, Unchanged: 1, Left: 1, Refused: 1})
			if match == directory.MatchLogin && (len(changes) != 1 || !strings.Contains(changes[0].Err.Error(), "unlinked")) {
				t.Errorf("%+v", changes)
			}
			for _, l := range []directory.Link{{UserID: id, Entry: "another"}, {UserID: b.user(t, "p1").ID, Entry: "id0"}} {
				if err := b.Store.PutLink(t.Context(), "corp", l); !errors.Is(err, directory.ErrLinked) {
					t.Errorf("%+v: %v", l, err)
				}
			}
			if match == directory.MatchNone {
				return
			}
			b.source.entries = []directory.Entry{person(1), other}
			if err := directory.Unlink(t.Context(), b.Store, sessions, id, true); err != nil {
				t.Fatal(err)
			}
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Linked: 1})
		})
	}
}

// TestUnlinkDeleted deletes a user who was unlinked. That does not undo the unlink; forgetting it does, by login or identifier.
func TestUnlinkDeleted(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *store.DB{
		"SQLite":     func(t *testing.T) *store.DB { return storetest.SQLite(t) },
		"PostgreSQL": func(t *testing.T) *store.DB { return storetest.Open(t, storetest.PostgreSQL(t).Migrated(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, open(t))
			links := store.Directories{Users: store.Users{DB: b.db}}
			b.source.entries = []directory.Entry{person(0), person(1)}
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Added: 2})
			for _, byLogin := range []bool{true, false} {
				id := b.user(t, "p0").ID
				if err := directory.Unlink(t.Context(), b.Store, session.New(store.Tokens{DB: b.db}), id, false); err != nil {
					t.Fatal(err)
				}
				of := strings.ToUpper(id)
				if byLogin {
					of = "P0"
				}
				if err := directory.ForgetDeleted(t.Context(), links, of); !fault.Is(err, fault.UserNotFound) {
					t.Errorf("a user who is not deleted: %v", err)
				}
				if err := links.DeleteUser(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Left: 1})
				if err := directory.ForgetDeleted(t.Context(), links, "p1"); !fault.Is(err, fault.UserNotFound) {
					t.Errorf("another user: %v", err)
				}
				if err := directory.ForgetDeleted(t.Context(), links, of); err != nil {
					t.Error(err)
				}
				b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Added: 1})
			}
		})
	}
}

// sessionsFail ends no sessions.
type sessionsFail struct{ err error }

func (s sessionsFail) EndAll(context.Context, string) error { return s.err }

// TestUnlinkMeanwhile unlinks a user while a synchronization has already read the link.
func TestUnlinkMeanwhile(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.source.entries = []directory.Entry{person(0)}
	b.sync(t, directory.Plan{}, directory.Result{Entries: 1, Added: 1})
	id := b.user(t, "p0").ID
	for _, forget := range []bool{false, true} {
		b.Store = meanwhile{b.Store, func() {
			if err := directory.Unlink(t.Context(), store.Directories{Users: store.Users{DB: b.db}}, session.New(store.Tokens{DB: b.db}), id, forget); err != nil {
				t.Error(err)
			}
		}}
		b.source.entries[0].Name += "changed"
		if got, err := b.Sync(t.Context(), directory.Plan{}); err != nil || got.Changed != 0 {
			t.Errorf("%s, %v", got, err)
		}
		b.Store = store.Directories{Users: store.Users{DB: b.db}}
		if of, unlinked, err := b.Store.LinkOf(t.Context(), id); err != nil || of != "" && !unlinked {
			t.Errorf("forget %t: linked with %q, %v", forget, of, err)
		}
		if _, err := b.Store.Unlink(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		if err := b.Store.PutLink(t.Context(), "corp", directory.Link{UserID: id, Entry: "id0"}); err != nil {
			t.Fatal(err)
		}
	}
}

// meanwhile is a store that does something after links were read the first time.
type meanwhile struct {
	directory.Store
	do func()
}

func (m meanwhile) Links(ctx context.Context, name string, entries []string) ([]directory.Link, error) {
	list, err := m.Store.Links(ctx, name, entries)
	if !inTransaction(ctx) {
		m.do()
	}
	return list, err
}

type within struct{}

func inTransaction(ctx context.Context) bool { return ctx.Value(within{}) != nil }

func (m meanwhile) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return m.Store.Atomic(ctx, set, func(ctx context.Context) error { return fn(context.WithValue(ctx, within{}, true)) })
}

// TestMass has a directory that would lock or move many people at once.
func TestMass(t *testing.T) {
	for name, change := range map[string]func(e *directory.Entry){
		"disabled":      func(e *directory.Entry) { e.Disabled = true },
		"another group": func(e *directory.Entry) { e.Group = "Guests" },
		"no group":      func(e *directory.Entry) { e.Group = "" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, storetest.SQLite(t))
			b.LockAfter = 0
			for n := range 100 {
				b.source.entries = append(b.source.entries, person(n))
			}
			b.sync(t, directory.Plan{}, directory.Result{Entries: 100, Added: 100})
			for n := range 11 {
				change(&b.source.entries[9*n])
			}
			taken := func() (n int) {
				list, err := b.Users.Page(t.Context(), user.Query{Limit: 200})
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range list {
					if u.Locked || u.Group != "Staff" {
						n++
					}
				}
				return n
			}
			for _, dry := range []bool{true, false} {
				if _, err := b.Sync(t.Context(), directory.Plan{Dry: dry}); !errors.Is(err, directory.ErrTooMany) {
					t.Errorf("dry: %t, %v", dry, err)
				}
				if n := taken(); n != 0 {
					t.Errorf("%d users changed", n)
				}
			}
			b.source.entries[0] = person(0) // ten are not too many
			if _, err := b.Sync(t.Context(), directory.Plan{}); err != nil {
				t.Error(err)
			}
			if n := taken(); n != 10 {
				t.Errorf("%d users changed", n)
			}
			for n := range 50 {
				change(&b.source.entries[n])
			}
			if _, err := b.Sync(t.Context(), directory.Plan{AnyMissing: true}); err != nil {
				t.Error(err)
			}
			if n := taken(); n < 50 {
				t.Errorf("%d users changed", n)
			}
		})
	}
	t.Run("all together", func(t *testing.T) {
		b := newBench(t, storetest.SQLite(t))
		for n := range 10 {
			b.source.entries = append(b.source.entries, person(n))
		}
		b.sync(t, directory.Plan{}, directory.Result{Entries: 10, Added: 10})
		b.source.entries[0].Disabled, b.source.entries[1].Disabled, b.source.entries[2].Group, b.source.entries[3].Group = true, true, "Guests", "Guests"
		b.source.entries = b.source.entries[:8]
		if _, err := b.Sync(t.Context(), directory.Plan{}); !errors.Is(err, directory.ErrTooMany) || !strings.Contains(err.Error(), "of 10 linked users 2 are missing, 4 are disabled") {
			t.Errorf("%v", err)
		}
	})
}

// TestLockedAnyhow disables people who cannot follow their entries otherwise: the lock is made, and the rest refused.
func TestLockedAnyhow(t *testing.T) {
	for name, change := range map[string]func(e *directory.Entry){
		"the login of another user": func(e *directory.Entry) { e.Login = "p1" },
		"no login":                  func(e *directory.Entry) { e.Login = "a\x00\nb" },
		"a group that is not there": func(e *directory.Entry) { e.Group = "Unknown" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, storetest.SQLite(t))
			b.source.entries = []directory.Entry{person(0), person(1)}
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Added: 2})
			b.source.entries[0].Disabled = true
			change(&b.source.entries[0])
			for _, dry := range []bool{true, false} {
				b.sync(t, directory.Plan{Dry: dry}, directory.Result{Entries: 2, Unchanged: 1, Locked: 1, Refused: 1})
				if u := b.user(t, "p0"); u.Locked == dry {
					t.Errorf("dry: %t, locked: %t", dry, u.Locked)
				}
			}
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Refused: 1})
			if err := b.Users.Unlock(t.Context(), b.user(t, "p0").ID); err != nil {
				t.Fatal(err)
			}
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Refused: 1})
			if u := b.user(t, "p0"); u.Locked {
				t.Error("an unlock of an operator was overruled")
			}
			b.source.entries[0] = person(0)
			b.source.entries[0].Disabled, b.source.entries[0].Group = true, "Guests"
			b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Changed: 1})
		})
	}
}

// TestMassOfRefused moves many people to a group that is not there. That cannot be done, and stops no lock of others.
func TestMassOfRefused(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for n := range 20 {
		b.source.entries = append(b.source.entries, person(n))
	}
	b.sync(t, directory.Plan{}, directory.Result{Entries: 20, Added: 20})
	for n := range 10 {
		b.source.entries[n].Group = "Unknown"
	}
	b.source.entries[3].Disabled = true
	b.source.entries[19].Disabled, b.source.entries[18].Group = true, "Guests"
	for _, dry := range []bool{true, false} {
		b.sync(t, directory.Plan{Dry: dry}, directory.Result{Entries: 20, Unchanged: 8, Changed: 1, Locked: 2, Refused: 10})
	}
	if a, b := b.user(t, "p3"), b.user(t, "p19"); !a.Locked || !b.Locked {
		t.Errorf("%+v, %+v", a, b)
	}
	b.sync(t, directory.Plan{}, directory.Result{Entries: 20, Unchanged: 10, Refused: 10})
	for n := range 8 { // six may move, and are too many
		b.source.entries[n].Group = "Guests"
	}
	for n := range 2 {
		b.source.entries[n].Group = "Unknown"
	}
	if _, err := b.Sync(t.Context(), directory.Plan{}); !errors.Is(err, directory.ErrTooMany) || !strings.Contains(err.Error(), "8 are disabled or in another group") { // above the bound none is tried
		t.Errorf("%v", err)
	}
}

// TestMassOfLocked removes many people from the directory who were disabled and are locked: nothing more is taken from them.
func TestMassOfLocked(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for n := range 20 {
		b.source.entries = append(b.source.entries, person(n))
	}
	b.sync(t, directory.Plan{}, directory.Result{Entries: 20, Added: 20})
	for n := range 10 {
		b.source.entries[n].Disabled = true
	}
	b.sync(t, directory.Plan{AnyMissing: true}, directory.Result{Entries: 20, Unchanged: 10, Locked: 10})
	b.source.entries = b.source.entries[10:]
	b.source.entries[9].Disabled = true
	b.sync(t, directory.Plan{}, directory.Result{Entries: 10, Unchanged: 9, Missing: 10, Locked: 1})
	b.source.entries = b.source.entries[6:]
	if _, err := b.Sync(t.Context(), directory.Plan{}); !errors.Is(err, directory.ErrTooMany) || !strings.Contains(err.Error(), "6 are missing") {
		t.Errorf("people who are not locked: %v", err)
	}
}

// TestUnknown has entries that do not say whether people may sign in: a lock stays as it is, and no user is added.
func TestUnknown(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.source.entries = []directory.Entry{person(0), person(1)}
	b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Added: 2})
	b.source.entries[0].Disabled = true
	b.sync(t, directory.Plan{}, directory.Result{Entries: 2, Unchanged: 1, Locked: 1})
	for n := range b.source.entries {
		b.source.entries[n].Disabled, b.source.entries[n].Unknown = false, true
	}
	b.source.entries[1].Name = "Renamed"
	unknown := person(2)
	unknown.Unknown = true
	b.source.entries = append(b.source.entries, unknown)
	changes := b.sync(t, directory.Plan{}, directory.Result{Entries: 3, Unchanged: 1, Changed: 1, Unknown: 3})
	if len(changes) == 0 || changes[0].Err == nil || !strings.Contains(changes[0].Err.Error(), "attributes.disabled") {
		t.Errorf("%+v", changes)
	}
	if zero, one := b.user(t, "p0"), b.user(t, "p1"); !zero.Locked || one.Locked || one.DisplayName != "Renamed" {
		t.Errorf("%+v, %+v", zero, one)
	}
}
