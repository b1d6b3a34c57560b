// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/passkey"
)

func testPasskeys(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"Passkeys", func(t *testing.T, db *store.DB) {
			s := store.Passkeys{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			record := func(id, userID string, age time.Duration) passkey.Record {
				return passkey.Record{ID: id, UserID: userID, Name: "key " + id, Counter: 1<<32 - 2, Sealed: []byte("sealed " + id), CreatedAt: start.Add(-age)}
			}
			young, old := record("A", a.ID, 0), record("a", a.ID, time.Hour) // identifiers differ by letter case
			for _, r := range []passkey.Record{young, old} {
				said(t, true)(s.AddPasskey(t.Context(), r))
			}
			said(t, false)(s.AddPasskey(t.Context(), record("A", b.ID, 0))) // of another user
			list := func(userID string, want ...passkey.Record) {
				t.Helper()
				got, err := s.Passkeys(t.Context(), userID)
				must(t, err)
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			}
			list(a.ID, old, young)
			list(b.ID)

			said(t, false)(s.RenamePasskey(t.Context(), b.ID, "A", "mine"))
			said(t, true)(s.RenamePasskey(t.Context(), a.ID, "A", "other"))
			said(t, false)(s.UsePasskey(t.Context(), b.ID, "A", 1<<32-2, 1<<32-1, start))
			said(t, false)(s.UsePasskey(t.Context(), a.ID, "A", 5, 1<<32-1, start))
			said(t, true)(s.UsePasskey(t.Context(), a.ID, "A", 1<<32-2, 1<<32-1, start.Add(time.Minute)))
			young.Name, young.Counter, young.UsedAt = "other", 1<<32-1, start.Add(time.Minute)
			list(a.ID, old, young)

			said(t, false)(s.DeletePasskey(t.Context(), b.ID, "a"))
			said(t, true)(s.DeletePasskey(t.Context(), a.ID, "a"))
			said(t, false)(s.DeletePasskey(t.Context(), a.ID, "a"))
			list(a.ID, young)
			must(t, store.Users{DB: db}.DeleteUser(t.Context(), a.ID))
			said(t, true)(s.AddPasskey(t.Context(), record("A", b.ID, 0))) // went with its user
		}},
		{"Registrations", func(t *testing.T, db *store.DB) {
			s := store.Passkeys{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			begun := func(userID, session string) passkey.Registration {
				return passkey.Registration{UserID: userID, Session: session, Name: "key", Challenge: []byte("of " + session), EndsAt: start.Add(time.Minute)}
			}
			must(t, s.SetRegistration(t.Context(), begun(a.ID, "first")))
			must(t, s.SetRegistration(t.Context(), begun(a.ID, "second")))
			must(t, s.SetRegistration(t.Context(), begun(b.ID, "third")))
			spend := func(userID, session string, now time.Time, want bool) {
				t.Helper()
				got, found, err := s.SpendRegistration(t.Context(), userID, session, now)
				must(t, err)
				if found != want {
					t.Errorf("%s: found %t", session, found)
				}
				if d := cmp.Diff(begun(userID, session), got); found && d != "" {
					t.Error(d)
				}
			}
			spend(a.ID, "first", start, false) // replaced
			spend(b.ID, "second", start, false)
			spend(a.ID, "second", start.Add(time.Minute), false) // over
			must(t, s.SweepRegistrations(t.Context(), start))
			spend(a.ID, "second", start, true)
			spend(a.ID, "second", start, false)
			must(t, s.SweepRegistrations(t.Context(), start.Add(time.Minute)))
			spend(b.ID, "third", start, false)
		}},
		{"Once", func(t *testing.T, db *store.DB) {
			s := store.Passkeys{DB: db}
			group(t, db, "Default")
			a := person(t, db, 1)
			said(t, true)(s.AddPasskey(t.Context(), passkey.Record{ID: "A", UserID: a.ID, Name: "key", Counter: 1, Sealed: []byte("s"), CreatedAt: start}))
			must(t, s.SetRegistration(t.Context(), passkey.Registration{UserID: a.ID, Session: "s", Name: "key", Challenge: []byte("c"), EndsAt: start.Add(time.Minute)}))
			var used, spent atomic.Int64
			for _, err := range together(16, func(int) error {
				ok, err := s.UsePasskey(t.Context(), a.ID, "A", 1, 2, start)
				if ok {
					used.Add(1)
				}
				if err != nil {
					return err
				}
				_, ok, err = s.SpendRegistration(t.Context(), a.ID, "s", start)
				if ok {
					spent.Add(1)
				}
				return err
			}) {
				must(t, err)
			}
			if used.Load() != 1 || spent.Load() != 1 {
				t.Errorf("a counter was used %d times, a registration spent %d times", used.Load(), spent.Load())
			}
		}},
	}.run(t, open)
}
