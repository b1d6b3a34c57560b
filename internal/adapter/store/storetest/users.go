// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
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
			for _, unknown := range []string{"", "nobody", "a\x00b", "\xff"} {
				if _, err := s.UserByID(t.Context(), unknown); !errors.Is(err, user.ErrNotFound) {
					t.Errorf("id %q: %v, want %v", unknown, err, user.ErrNotFound)
				}
				if _, err := s.UserByLogin(t.Context(), unknown); !errors.Is(err, user.ErrNotFound) {
					t.Errorf("login %q: %v, want %v", unknown, err, user.ErrNotFound)
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
			if err := s.SetLock(t.Context(), "nobody", true, start); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("unknown user: %v, want %v", err, user.ErrNotFound)
			}
			if err := s.SetDisplayName(t.Context(), "nobody", "x"); !errors.Is(err, user.ErrNotFound) {
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
