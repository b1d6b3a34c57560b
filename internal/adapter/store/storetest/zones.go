// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/user"
)

func testZones(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"Zones", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			must(t, s.SetTimeZone(t.Context(), a.ID, "Asia/Yekaterinburg"))
			for id, want := range map[string]string{a.ID: "Asia/Yekaterinburg", b.ID: "", "unknown": ""} {
				if name, err := s.TimeZone(t.Context(), id); err != nil || name != want {
					t.Errorf("the zone of %s is %q, %v; want %q", id, name, err, want)
				}
			}
			if err := s.SetTimeZone(t.Context(), "unknown", "UTC"); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("the zone of an unknown user: %v", err)
			}
		}},
	}.run(t, open)
}
