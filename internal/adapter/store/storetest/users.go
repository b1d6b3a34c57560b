// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

func testUsers(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"AddAndFind", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			group(t, db, "Default")
			want := person(t, db, 1)
			byID, err := s.UserByID(t.Context(), want.ID)
			must(t, err)
			byLogin, err := s.UserByLogin(t.Context(), "user1")
			must(t, err)
			for _, got := range []user.User{byID, byLogin} {
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			}
			for _, unknown := range []string{"", "unknown", "a\x00b", "\xff"} {
				if _, err := s.UserByID(t.Context(), unknown); !errors.Is(err, user.ErrNotFound) {
					t.Errorf("id %q: %v, want %v", unknown, err, user.ErrNotFound)
				}
				if _, err := s.UserByLogin(t.Context(), unknown); !errors.Is(err, user.ErrNotFound) {
					t.Errorf("login %q: %v, want %v", unknown, err, user.ErrNotFound)
				}
			}
		}},
		{"Together", testTogether},
		{"Logins", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			group(t, db, "Default")
			one, two := person(t, db, 1), person(t, db, 2)
			got, err := s.Logins(t.Context(), []string{one.ID, two.ID, "unknown"})
			must(t, err)
			if d := cmp.Diff(map[string]string{one.ID: one.Login, two.ID: two.Login}, got); d != "" {
				t.Error(d)
			}
			if got, err := s.Logins(t.Context(), nil); err != nil || len(got) > 0 {
				t.Errorf("of no identifier: %v, %v", got, err)
			}
			// The audit log finds a user by any spelling of the login, also of letters outside ASCII.
			must(t, s.AddUser(t.Context(), user.User{ID: "ivan", Login: "Иван", Group: "Default", CreatedAt: start}, user.FoldLogin("Иван")))
			log := store.Audit{DB: db}
			must(t, log.Record(t.Context(), audit.Entry{Operation: "Do", Outcome: audit.OK, Principal: audit.Principal{UserID: "ivan", Login: "Иван"}}))
			for login, want := range map[string]int{"Иван": 1, "ИВАН": 1, "иван": 1, "ива": 0} {
				if list, _, err := log.Read(t.Context(), store.AuditFilter{Login: login}, 10); err != nil || len(list) != want {
					t.Errorf("%s: %d entries, %v", login, len(list), err)
				}
			}
		}},
		{"Unique", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			other := u
			other.ID = "another"
			if err := s.AddUser(t.Context(), other, "user1"); !errors.Is(err, user.ErrDuplicate) {
				t.Errorf("same login: %v, want %v", err, user.ErrDuplicate)
			}
			if err := s.AddUser(t.Context(), u, "another"); !errors.Is(err, user.ErrDuplicate) {
				t.Errorf("same id: %v, want %v", err, user.ErrDuplicate)
			}
			other.Group = "unknown"
			if err := s.AddUser(t.Context(), other, "another"); !errors.Is(err, user.ErrNoGroup) {
				t.Errorf("unknown group: %v, want %v", err, user.ErrNoGroup)
			}
			won := 0
			for _, err := range together(16, func(i int) error {
				u := user.User{ID: string(rune('a' + i)), Login: "same", Group: "Default"}
				return s.AddUser(t.Context(), u, "same")
			}) {
				if err == nil {
					won++
				} else if !errors.Is(err, user.ErrDuplicate) {
					t.Error(err)
				}
			}
			if won != 1 {
				t.Errorf("%d of 16 registrations of one login won, want 1", won)
			}
		}},
		{"List", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			for _, g := range []string{"A", "B", "C"} {
				group(t, db, g)
			}
			// Users are in the order of their bytes, which no locale may change.
			for i, login := range []string{"Z", "_", "a", "b-c", "bc", "я"} {
				u := user.User{ID: login, Login: login, Group: string(rune('A' + i%3))}
				must(t, s.AddUser(t.Context(), u, login))
			}
			for _, c := range []struct {
				query user.Query
				want  []string
			}{
				{user.Query{Limit: 100}, []string{"Z", "_", "a", "b-c", "bc", "я"}},
				{user.Query{Limit: 2}, []string{"Z", "_"}},
				{user.Query{Limit: 2, After: "_"}, []string{"a", "b-c"}},
				{user.Query{Limit: 2, After: "я"}, nil},
				{user.Query{Limit: 100, Groups: []string{"A"}}, []string{"Z", "b-c"}},
				{user.Query{Limit: 100, Groups: []string{"C", "B"}}, []string{"_", "a", "bc", "я"}},
				{user.Query{Limit: 1, After: "b", Groups: []string{"C", "B"}}, []string{"bc"}},
				{user.Query{Limit: 100, Groups: []string{}}, nil},
				{user.Query{Limit: 100, Groups: []string{"' OR 1=1 --"}}, nil},
			} {
				list, err := s.ListUsers(t.Context(), c.query)
				must(t, err)
				var got []string
				for _, u := range list {
					got = append(got, u.Login)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("%+v: %s", c.query, d)
				}
			}
		}},
		{"Change", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			group(t, db, "Default")
			want := person(t, db, 1)
			person(t, db, 2)
			must(t, s.SetLock(t.Context(), want.ID, true, start))
			must(t, s.SetDisplayName(t.Context(), want.ID, "Имя"))
			want.Locked, want.LockAt, want.DisplayName = true, start, "Имя"
			got, err := s.UserByID(t.Context(), want.ID)
			must(t, err)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if other, err := s.UserByLogin(t.Context(), "user2"); err != nil || other.Locked {
				t.Errorf("another user: %+v, %v", other, err)
			}
			must(t, s.SetLock(t.Context(), want.ID, true, start)) // a second call is not an error
			must(t, s.SetLock(t.Context(), want.ID, false, time.Time{}))
			if err := s.SetLock(t.Context(), "unknown", true, start); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("unknown user: %v, want %v", err, user.ErrNotFound)
			}
			if err := s.SetDisplayName(t.Context(), "unknown", "x"); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("unknown user: %v, want %v", err, user.ErrNotFound)
			}
		}},
		{"Groups", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			want := []user.Group{{Name: "A", Title: "First", CreatedAt: start}, {Name: "Default", CreatedAt: start}, {Name: "default", CreatedAt: start}}
			for _, g := range []int{2, 0, 1} {
				must(t, s.AddGroup(t.Context(), want[g]))
			}
			if err := s.AddGroup(t.Context(), want[0]); !errors.Is(err, user.ErrDuplicate) {
				t.Errorf("same name: %v, want %v", err, user.ErrDuplicate)
			}
			got, err := s.Groups(t.Context())
			must(t, err)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			got, err = s.GroupsAfter(t.Context(), "A", 1)
			must(t, err)
			if d := cmp.Diff(want[1:2], got); d != "" {
				t.Error(d)
			}
			one, err := s.Group(t.Context(), "default")
			must(t, err)
			if d := cmp.Diff(want[2], one); d != "" {
				t.Error(d)
			}
			if _, err := s.Group(t.Context(), "DEFAULT"); !errors.Is(err, user.ErrNoGroup) {
				t.Errorf("an unknown group: %v, want %v", err, user.ErrNoGroup)
			}
		}},
		{"Operators", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			for _, g := range []string{"Default", "A", "B"} {
				group(t, db, g)
			}
			u := person(t, db, 1)
			for _, c := range []struct{ set, want []string }{
				{[]string{"B", "A"}, []string{"A", "B"}},
				{[]string{"Default"}, []string{"Default"}},
				{nil, nil},
			} {
				must(t, s.SetOperatorGroups(t.Context(), u.ID, c.set))
				got, err := s.OperatorGroups(t.Context(), u.ID)
				must(t, err)
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
			}
			must(t, s.SetOperatorGroups(t.Context(), u.ID, []string{"A"}))
			if err := s.SetOperatorGroups(t.Context(), u.ID, []string{"B", "unknown"}); !errors.Is(err, user.ErrNoGroup) {
				t.Errorf("unknown group: %v, want %v", err, user.ErrNoGroup)
			}
			got, err := s.OperatorGroups(t.Context(), u.ID)
			must(t, err)
			if d := cmp.Diff([]string{"A"}, got); d != "" {
				t.Errorf("after a refused change: %s", d)
			}
		}},
	}.run(t, open)
}

