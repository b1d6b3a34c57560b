// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/lease"
)

func testAuditExport(t *testing.T, open func(t *testing.T) *store.DB) {
	ours, theirs := lease.Lease{Token: "ours", Until: start.Add(time.Minute)}, lease.Lease{Token: "theirs", Until: start.Add(3 * time.Minute)}
	claim := func(t *testing.T, s *store.AuditExport, l lease.Lease, now time.Time, position int64, want bool) {
		t.Helper()
		at, claimed, err := s.ClaimExport(t.Context(), l, now)
		must(t, err)
		if claimed != want || claimed && at != position {
			t.Errorf("claimed %t at %d, want %t at %d", claimed, at, want, position)
		}
	}
	held := func(t *testing.T, want bool) func(bool, error) {
		return func(got bool, err error) {
			t.Helper()
			must(t, err)
			if got != want {
				t.Errorf("held: %t, want %t", got, want)
			}
		}
	}
	cases{
		{"OneAtATime", func(t *testing.T, db *store.DB) {
			s := store.NewAuditExport(db, false)
			claim(t, s, ours, start, 0, true)
			claim(t, s, theirs, start.Add(time.Second), 0, false)
			held(t, true)(s.MoveExport(t.Context(), "ours", 7))
			held(t, false)(s.MoveExport(t.Context(), "theirs", 9))
			held(t, true)(s.ExtendExport(t.Context(), lease.Lease{Token: "ours", Until: start.Add(2 * time.Minute)}))
			claim(t, s, theirs, start.Add(90*time.Second), 0, false)
			claim(t, s, theirs, start.Add(2*time.Minute), 7, true)
			held(t, false)(s.ExtendExport(t.Context(), ours))
			held(t, false)(s.MoveExport(t.Context(), "ours", 8))
			must(t, s.ReleaseExport(t.Context(), "ours")) // does nothing
			claim(t, s, ours, start.Add(2*time.Minute), 0, false)
			must(t, s.ReleaseExport(t.Context(), "theirs"))
			claim(t, s, ours, start.Add(2*time.Minute), 7, true)
		}},
		{"Begins", func(t *testing.T, db *store.DB) {
			for i := range 3 {
				must(t, store.Audit{DB: db}.Record(t.Context(), audit.Entry{RequestID: fmt.Sprint(i)}))
			}
			before, err := db.Figures(t.Context())
			must(t, err)
			s := store.NewAuditExport(db, true)
			claim(t, s, ours, start, 3, true)
			must(t, store.Audit{DB: db}.Record(t.Context(), audit.Entry{RequestID: "3", At: start}))
			list, err := s.Following(t.Context(), 3, 10)
			must(t, err)
			if len(list) != 1 || list[0].Number != 4 || list[0].RequestID != "3" {
				t.Errorf("%+v", list)
			}
			f, err := db.Figures(t.Context())
			must(t, err)
			if before.Exported || !f.Exported || f.ExportLag != 1 || !f.ExportOldest.Equal(start) {
				t.Errorf("%+v, then %+v", before, f)
			}
			held(t, true)(s.MoveExport(t.Context(), "ours", 4))
			if f, err = db.Figures(t.Context()); err != nil || f.ExportLag != 0 || !f.ExportOldest.IsZero() {
				t.Errorf("%+v, %v", f, err)
			}
		}},
		{"InOrder", func(t *testing.T, db *store.DB) {
			s := store.NewAuditExport(db, false)
			for i := range 10 {
				must(t, store.Audit{DB: db}.Record(t.Context(), audit.Entry{RequestID: fmt.Sprint(i)}))
			}
			var ids string
			for position := int64(0); ; {
				list, err := s.Following(t.Context(), position, 3)
				must(t, err)
				if len(list) == 0 {
					break
				}
				for _, e := range list {
					ids += e.RequestID
				}
				position = list[len(list)-1].Number
			}
			if ids != "0123456789" {
				t.Errorf("%s", ids)
			}
		}},
	}.run(t, open)
}
