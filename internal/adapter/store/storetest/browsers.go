// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/device"
)

func testBrowsers(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"Browsers", func(t *testing.T, db *store.DB) {
			s := store.Browsers{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			record := func(id, userID string, age time.Duration) device.BrowserRecord {
				return device.BrowserRecord{ID: id, UserID: userID, Sealed: []byte("sealed " + id + userID), CreatedAt: start.Add(-age)}
			}
			list := func(userID string, want ...device.BrowserRecord) {
				t.Helper()
				got, err := s.Browsers(t.Context(), userID)
				must(t, err)
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			}
			young, old := record("A", a.ID, 0), record("a", a.ID, time.Hour) // identifiers differ by letter case
			must(t, s.PutBrowser(t.Context(), young))
			must(t, s.PutBrowser(t.Context(), old))
			list(a.ID, old, young)
			list(b.ID)

			said(t, false)(s.ChangeBrowser(t.Context(), "A", old.Sealed, []byte("other")))
			said(t, true)(s.ChangeBrowser(t.Context(), "A", young.Sealed, []byte("other")))
			young.Sealed = []byte("other")
			list(a.ID, old, young)

			// The browser has another person now.
			taken := record("A", b.ID, time.Minute)
			must(t, s.PutBrowser(t.Context(), taken))
			list(a.ID, old)
			list(b.ID, taken)
			got, found, err := s.Browser(t.Context(), "A")
			must(t, err)
			if d := cmp.Diff(taken, got); d != "" || !found {
				t.Errorf("found %t: %s", found, d)
			}

			said(t, false)(s.DeleteBrowser(t.Context(), a.ID, "A"))
			said(t, true)(s.DeleteBrowser(t.Context(), b.ID, "A"))
			said(t, false)(s.DeleteBrowser(t.Context(), b.ID, "A"))
			must(t, store.Users{DB: db}.DeleteUser(t.Context(), a.ID))
			if _, found, err := s.Browser(t.Context(), "a"); err != nil || found {
				t.Errorf("after its user: found %t, %v", found, err)
			}
		}},
	}.run(t, open)
}
