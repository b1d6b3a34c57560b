// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/contact"
)

func testContacts(t *testing.T, open func(t *testing.T) *store.DB) {
	phone := func(userID, value string) contact.Contact {
		return contact.Contact{UserID: userID, Type: contact.PhoneNumber, Value: "+" + value, CreatedAt: start}
	}
	add := func(t *testing.T, s store.Contacts, c contact.Contact, normal string, unique, want bool) {
		t.Helper()
		added, err := s.AddContact(t.Context(), c, normal, unique)
		must(t, err)
		if added != want {
			t.Errorf("%s of %s added: %t, want %t", normal, c.UserID, added, want)
		}
	}
	list := func(t *testing.T, s store.Contacts, userID string, want ...contact.Contact) {
		t.Helper()
		got, err := s.Contacts(t.Context(), userID, contact.PhoneNumber)
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	role := func(t *testing.T, s store.Contacts, userID, normal string, r contact.Role, has, want bool) {
		t.Helper()
		done, err := s.SetRole(t.Context(), userID, contact.PhoneNumber, normal, r, has)
		must(t, err)
		if done != want {
			t.Errorf("role %d of %s: %t, want %t", r, normal, done, want)
		}
	}
	cases{
		{"AddListDelete", func(t *testing.T, db *store.DB) {
			s := store.Contacts{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			first, second := phone(a.ID, "7001"), phone(a.ID, "7002")
			second.CreatedAt = start.Add(-time.Second) // the older one comes first
			add(t, s, first, "7001", false, true)
			add(t, s, second, "7002", false, true)
			add(t, s, first, "7001", false, false)              // the same user
			add(t, s, phone(b.ID, "7001"), "7001", false, true) // another user
			add(t, s, phone(b.ID, "7002"), "7002", true, false) // where contacts are unique
			mail := contact.Contact{UserID: a.ID, Type: contact.EmailAddress, Value: "a@b.ru", CreatedAt: start}
			add(t, s, mail, "a@b.ru", true, true)
			list(t, s, a.ID, second, first)
			must(t, s.ConfirmContact(t.Context(), a.ID, contact.PhoneNumber, "7001"))
			first.Confirmed = true
			list(t, s, a.ID, second, first)
			got, found, err := s.Contact(t.Context(), a.ID, contact.EmailAddress, "a@b.ru")
			must(t, err)
			if d := cmp.Diff(mail, got); d != "" || !found {
				t.Error(found, d)
			}
			must(t, s.DeleteContact(t.Context(), a.ID, contact.PhoneNumber, "7002"))
			list(t, s, a.ID, first)
			for normal, want := range map[string]bool{"7001": true, "7002": false} {
				has, err := s.HasContact(t.Context(), contact.PhoneNumber, normal)
				must(t, err)
				if has != want {
					t.Errorf("%s in use: %t, want %t", normal, has, want)
				}
			}
			must(t, s.DeleteContacts(t.Context(), a.ID))
			list(t, s, a.ID)
			list(t, s, b.ID, phone(b.ID, "7001"))
		}},
		{"Roles", func(t *testing.T, db *store.DB) {
			s := store.Contacts{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			for _, u := range []string{a.ID, b.ID} {
				add(t, s, phone(u, "7001"), "7001", false, true)
				add(t, s, phone(u, "7002"), "7002", false, true)
			}
			owner := func(normal, want string) {
				t.Helper()
				got, err := s.PrimaryOwner(t.Context(), contact.PhoneNumber, normal)
				must(t, err)
				if got != want {
					t.Errorf("%s is primary of %q, want %q", normal, got, want)
				}
			}
			holder := func(userID string, r contact.Role, want string) {
				t.Helper()
				c, found, err := s.ContactByRole(t.Context(), userID, contact.PhoneNumber, r)
				must(t, err)
				if found != (want != "") || found && c.Value != "+"+want {
					t.Errorf("role %d of %s has %v, want %q", r, userID, c, want)
				}
			}
			role(t, s, a.ID, "7001", contact.RolePrimary, true, true)
			role(t, s, a.ID, "7001", contact.RolePrimary, true, true)
			role(t, s, b.ID, "7001", contact.RolePrimary, true, false)
			owner("7001", a.ID)
			role(t, s, a.ID, "7002", contact.RolePrimary, true, true) // it moves
			owner("7001", "")
			owner("7002", a.ID)
			role(t, s, b.ID, "7001", contact.RolePrimary, true, true)
			owner("7001", b.ID)
			role(t, s, b.ID, "7001", contact.RolePrimary, false, true)
			owner("7001", "")
			add(t, s, contact.Contact{UserID: b.ID, Type: contact.PhoneNumber, Value: "+7003", Primary: true, CreatedAt: start}, "7003", false, true)
			add(t, s, contact.Contact{UserID: a.ID, Type: contact.PhoneNumber, Value: "+7003", Primary: true, CreatedAt: start}, "7003", false, false)
			owner("7003", b.ID)
			// Codes go to one contact of a user, whatever the contacts of other users
			// are.
			for _, u := range []string{a.ID, b.ID} {
				role(t, s, u, "7001", contact.RoleSecondaryAuth, true, true)
				role(t, s, u, "7002", contact.RoleSecondaryAuth, true, true)
				holder(u, contact.RoleSecondaryAuth, "7002")
			}
			// Notifications go to all confirmed contacts.
			role(t, s, a.ID, "7001", contact.RoleNotification, true, true)
			role(t, s, a.ID, "7002", contact.RoleNotification, true, true)
			must(t, s.ConfirmContact(t.Context(), a.ID, contact.PhoneNumber, "7002"))
			got, err := s.NotificationContacts(t.Context(), a.ID, contact.PhoneNumber)
			must(t, err)
			if len(got) != 1 || got[0].Value != "+7002" {
				t.Errorf("notifications go to %v, want +7002", got)
			}
		}},
		// One value, sixteen users who want it as their primary contact.
		{"OnePrimaryTogether", func(t *testing.T, db *store.DB) {
			s := store.Contacts{DB: db}
			group(t, db, "Default")
			const n = 16
			ids := make([]string, n)
			for i := range ids {
				ids[i] = person(t, db, i).ID
				add(t, s, phone(ids[i], "7001"), "7001", false, true)
			}
			won := make([]bool, n)
			for _, err := range together(n, func(i int) (err error) {
				won[i], err = s.SetRole(t.Context(), ids[i], contact.PhoneNumber, "7001", contact.RolePrimary, true)
				return err
			}) {
				must(t, err)
			}
			owner, err := s.PrimaryOwner(t.Context(), contact.PhoneNumber, "7001")
			must(t, err)
			for i := range won {
				if won[i] != (ids[i] == owner) {
					t.Errorf("%s was told %t, the owner is %s", ids[i], won[i], owner)
				}
			}
		}},
		{"Codes", func(t *testing.T, db *store.DB) {
			s := store.Contacts{DB: db}
			group(t, db, "Default")
			a := person(t, db, 1)
			code := contact.Code{
				UserID: a.ID, Purpose: "contact", Type: contact.PhoneNumber, Normal: "7001",
				Key: []byte("key"), MAC: []byte("mac"), IssuedAt: start, ExpiresAt: start.Add(time.Minute),
			}
			issue := func(c contact.Code, notBefore time.Time, want bool) {
				t.Helper()
				ok, err := s.IssueCode(t.Context(), c, notBefore)
				must(t, err)
				if ok != want {
					t.Errorf("issued: %t, want %t", ok, want)
				}
			}
			try := func(purpose string, now time.Time, want int) {
				t.Helper()
				c, attempts, found, err := s.TryCode(t.Context(), a.ID, purpose, contact.PhoneNumber, "7001", now)
				must(t, err)
				if found != (want > 0) || attempts != want {
					t.Errorf("tried: %t with %d attempts, want %d", found, attempts, want)
				}
				if d := cmp.Diff(code, c); found && d != "" {
					t.Error(d)
				}
			}
			spend := func(mac string, limit int, now time.Time, want bool) {
				t.Helper()
				ok, err := s.SpendCode(t.Context(), a.ID, "contact", contact.PhoneNumber, "7001", []byte(mac), limit, now)
				must(t, err)
				if ok != want {
					t.Errorf("spent: %t, want %t", ok, want)
				}
			}
			issue(code, start.Add(-time.Minute), true)
			issue(code, start.Add(-time.Millisecond), false)
			try("contact", start, 1)
			try("another", start, 0)
			try("contact", start.Add(time.Minute), 0)
			try("contact", start.Add(time.Minute-time.Millisecond), 2)
			spend("other", 5, start, false)
			spend("mac", 1, start, false) // two attempts were counted
			spend("mac", 2, start.Add(time.Minute), false)
			spend("mac", 2, start, true)
			spend("mac", 2, start, false)
			try("contact", start, 0)
			issue(code, start.Add(-time.Millisecond), false) // spent or not, it was sent a moment ago
			code.IssuedAt = start.Add(30 * time.Second)
			issue(code, start, true) // starts again
			try("contact", start, 1)
			must(t, s.SweepCodes(t.Context(), start.Add(24*time.Hour)))
			try("contact", start, 2)
			must(t, s.SweepCodes(t.Context(), start.Add(25*time.Hour)))
			try("contact", start, 0)
		}},
		// A code is spent once, however many callers submit it.
		{"CodeTogether", func(t *testing.T, db *store.DB) {
			s := store.Contacts{DB: db}
			group(t, db, "Default")
			a := person(t, db, 1)
			for round := range 8 {
				mac := fmt.Appendf(nil, "mac %d", round)
				_, err := s.IssueCode(t.Context(), contact.Code{
					UserID: a.ID, Purpose: "contact", Type: contact.PhoneNumber, Normal: "7001",
					Key: []byte("key"), MAC: mac, IssuedAt: start, ExpiresAt: start.Add(time.Minute),
				}, start)
				must(t, err)
				won := make([]bool, 16)
				for _, err := range together(len(won), func(i int) (err error) {
					won[i], err = s.SpendCode(t.Context(), a.ID, "contact", contact.PhoneNumber, "7001", mac, 5, start)
					return err
				}) {
					must(t, err)
				}
				n := 0
				for _, w := range won {
					if w {
						n++
					}
				}
				if n != 1 {
					t.Errorf("spent %d times, want once", n)
				}
			}
		}},
	}.run(t, open)
}