// testTogether keeps and undoes changes of one transaction.
func testTogether(t *testing.T, db *store.DB) {
	s, contacts := store.Users{DB: db}, store.Contacts{DB: db}
	group(t, db, "Default")
	old := person(t, db, 1)
	mail := func(id string) contact.Contact {
		return contact.Contact{UserID: id, Type: contact.EmailAddress, Value: "a@example.org", Primary: true, CreatedAt: start}
	}
	_, err := contacts.AddContact(t.Context(), mail(old.ID), "a@example.org", false)
	must(t, err)
	// add is a change that adds a user. look: a statement in the middle, which needs what was added.
	add := func(n int, look, keep bool, fails error) func(ctx context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			u := user.User{ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Login: fmt.Sprintf("User%d", n), Group: "Default", CreatedAt: start}
			if err := s.AddUser(ctx, u, user.FoldLogin(u.Login)); err != nil {
				return false, err
			}
			if err := s.AddName(ctx, u.ID, user.Name{Text: "CN=x", Values: map[string]string{"2.5.4.3": "x", "2.5.4.4": "y"}}); err != nil {
				return false, err
			}
			if look {
				if _, err := s.UserByID(ctx, u.ID); err != nil {
					return false, fmt.Errorf("what was added is not seen: %w", err)
				}
				if err := s.SetDisplayName(ctx, u.ID, "looked"); err != nil {
					return false, err
				}
			}
			if err := (store.Audit{DB: db}).Record(ctx, audit.Entry{Operation: "Add", Object: u.Login}); err != nil {
				return false, err
			}
			return keep, fails
		}
	}
	// refused is a change of which a nested unit wants a rollback.
	refused := func(ctx context.Context) (bool, error) {
		return false, s.Atomic(ctx, lock.User(old.ID), func(ctx context.Context) error {
			if err := s.SetDisplayName(ctx, old.ID, "never"); err != nil {
				return err
			}
			return fault.Rollback(fault.New(fault.WrongOperation, "no"))
		})
	}
	ignoring := func(change func(ctx context.Context) (bool, error)) func(ctx context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) { kept, _ := change(ctx); return kept, nil }
	}
	// taking is a change that wants a contact which is taken.
	var answer bool
	taking := func(ctx context.Context) (bool, error) {
		if kept, err := add(90, false, true, nil)(ctx); err != nil {
			return kept, err
		}
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", 90)
		added, err := contacts.AddContact(ctx, mail(id), "a@example.org", false)
		answer = added
		return added, err
	}
	broken := errors.New("broken")
	type change = func(ctx context.Context) (bool, error)
	for _, c := range []struct {
		name    string
		keep    bool
		changes []change
		err     error
		want    string // users that are new, and how many audit entries
	}{
		{"all", true, []change{add(10, false, true, nil), add(11, true, true, nil), add(12, false, true, nil)}, nil, "User10  User11 looked User12  3"},
		{"undone", true, []change{add(20, false, false, nil), add(21, false, true, nil), add(22, true, false, nil), add(23, true, true, nil), add(24, false, false, nil)}, nil, "User21  User23 looked 2"},
		{"refused", true, []change{add(30, false, true, nil), ignoring(refused), add(31, false, true, nil)}, nil, "User30  User31  2"},
		{"broken", true, []change{add(40, true, true, nil), add(41, false, true, broken)}, broken, "0"},
		{"trial", false, []change{add(50, false, true, nil), add(51, true, true, nil)}, nil, "0"},
		{"taken", true, []change{add(60, false, true, nil), taking, add(61, false, false, nil), add(62, false, true, nil)}, nil, "User60  User62  2"},
		{"none", true, nil, nil, "0"},
	} {
		answer = true
		before, err := s.ListUsers(t.Context(), user.Query{Limit: 100})
		must(t, err)
		entries, err := store.Audit{DB: db}.Last(t.Context(), 1000)
		must(t, err)
		set := lock.User(old.ID).Contact(string(contact.EmailAddress), "a@example.org")
		for n := range 100 {
			set = set.And(lock.User(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)).Logins(fmt.Sprintf("user%d", n)))
		}
		if err := s.Together(t.Context(), set, c.keep, c.changes); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		after, err := s.ListUsers(t.Context(), user.Query{Limit: 100})
		must(t, err)
		now, err := store.Audit{DB: db}.Last(t.Context(), 1000)
		must(t, err)
		got := ""
		for _, u := range after {
			if !slices.ContainsFunc(before, func(b user.User) bool { return b.ID == u.ID }) {
				got += u.Login + " " + u.DisplayName + " "
				if values, err := s.NameOf(t.Context(), u.ID); err != nil || len(values) != 2 {
					t.Errorf("%s: %s has the name %v, %v", c.name, u.Login, values, err)
				}
			}
		}
		if got += fmt.Sprint(len(now) - len(entries)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if (c.name == "taken") == answer {
			t.Errorf("%s: a contact that is taken was added", c.name)
		}
	}
	found, err := s.UsersByLogins(t.Context(), []string{"user1", "unknown", "", "user10", "a\x00b"})
	if err != nil || len(found) != 2 {
		t.Errorf("by logins: %v, %v", found, err)
	}
	if now, err := s.UserByID(t.Context(), old.ID); err != nil || now.DisplayName != old.DisplayName {
		t.Errorf("a refused change stayed: %v, %v", now, err)
	}
}
