// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
)

func testRequests(t *testing.T, open func(t *testing.T) *store.DB) {
	pending := func(userID, keyID string) keys.RequestRecord {
		return keys.RequestRecord{
			UserID: userID, Type: keys.ForCertificate, Status: keys.Pending, Authority: 2, KeyID: keyID, Renews: 7,
			DER: []byte{0x30, 0}, Life: 90 * time.Minute, Comment: "почему", CreatedAt: start,
		}
	}
	cases{
		{"AddDecideDelete", func(t *testing.T, db *store.DB) {
			s := store.Keys{DB: db}
			group(t, db, "Default")
			u, other := person(t, db, 1), person(t, db, 2)
			k := keyOf(t, db, u, 1)
			want := pending(u.ID, k.ID)
			var err error
			want.ID, err = s.AddRequest(t.Context(), want)
			must(t, err)
			got, found, err := s.Request(t.Context(), want.ID)
			must(t, err)
			if d := cmp.Diff(want, got); d != "" || !found {
				t.Errorf("found %t: %s", found, d)
			}
			if _, err := s.AddRequest(t.Context(), want); err == nil {
				t.Error("a second pending request of a user was added")
			}
			_, err = s.AddRequest(t.Context(), pending(other.ID, ""))
			must(t, err)
			waiting, err := s.PendingRequests(t.Context())
			must(t, err)
			if len(waiting) != 2 || waiting[0].ID != want.ID || waiting[1].KeyID != "" {
				t.Errorf("waiting: %+v", waiting)
			}
			users := store.Users{DB: db}
			group(t, db, "Other")
			for id, groups := range map[string][]string{"ours": {"Default"}, "theirs": {"Other"}} {
				must(t, users.AddUser(t.Context(), user.User{ID: id, Login: id, Group: "Other", Operator: true, CreatedAt: start}, id))
				must(t, users.SetOperatorGroups(t.Context(), id, groups))
			}
			for i, c := range []struct {
				operator string
				after    int64
				limit    int
				want     []int64
			}{
				{"ours", 0, 9, []int64{waiting[0].ID, waiting[1].ID}}, {"ours", 0, 1, []int64{waiting[0].ID}}, {"ours", waiting[0].ID, 9, []int64{waiting[1].ID}},
				{"theirs", 0, 9, nil}, {u.ID, 0, 9, nil}, {"unknown", 0, 9, nil},
			} {
				list, err := s.PendingRequestsFor(t.Context(), c.operator, c.after, c.limit, start)
				must(t, err)
				var ids []int64
				for _, q := range list {
					ids = append(ids, q.ID)
				}
				if !slices.Equal(ids, c.want) {
					t.Errorf("row %d: an operator sees the requests %d, want %d", i, ids, c.want)
				}
			}
			must(t, s.DeleteUnusedKey(t.Context(), k.ID))
			if _, found, _ := s.Key(t.Context(), k.ID); !found {
				t.Error("a key with a pending request was deleted as unused")
			}
			for _, first := range []bool{true, false} {
				decided, err := s.Decide(t.Context(), want.ID, keys.Rejected, 0, "нет копии приказа", start.Add(time.Second))
				must(t, err)
				if decided != first {
					t.Errorf("decided %t, want %t", decided, first)
				}
			}
			want.Status, want.DecidedAt, want.Refusal = keys.Rejected, start.Add(time.Second), "нет копии приказа"
			must(t, s.DeleteUnusedKey(t.Context(), k.ID))
			want.KeyID = "" // the key is gone, the request stays
			list, err := s.Requests(t.Context(), u.ID)
			must(t, err)
			if d := cmp.Diff([]keys.RequestRecord{want}, list); d != "" {
				t.Error(d)
			}
			must(t, s.DeleteRequest(t.Context(), want.ID))
			if _, found, err := s.Request(t.Context(), want.ID); found || err != nil {
				t.Errorf("deleted: %t, %v", found, err)
			}
			must(t, store.Users{DB: db}.DeleteUser(t.Context(), other.ID))
			if waiting, err := s.PendingRequests(t.Context()); err != nil || len(waiting) != 0 {
				t.Errorf("requests of a deleted user: %v, %v", waiting, err)
			}
		}},
		{"Outside", func(t *testing.T, db *store.DB) {
			s := store.Keys{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			k := keyOf(t, db, u, 1)
			mine := certificateOf(t, db, k, 1)
			// Another authority may use the same serial number, and two others may too.
			for n := range 2 {
				outside := mine.NewCertificate
				outside.Outside, outside.DER = true, []byte{0x30, 9, byte(n)}
				id, err := s.AddCertificate(t.Context(), outside)
				must(t, err)
				got, _, found, err := s.Certificate(t.Context(), id)
				must(t, err)
				if !found || !got.Outside || !got.RevokedAt.IsZero() {
					t.Errorf("%t %+v", found, got)
				}
			}
			if _, err := s.AddCertificate(t.Context(), mine.NewCertificate); err == nil {
				t.Error("the same serial number of the built-in authority was added twice")
			}
			revoked, err := store.Authority{DB: db}.MarkRevoked(t.Context(), mine.Serial, 6, start)
			must(t, err)
			list, err := s.Certificates(t.Context(), u.ID)
			must(t, err)
			if !revoked || len(list) != 3 || list[0].RevokedAt.IsZero() || !list[1].RevokedAt.IsZero() {
				t.Errorf("%+v", list)
			}
			for _, first := range []bool{true, false} {
				lifted, err := store.Authority{DB: db}.LiftHold(t.Context(), mine.Serial)
				must(t, err)
				if lifted != first {
					t.Errorf("lifted %t, want %t", lifted, first)
				}
			}
		}},
		{"StandingOfOutside", func(t *testing.T, db *store.DB) {
			s := store.Keys{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			var ids []int64
			for n := range 4 {
				k := keyOf(t, db, u, n)
				c := keys.NewCertificate{UserID: u.ID, KeyID: k.ID, DER: []byte{0x30, 9, byte(n)}, Serial: []byte{9}, CreatedAt: start, Outside: true}
				id, err := s.AddCertificate(t.Context(), c)
				must(t, err)
				ids = append(ids, id)
			}
			due := func(now time.Time, after int64, limit int, want ...int64) {
				t.Helper()
				list, err := s.DueStatuses(t.Context(), now, after, limit)
				must(t, err)
				var got []int64
				for _, c := range list {
					got = append(got, c.ID)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			}
			due(start, 0, 10, ids...) // no status was requested yet
			due(start, ids[0], 2, ids[1], ids[2])
			later := start.Add(time.Minute)
			must(t, s.NoteStatus(t.Context(), ids[0], keys.OutsideStatus{DueAt: later}))
			must(t, s.NoteStatus(t.Context(), ids[1], keys.OutsideStatus{RevokedAt: start.Add(-time.Hour), Reason: 6, DueAt: start}))
			must(t, s.NoteStatus(t.Context(), ids[2], keys.OutsideStatus{RevokedAt: start, Reason: 1, DueAt: later}))
			must(t, s.NoteStatus(t.Context(), 1<<40, keys.OutsideStatus{DueAt: later})) // of no certificate
			due(start, 0, 10, ids[1], ids[3])
			due(later.Add(-time.Millisecond), 0, 10, ids[1], ids[3])
			due(later, 0, 10, ids...)
			must(t, s.NoteStatus(t.Context(), ids[2], keys.OutsideStatus{DueAt: later}))
			for n, want := range []keys.CertificateRecord{{}, {RevokedAt: start.Add(-time.Hour), Reason: 6}, {}, {}} {
				got, _, found, err := s.Certificate(t.Context(), ids[n])
				must(t, err)
				if !found || !got.RevokedAt.Equal(want.RevokedAt) || got.Reason != want.Reason {
					t.Errorf("%d: %+v", n, got)
				}
			}
			must(t, s.DeleteCertificate(t.Context(), ids[1]))
			due(later, 0, 10, ids[0], ids[2], ids[3])
		}},
		{"Change", func(t *testing.T, db *store.DB) {
			s := store.Keys{DB: db}
			group(t, db, "Default")
			k := keyOf(t, db, person(t, db, 1), 1)
			c := certificateOf(t, db, k, 1)
			must(t, s.SetFriendlyName(t.Context(), c.ID, "другое"))
			for _, old := range []struct {
				sealed []byte
				want   bool
			}{{[]byte{1}, false}, {k.Sealed, true}, {k.Sealed, false}} {
				replaced, err := s.ReplaceSealed(t.Context(), k.ID, old.sealed, []byte{5, 6}, false)
				must(t, err)
				if replaced != old.want {
					t.Errorf("replaced %t, want %t", replaced, old.want)
				}
			}
			got, _, _, err := s.Certificate(t.Context(), c.ID)
			must(t, err)
			if got.FriendlyName != "другое" || got.HasPIN {
				t.Errorf("%+v", got)
			}
			for n := range 3 {
				if failures, err := s.PINFailures(t.Context(), k.ID); err != nil || failures != n {
					t.Errorf("%d failures, %v, want %d", failures, err, n)
				}
				if ok, err := s.ReservePIN(t.Context(), k.ID, 10); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			must(t, s.DeleteUnusedKey(t.Context(), k.ID))
			if _, found, _ := s.Key(t.Context(), k.ID); !found {
				t.Error("a key with a certificate was deleted as unused")
			}
			_, err = s.SetDefault(t.Context(), c.UserID, c.ID)
			must(t, err)
			must(t, s.DeleteCertificate(t.Context(), c.ID))
			must(t, s.DeleteUnusedKey(t.Context(), k.ID))
			if _, found, _ := s.Key(t.Context(), k.ID); found {
				t.Error("an unused key was not deleted")
			}
			if _, found, err := s.DefaultCertificate(t.Context(), c.UserID); found || err != nil {
				t.Errorf("a deleted certificate is the default one: %v", err)
			}
			next := certificateOf(t, db, keyOf(t, db, person(t, db, 2), 2), 2)
			if next.ID != c.ID+1 {
				t.Errorf("number %d after %d", next.ID, c.ID)
			}
		}},
		{"Parameters", func(t *testing.T, db *store.DB) {
			s := store.Keys{DB: db}
			group(t, db, "Default")
			k := keyOf(t, db, person(t, db, 1), 1)
			for n, want := range []bool{true, true, false} {
				kept, err := s.SetKeyParameter(t.Context(), k.ID, fmt.Sprint(n), "v", 2)
				must(t, err)
				if kept != want {
					t.Errorf("parameter %d: kept %t", n, kept)
				}
			}
			kept, err := s.SetKeyParameter(t.Context(), k.ID, "1", "другое", 2)
			must(t, err)
			value, found, err := s.KeyParameter(t.Context(), k.ID, "1")
			must(t, err)
			if !kept || !found || value != "другое" {
				t.Errorf("%t %t %q", kept, found, value)
			}
			if kept, err := s.SetKeyParameter(t.Context(), "nothing", "1", "v", 2); kept || err != nil {
				t.Errorf("of no key: %t, %v", kept, err)
			}
		}},
	}.run(t, open)
}
