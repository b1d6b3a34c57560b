// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/oath"
)

func testOath(t *testing.T, open func(t *testing.T) *store.DB) {
	rule := oath.Lock{Attempts: 3, LockOut: time.Minute, MaxAttempts: 8}
	token := func(key, userID string) oath.Record {
		return oath.Record{Key: key, Serial: key + "s", UserID: userID, Type: oath.HOTP, Watermark: -1, Sealed: []byte("sealed " + key), CreatedAt: start}
	}
	cases{
		{"Stock", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			app := token("C", a.ID)
			app.App, app.Type, app.AssignedAt = true, oath.TOTP, start.Add(time.Hour)
			for _, x := range []oath.Record{token("B", ""), token("A", ""), app} {
				said(t, true)(s.AddOathToken(t.Context(), x))
			}
			said(t, false)(s.AddOathToken(t.Context(), token("A", b.ID)))
			said(t, false)(s.AddOathToken(t.Context(), token("D", a.ID))) // a second one of a user
			list := func(q oath.Query, want ...oath.Record) {
				t.Helper()
				got, err := s.OathTokens(t.Context(), q)
				must(t, err)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%+v: %s", q, d)
				}
			}
			list(oath.Query{Limit: 10}, token("A", ""), token("B", ""), app)
			list(oath.Query{Limit: 1}, token("A", ""))
			list(oath.Query{Limit: 10, After: "A"}, token("B", ""), app)
			list(oath.Query{Limit: 10, UserID: a.ID}, app)
			list(oath.Query{Limit: 10, UserID: "' OR 1=1 --"})
			list(oath.Query{Limit: 10, Free: true}, token("A", ""), token("B", ""))
			is := func(find func() (oath.Record, bool, error), want oath.Record, there bool) {
				t.Helper()
				got, found, err := find()
				must(t, err)
				if found != there {
					t.Errorf("found: %t, want %t", found, there)
				} else if d := cmp.Diff(want, got); found && d != "" {
					t.Error(d)
				}
			}
			is(func() (oath.Record, bool, error) { return s.OathToken(t.Context(), "C") }, app, true)
			is(func() (oath.Record, bool, error) { return s.OathToken(t.Context(), "c") }, app, false)
			is(func() (oath.Record, bool, error) { return s.OathTokenOf(t.Context(), a.ID) }, app, true)
			is(func() (oath.Record, bool, error) { return s.OathTokenOf(t.Context(), b.ID) }, app, false)
			is(func() (oath.Record, bool, error) { return s.OathTokenOf(t.Context(), "") }, app, false)

			said(t, false)(s.ReleaseOathToken(t.Context(), "C", []byte("other"), []byte("after")))
			said(t, true)(s.ReleaseOathToken(t.Context(), "C", app.Sealed, []byte("after")))
			app.UserID, app.Sealed = "", []byte("after")
			is(func() (oath.Record, bool, error) { return s.OathToken(t.Context(), "C") }, app, true)
			said(t, false)(s.DeleteOathToken(t.Context(), "A", []byte("other")))
			said(t, true)(s.DeleteOathToken(t.Context(), "A", token("A", "").Sealed))
			must(t, s.SweepOathTokens(t.Context())) // an app without a user is deleted, a token without a user stays
			list(oath.Query{Limit: 10}, token("B", ""))

			// A token stays when its user is deleted.
			said(t, true)(s.AcceptOathStep(t.Context(), oath.Acceptance{Key: "B", UserID: b.ID, Step: 5, Before: token("B", "").Sealed, After: []byte("after"), AssignedAt: start}))
			must(t, store.Users{DB: db}.DeleteUser(t.Context(), b.ID))
			left := token("B", "")
			left.Watermark, left.Sealed, left.AssignedAt = 5, []byte("after"), start
			list(oath.Query{Limit: 10, Free: true}, left)
		}},
		{"Steps", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			said(t, true)(s.AddOathToken(t.Context(), token("A", "")))
			sealed := token("A", "").Sealed
			for i, c := range []struct {
				user   string
				step   int64
				before []byte
				want   bool
			}{
				{a.ID, -1, sealed, false}, // the watermark itself
				{a.ID, 0, []byte("other"), false},
				{a.ID, 0, sealed, true}, // it becomes the user's
				{a.ID, 0, sealed, false},
				{b.ID, 1, sealed, false}, // and no other user's
				{a.ID, 1 << 61, sealed, true},
				{a.ID, 7, sealed, false},
				{a.ID, 1<<61 + 1, sealed, true},
			} {
				said(t, c.want)(s.AcceptOathStep(t.Context(), oath.Acceptance{Key: "A", UserID: c.user, Step: c.step, Before: c.before, After: sealed}))
				if t.Failed() {
					t.Fatalf("row %d", i)
				}
			}
		}},
		{"Attempts", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			a := person(t, db, 1)
			said(t, true)(s.AddOathToken(t.Context(), token("A", a.ID)))
			said(t, true)(s.AddOathToken(t.Context(), token("B", "")))
			try := func(key string, second int, want bool, failures int64) {
				t.Helper()
				got, counted, err := s.BeginOathAttempt(t.Context(), key, start.Add(time.Duration(second)*time.Second), rule)
				must(t, err)
				if counted != want || counted && (got.Failures != failures || !bytes.Equal(got.Sealed, token(key, "").Sealed)) {
					t.Errorf("%s at %d s: counted %t as %d, want %t as %d", key, second, counted, got.Failures, want, failures)
				}
			}
			try("A", 0, true, 1)
			try("A", 1000, true, 2) // time reduces no count
			try("B", 1000, true, 1) // each token has its own count
			try("A", 1000, true, 3) // locks for a minute
			try("A", 1000, false, 0)
			try("A", 1059, false, 0)
			try("A", 1060, true, 4)
			try("A", 1060, true, 5)
			try("A", 1060, true, 6)
			try("A", 1119, false, 0)
			try("A", 1120, true, 7)
			try("A", 1120, true, 8) // for good
			try("A", 1<<31, false, 0)
			try("C", 0, false, 0)
			must(t, s.ForgiveOathTokenOf(t.Context(), a.ID))
			try("A", 1120, true, 1)
			said(t, true)(s.ForgiveOathToken(t.Context(), "A"))
			said(t, false)(s.ForgiveOathToken(t.Context(), "C"))
			try("A", 1120, true, 1)
			try("A", 1120, true, 2)
			try("A", 1120, true, 3)
			said(t, true)(s.AcceptOathStep(t.Context(), oath.Acceptance{Key: "A", UserID: a.ID, Step: 1, Before: token("A", "").Sealed, After: token("A", "").Sealed}))
			try("A", 1120, true, 1) // a correct code resets the count
		}},
		// Of a thousand callers with one step, only one is accepted. Of a thousand
		// guesses, only as many as the limit are counted.
		{"Together", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			a := person(t, db, 1)
			said(t, true)(s.AddOathToken(t.Context(), token("A", a.ID)))
			sealed := token("A", "").Sealed
			for round := range int64(2) {
				var accepted, counted atomic.Int64
				for _, err := range together(1000, func(i int) error {
					ok, err := s.AcceptOathStep(t.Context(), oath.Acceptance{Key: "A", UserID: a.ID, Step: round, Before: sealed, After: sealed})
					if ok {
						accepted.Add(1)
					}
					return err
				}) {
					must(t, err)
				}
				if n := accepted.Load(); n != 1 {
					t.Errorf("round %d: accepted %d times", round, n)
				}
				at := start.Add(time.Duration(round) * time.Hour)
				for _, err := range together(1000, func(i int) error {
					_, ok, err := s.BeginOathAttempt(t.Context(), "A", at, rule)
					if ok {
						counted.Add(1)
					}
					return err
				}) {
					must(t, err)
				}
				if n := counted.Load(); n != int64(rule.Attempts) {
					t.Errorf("round %d: %d guesses were counted, the budget is %d", round, n, rule.Attempts)
				}
			}
			// Assignments of one token to several users at once.
			said(t, true)(s.AddOathToken(t.Context(), token("S", "")))
			var got atomic.Int64
			users := make([]string, 20)
			for i := range users {
				users[i] = person(t, db, 10+i).ID
			}
			for _, err := range together(len(users), func(i int) error {
				ok, err := s.AcceptOathStep(t.Context(), oath.Acceptance{Key: "S", UserID: users[i], Step: int64(i), Before: token("S", "").Sealed, After: fmt.Append(nil, "of ", i)})
				if ok {
					got.Add(1)
				}
				return err
			}) {
				must(t, err)
			}
			if got.Load() != 1 {
				t.Errorf("the token was assigned to %d users", got.Load())
			}
		}},
	}.run(t, open)
}
