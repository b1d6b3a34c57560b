// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"testing"
	"time"

	"tamga/internal/adapter/store"
)

// TestFiguresOfEnds counts certificates that end, and finds the newest token key.
func TestFiguresOfEnds(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			for _, statement := range []string{
				"INSERT INTO user_groups (name, title, created_at) VALUES ('g', '', 0)",
				"INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at) VALUES ('u', 'u', 'u', 'u', 'g', TRUE, FALSE, 0, FALSE, 0)",
				"INSERT INTO keys (id, user_id, holder, suite, sealed, has_pin, pin_failures, created_at) VALUES ('k', 'u', 'software', '', 's', FALSE, 0, 0)",
				"INSERT INTO authorities (name, holder, suite, sealed, certificate, crl, crl_number, crl_at, created_at) VALUES ('a', 'software', '', 's', 'c', 'l', 7, 8, 0)",
				"INSERT INTO signing_keys (id, sealed, created_at) VALUES ('old', 's', 1000), ('new', 's', 5000)",
			} {
				engine.exec(t, url, statement)
			}
			now := time.Now()
			for n, c := range []struct {
				end                    time.Duration
				revoked, kept, outside bool
			}{
				{time.Hour, false, true, false},
				{3 * 24 * time.Hour, false, true, false},
				{20 * 24 * time.Hour, false, true, false},
				{60 * 24 * time.Hour, false, true, false},
				{-time.Hour, false, true, false},
				{time.Hour, true, true, false},
				{time.Hour, false, false, false}, // its user was deleted
				{time.Hour, false, true, true},   // of another authority, with the same number
			} {
				revoked := 0
				if c.revoked {
					revoked = 1
				}
				engine.exec(t, url, fmt.Sprintf("INSERT INTO issued_certificates (serial, authority, not_after, issued_at, revoked_at, reason) VALUES ('%d', 'a', %d, 0, %d, 0)",
					n, now.Add(c.end).UnixMilli(), revoked))
				if c.kept {
					engine.exec(t, url, fmt.Sprintf("INSERT INTO certificates (user_id, key_id, certificate, serial, friendly_name, created_at, outside) VALUES ('u', 'k', 'c', '%d', '', 0, %t)", n, c.outside))
				}
			}
			f, err := open(t, url).Figures(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := [len(store.EndingWithin)]int64{1, 2, 3}; f.Ending != want || !f.TokenKey.Equal(time.UnixMilli(5000)) {
				t.Errorf("ending %v, want %v; token key of %v", f.Ending, want, f.TokenKey)
			}
		})
	}
}
