// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/report"
)

func testReports(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"Reports", func(t *testing.T, db *store.DB) {
			s := store.Reports{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			record := func(number, userID string, age time.Duration) report.Record {
				at := start.Add(-age)
				return report.Record{Info: report.Info{Number: number, UserID: userID, Name: "Договор " + number + ".pdf", Verdict: "passed", CreatedAt: at, ExpiresAt: at.Add(24 * time.Hour)}, Bytes: 7, Sealed: []byte("sealed " + number)}
			}
			young, second, old, foreign := record("2611-B", a.ID, 0), record("2611-A", a.ID, 0), record("2611-C", a.ID, time.Hour), record("2611-D", b.ID, 0)
			for _, r := range []report.Record{young, second, old, foreign} {
				said(t, true)(s.AddReport(t.Context(), r))
			}
			said(t, false)(s.AddReport(t.Context(), record("2611-A", b.ID, 0)))
			if n, size, err := s.UsageOfReports(t.Context(), a.ID); err != nil || n != 3 || size != 21 {
				t.Errorf("%d reports of %d bytes, %v", n, size, err)
			}
			if n, size, err := s.UsageOfReports(t.Context(), "x"); err != nil || n != 0 || size != 0 {
				t.Errorf("%d reports of %d bytes, %v", n, size, err)
			}
			got, found, err := s.Report(t.Context(), "2611-A")
			if must(t, err); !found || got.UserID != a.ID || got.Bytes != 7 || !bytes.Equal(got.Sealed, second.Sealed) {
				t.Errorf("%t, %+v", found, got)
			}
			list := func(now time.Time, older report.Position, n int, want ...report.Record) {
				t.Helper()
				got, err := s.NewestReports(t.Context(), a.ID, older, n, now)
				must(t, err)
				var infos []report.Info
				for _, r := range want {
					infos = append(infos, r.Info)
				}
				if d := cmp.Diff(infos, got); d != "" {
					t.Error(d)
				}
			}
			list(start, report.Position{}, 9, young, second, old)
			list(start, report.Position{}, 1, young)
			list(start, report.Position{At: young.CreatedAt, Number: young.Number}, 9, second, old)
			list(start.Add(23*time.Hour), report.Position{}, 9, young, second)
			said(t, false)(s.DeleteReport(t.Context(), b.ID, "2611-B"))
			said(t, true)(s.DeleteReport(t.Context(), a.ID, "2611-B"))
			must(t, s.SweepReports(t.Context(), start.Add(23*time.Hour)))
			list(start, report.Position{}, 9, second)
			if _, found, err := s.Report(t.Context(), "2611-C"); found || err != nil {
				t.Errorf("an ended report is there: %v", err)
			}
		}},
	}.run(t, open)
}
