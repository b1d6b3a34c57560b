// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/device"
)

func testDevices(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"Devices", func(t *testing.T, db *store.DB) {
			s := store.Devices{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			record := func(kid, userID string, age time.Duration) device.Record {
				return device.Record{Kid: kid, UserID: userID, Number: 7, NotAfter: start.Add(time.Hour), CreatedAt: start.Add(-age), Sealed: []byte("sealed " + kid)}
			}
			young, old, unowned := record("100", a.ID, 0), record("200", a.ID, time.Hour), record("300", "", 0)
			for _, r := range []device.Record{young, old, unowned} {
				said(t, true)(s.AddDevice(t.Context(), r))
			}
			said(t, false)(s.AddDevice(t.Context(), record("100", b.ID, 0)))
			list := func(userID string, want ...device.Record) {
				t.Helper()
				got, err := s.Devices(t.Context(), userID)
				must(t, err)
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			}
			count := func(owned, anonymous int) {
				t.Helper()
				for _, c := range []struct {
					anonymous bool
					want      int
				}{{false, owned}, {true, anonymous}} {
					got, err := s.CountDevices(t.Context(), c.anonymous)
					must(t, err)
					if got != c.want {
						t.Errorf("%d devices (without a user: %t), want %d", got, c.anonymous, c.want)
					}
				}
			}
			list(a.ID, old, young)
			list(b.ID)
			list("")
			count(2, 1)

			said(t, false)(s.ChangeDevice(t.Context(), "100", []byte("other"), []byte("after")))
			said(t, false)(s.ChangeDevice(t.Context(), "200", young.Sealed, []byte("after")))
			said(t, true)(s.ChangeDevice(t.Context(), "100", young.Sealed, []byte("after")))
			young.Sealed = []byte("after")
			list(a.ID, old, young)

			unowned.UserID, unowned.NotAfter, unowned.Sealed = b.ID, start.Add(2*time.Hour), []byte("owned")
			said(t, true)(s.OwnDevice(t.Context(), unowned))
			said(t, false)(s.OwnDevice(t.Context(), unowned))
			list(b.ID, unowned)
			count(3, 0)

			for _, c := range []struct {
				number int64
				want   bool
			}{{7, false}, {6, false}, {8, true}, {8, false}, {1 << 62, true}, {9, false}} {
				got, counted, err := s.CountMessage(t.Context(), "300", c.number)
				must(t, err)
				unowned.Number = c.number
				if counted != c.want {
					t.Errorf("number %d counted: %t, want %t", c.number, counted, c.want)
				} else if d := cmp.Diff(unowned, got); counted && d != "" {
					t.Error(d)
				}
			}
			if _, counted, err := s.CountMessage(t.Context(), "999", 1); counted || err != nil {
				t.Errorf("a message of an unknown device was counted: %t, %v", counted, err)
			}
			said(t, true)(s.DeleteDevice(t.Context(), "100"))
			said(t, false)(s.DeleteDevice(t.Context(), "100"))
			must(t, store.Users{DB: db}.DeleteUser(t.Context(), b.ID)) // deletes its devices too
			list(b.ID)
			count(1, 0)
		}},
		{"KInits", func(t *testing.T, db *store.DB) {
			s := store.Devices{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			end := start.Add(time.Hour)
			first := device.KInitRecord{UserID: a.ID, Kid: "100", ExpiresAt: end, Sealed: []byte("first")}
			second := device.KInitRecord{UserID: a.ID, Kid: "200", ExpiresAt: end.Add(time.Hour), Sealed: []byte("second")}
			said(t, true)(s.AddKInit(t.Context(), first, start))
			said(t, false)(s.AddKInit(t.Context(), second, end.Add(-time.Millisecond)))
			is := func(now time.Time, want device.KInitRecord, lives bool) {
				t.Helper()
				for _, find := range []func() (device.KInitRecord, bool, error){
					func() (device.KInitRecord, bool, error) { return s.KInit(t.Context(), want.UserID, now) },
					func() (device.KInitRecord, bool, error) { return s.KInitByKid(t.Context(), want.Kid, now) },
				} {
					got, found, err := find()
					must(t, err)
					if found != lives {
						t.Errorf("%s found: %t, want %t", want.Kid, found, lives)
					} else if d := cmp.Diff(want, got); found && d != "" {
						t.Error(d)
					}
				}
			}
			is(end.Add(-time.Millisecond), first, true)
			is(end, first, false)
			said(t, false)(s.SpendKInit(t.Context(), "100", end))
			said(t, true)(s.AddKInit(t.Context(), second, end)) // the expired one is replaced
			is(end, second, true)
			said(t, false)(s.ChangeKInit(t.Context(), "200", []byte("first"), []byte("third")))
			said(t, true)(s.ChangeKInit(t.Context(), "200", []byte("second"), []byte("third")))
			second.Sealed = []byte("third")
			is(end, second, true)
			said(t, true)(s.AddKInit(t.Context(), device.KInitRecord{UserID: b.ID, Kid: "300", ExpiresAt: end, Sealed: []byte("b")}, start))
			said(t, true)(s.SpendKInit(t.Context(), "200", end))
			said(t, false)(s.SpendKInit(t.Context(), "200", end))
			must(t, s.SweepDevices(t.Context(), end))
			is(start, device.KInitRecord{UserID: b.ID, Kid: "300"}, false)
		}},
		{"ServiceKeys", func(t *testing.T, db *store.DB) {
			s := store.Devices{DB: db}
			key := device.ServiceKeyRecord{Algorithm: "a", Sealed: []byte("sealed"), CreatedAt: start}
			if _, found, err := s.ServiceKey(t.Context(), "a"); found || err != nil {
				t.Errorf("a key that was not added: %v, %v", found, err)
			}
			said(t, true)(s.AddServiceKey(t.Context(), key))
			said(t, false)(s.AddServiceKey(t.Context(), device.ServiceKeyRecord{Algorithm: "a", Sealed: []byte("another"), CreatedAt: start}))
			said(t, true)(s.AddServiceKey(t.Context(), device.ServiceKeyRecord{Algorithm: "b", Sealed: []byte("b"), CreatedAt: start}))
			got, found, err := s.ServiceKey(t.Context(), "a")
			if d := cmp.Diff(key, got); d != "" || !found || err != nil {
				t.Errorf("%v, %v: %s", found, err, d)
			}
		}},
		{"FormerServiceKeys", func(t *testing.T, db *store.DB) {
			s := store.Devices{DB: db}
			end := start.Add(time.Hour)
			key := device.ServiceKeyRecord{Algorithm: "a", Sealed: []byte("first"), CreatedAt: start}
			said(t, true)(s.AddServiceKey(t.Context(), key))
			said(t, false)(s.ReplaceServiceKey(t.Context(), []byte("another"), device.ServiceKeyRecord{Algorithm: "a", Sealed: []byte("second"), CreatedAt: end}))
			said(t, false)(s.ReplaceServiceKey(t.Context(), []byte("first"), device.ServiceKeyRecord{Algorithm: "b", Sealed: []byte("second"), CreatedAt: end}))
			key.Sealed, key.CreatedAt = []byte("second"), end
			said(t, true)(s.ReplaceServiceKey(t.Context(), []byte("first"), key))
			if got, found, err := s.ServiceKey(t.Context(), "a"); !found || err != nil || cmp.Diff(key, got) != "" {
				t.Errorf("%v, %v: %s", found, err, cmp.Diff(key, got))
			}
			former := device.FormerKeyRecord{Algorithm: "a", Digest: []byte("digest"), Sealed: []byte("first"), Statement: "{}", Until: end}
			must(t, s.SetFormerKey(t.Context(), device.FormerKeyRecord{Algorithm: "a", Digest: []byte("older"), Sealed: []byte("older"), Statement: "{}", Until: start}))
			must(t, s.SetFormerKey(t.Context(), former))
			is := func(name string, want bool, got device.FormerKeyRecord, found bool, err error) {
				t.Helper()
				if err != nil || found != want || found && cmp.Diff(former, got) != "" {
					t.Errorf("%s: %v, %v: %s", name, found, err, cmp.Diff(former, got))
				}
			}
			got, found, err := s.FormerKey(t.Context(), []byte("digest"), start)
			is("by digest", true, got, found, err)
			got, found, err = s.FormerKey(t.Context(), []byte("older"), start)
			is("one that another took the place of", false, got, found, err)
			got, found, err = s.FormerKey(t.Context(), nil, start)
			is("without a digest", false, got, found, err)
			got, found, err = s.FormerKey(t.Context(), []byte("digest"), end)
			is("by digest at its end", false, got, found, err)
			got, found, err = s.FormerKeyOf(t.Context(), "a", start)
			is("by algorithm", true, got, found, err)
			got, found, err = s.FormerKeyOf(t.Context(), "a", end)
			is("by algorithm at its end", false, got, found, err)
			must(t, s.SweepDevices(t.Context(), end.Add(-time.Millisecond)))
			got, found, err = s.FormerKeyOf(t.Context(), "a", start)
			is("before its end is swept", true, got, found, err)
			must(t, s.SweepDevices(t.Context(), end))
			got, found, err = s.FormerKeyOf(t.Context(), "a", start)
			is("after its end was swept", false, got, found, err)
			must(t, s.SetFormerKey(t.Context(), former))
			must(t, s.DeleteFormerKey(t.Context(), "a"))
			got, found, err = s.FormerKeyOf(t.Context(), "a", start)
			is("deleted", false, got, found, err)
		}},
		{"Nonces", func(t *testing.T, db *store.DB) {
			s := store.Devices{DB: db}
			group(t, db, "Default")
			a := person(t, db, 1)
			end := start.Add(time.Minute)
			said(t, true)(s.AddDevice(t.Context(), device.Record{Kid: "100", UserID: a.ID, NotAfter: start, CreatedAt: start, Sealed: []byte("x")}))
			said(t, true)(s.AddDevice(t.Context(), device.Record{Kid: "200", NotAfter: start, CreatedAt: start, Sealed: []byte("x")}))
			nonce := device.NonceRecord{Kid: "100", Hash: []byte("hash"), ExpiresAt: end, Sealed: []byte("sealed")}
			must(t, s.SetNonce(t.Context(), device.NonceRecord{Kid: "100", Hash: []byte("former"), ExpiresAt: end, Sealed: []byte("former")}))
			must(t, s.SetNonce(t.Context(), nonce))
			got, found, err := s.Nonce(t.Context(), "100", start)
			must(t, err)
			if d := cmp.Diff(nonce, got); !found || d != "" {
				t.Errorf("found %t: %s", found, d)
			}
			if _, found, err := s.Nonce(t.Context(), "100", end); found || err != nil {
				t.Errorf("an expired nonce was found: %t, %v", found, err)
			}
			said(t, false)(s.SpendNonce(t.Context(), "100", []byte("former"), start))
			said(t, false)(s.SpendNonce(t.Context(), "200", []byte("hash"), start))
			said(t, false)(s.SpendNonce(t.Context(), "100", []byte("hash"), end))
			said(t, true)(s.SpendNonce(t.Context(), "100", []byte("hash"), start))
			said(t, false)(s.SpendNonce(t.Context(), "100", []byte("hash"), start))
			must(t, s.SetNonce(t.Context(), nonce))
			must(t, s.DeleteNonce(t.Context(), "100"))
			said(t, false)(s.SpendNonce(t.Context(), "100", []byte("hash"), start))

			// Of the rows that have expired by now, devices of users stay.
			must(t, s.SetNonce(t.Context(), nonce))
			must(t, s.SweepDevices(t.Context(), end))
			said(t, false)(s.SpendNonce(t.Context(), "100", []byte("hash"), start))
			said(t, true)(s.DeleteDevice(t.Context(), "100"))
			said(t, false)(s.DeleteDevice(t.Context(), "200"))
		}},
		// Of many concurrent callers, only one gets each one-time value of a device.
		{"Together", func(t *testing.T, db *store.DB) {
			s := store.Devices{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			for round := range 4 {
				kid, other := fmt.Sprint(1000+round), fmt.Sprint(2000+round)
				said(t, true)(s.AddDevice(t.Context(), device.Record{Kid: other, NotAfter: start, CreatedAt: start, Sealed: []byte("x")}))
				must(t, s.SetNonce(t.Context(), device.NonceRecord{Kid: other, Hash: []byte("hash"), ExpiresAt: start.Add(time.Minute), Sealed: []byte("x")}))
				said(t, true)(s.AddKInit(t.Context(), device.KInitRecord{UserID: a.ID, Kid: kid, ExpiresAt: start.Add(time.Minute), Sealed: []byte("x")}, start))
				for name, spend := range map[string]func(i int) (bool, error){
					"K-init": func(int) (bool, error) { return s.SpendKInit(t.Context(), kid, start) },
					"nonce":  func(int) (bool, error) { return s.SpendNonce(t.Context(), other, []byte("hash"), start) },
					"number": func(int) (bool, error) {
						_, counted, err := s.CountMessage(t.Context(), other, 5)
						return counted, err
					},
					"owner": func(i int) (bool, error) {
						return s.OwnDevice(t.Context(), device.Record{Kid: other, UserID: []string{a.ID, b.ID}[i%2], NotAfter: start, Sealed: []byte("y")})
					},
					"state": func(i int) (bool, error) {
						return s.ChangeDevice(t.Context(), kid, []byte("state"), []byte("state"+string(rune('a'+i))))
					},
				} {
					if name == "state" {
						said(t, true)(s.AddDevice(t.Context(), device.Record{Kid: kid, NotAfter: start, CreatedAt: start, Sealed: []byte("state")}))
					}
					won := make([]bool, 16)
					for _, err := range together(len(won), func(i int) (err error) {
						won[i], err = spend(i)
						return err
					}) {
						must(t, err)
					}
					if n := len(slices.DeleteFunc(won, func(w bool) bool { return !w })); n != 1 {
						t.Errorf("the %s went to %d, want one", name, n)
					}
				}
			}
		}},
	}.run(t, open)
}

// said checks the result of a statement.
func said(t *testing.T, want bool) func(got bool, err error) {
	t.Helper()
	return func(got bool, err error) {
		t.Helper()
		must(t, err)
		if got != want {
			t.Errorf("the store said %t, want %t", got, want)
		}
	}
}
