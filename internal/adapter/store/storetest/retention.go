// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/document"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/retention"
)

func testRetention(t *testing.T, open func(t *testing.T) *store.DB) {
	put := func(t *testing.T, db *store.DB, n int, userID string, renew time.Time) retention.Retained {
		t.Helper()
		d := keepDocument(t, store.Documents{DB: db}, n, userID, func(r *document.Record) { r.KeepUntil = start.Add(9 * time.Hour) })
		r := retention.Retained{Document: d.ID, UserID: userID, Login: "User1", Name: d.Name, Origin: retention.ByOwner, KeepUntil: d.KeepUntil, RenewAt: renew, DueAt: renew}
		must(t, store.Retentions{DB: db}.PutRetention(t.Context(), &r))
		return r
	}
	cases{
		{"Leases", func(t *testing.T, db *store.DB) {
			group(t, db, "Default")
			s, owner := store.Retentions{DB: db}, person(t, db, 1)
			later, first := put(t, db, 1, owner.ID, start.Add(90*time.Second)), put(t, db, 2, owner.ID, start)
			ours, theirs := lease.Lease{Token: "ours", Until: start.Add(time.Minute)}, lease.Lease{Token: "theirs", Until: start.Add(3 * time.Minute)}
			got, found, err := s.ClaimRenewal(t.Context(), ours, start, time.Minute, time.Hour)
			must(t, err)
			first.Attempts, first.DueAt = 1, ours.Until
			if d := cmp.Diff(first, got); !found || d != "" {
				t.Error(d)
			}
			if got, found, err := s.ClaimRenewal(t.Context(), theirs, start.Add(59*time.Second), time.Minute, time.Hour); err != nil || found {
				t.Errorf("leased twice: %+v, %v", got, err)
			}
			if got, found, err := s.ClaimRenewal(t.Context(), theirs, start.Add(time.Minute), time.Minute, time.Hour); err != nil || !found || got.Document != first.Document || got.Attempts != 2 {
				t.Errorf("after the lease: %+v, %t, %v", got, found, err)
			}
			held := func(what string, want bool) func(bool, error) {
				return func(got bool, err error) {
					t.Helper()
					if must(t, err); got != want {
						t.Errorf("%s: held %t", what, got)
					}
				}
			}
			held("extended by the first", false)(s.ExtendRenewal(t.Context(), first.Document, ours))
			held("extended", true)(s.ExtendRenewal(t.Context(), first.Document, theirs))
			held("finished by the first", false)(s.FinishRenewal(t.Context(), &first, "ours"))
			held("finished without a lease", false)(s.FinishRenewal(t.Context(), &later, ""))
			first.GoodUntil, first.RenewedAt, first.RenewAt, first.DueAt = start.Add(5*time.Hour), start, start.Add(3*time.Hour), start.Add(4*time.Hour)
			first.Attempts, first.Refused, first.Failure = 7, true, "why"
			held("finished", true)(s.FinishRenewal(t.Context(), &first, "theirs"))
			held("finished twice", false)(s.FinishRenewal(t.Context(), &first, "theirs"))
			got, _, err = s.Retention(t.Context(), first.Document)
			must(t, err)
			if d := cmp.Diff(first, got); d != "" {
				t.Error(d)
			}
			// Changing the retention keeps what is known of the time stamps.
			again := first
			again.Origin, again.GoodUntil, again.Failure = retention.ByPolicy, time.Time{}, ""
			must(t, s.PutRetention(t.Context(), &again))
			first.Origin = retention.ByPolicy
			if got, _, err = s.Retention(t.Context(), first.Document); err != nil || got != first {
				t.Errorf("%+v, %v", got, err)
			}
			must(t, s.EndRetention(t.Context(), first.Document))
			if _, found, err := s.Retention(t.Context(), first.Document); err != nil || found {
				t.Errorf("ended: %t, %v", found, err)
			}
		}},
		{"Dying", func(t *testing.T, db *store.DB) { // each claim is the last act of its process
			group(t, db, "Default")
			s, owner := store.Retentions{DB: db}, person(t, db, 1)
			deadly := put(t, db, 1, owner.ID, start)
			now, pauses := start, []time.Duration{0, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute}
			for n, pause := range pauses {
				got, found, err := s.ClaimRenewal(t.Context(), lease.Lease{Token: fmt.Sprint(n), Until: now.Add(time.Minute)}, now, 2*time.Minute, 3*time.Minute)
				if must(t, err); !found || got.Document != deadly.Document || got.Attempts != n+1 || !got.DueAt.Equal(now.Add(time.Minute+pause)) {
					t.Fatalf("claim %d at %v: %t, %+v", n, now, found, got)
				}
				now = got.DueAt
			}
			other := put(t, db, 2, owner.ID, now.Add(-time.Second))
			if got, found, err := s.ClaimRenewal(t.Context(), lease.Lease{Token: "x", Until: now.Add(time.Minute)}, now, time.Minute, time.Hour); err != nil || !found || got.Document != other.Document {
				t.Errorf("%t, %+v, %v", found, got, err)
			}
		}},
		{"Lists", func(t *testing.T, db *store.DB) {
			group(t, db, "Default")
			s, owner, other := store.Retentions{DB: db}, person(t, db, 1), person(t, db, 2)
			var want []string
			for n := range 5 {
				want = append(want, put(t, db, n+1, owner.ID, start.Add(time.Duration(n/2)*time.Hour)).Document)
			}
			put(t, db, 9, other.ID, start)
			var got []string
			for f := (retention.Filter{UserID: owner.ID, Limit: 2}); ; {
				list, err := s.Retentions(t.Context(), f)
				must(t, err)
				for _, r := range list {
					got, f.After = append(got, r.Document), r
				}
				if len(list) == 0 || len(got) > 9 {
					break
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%q, want %q", got, want)
			}
			for _, c := range []struct {
				f retention.Filter
				n int
			}{{retention.Filter{}, 6}, {retention.Filter{Until: start}, 3}, {retention.Filter{Until: start, UserID: other.ID}, 1}, {retention.Filter{Until: start.Add(-1)}, 0}} {
				c.f.Limit = 10
				if list, err := s.Retentions(t.Context(), c.f); err != nil || len(list) != c.n {
					t.Errorf("%+v: %d, %v", c.f, len(list), err)
				}
			}
			f, err := s.RetentionFigures(t.Context(), start.Add(time.Hour), start)
			if must(t, err); f != (retention.Figures{Retained: 6, Due: 5, Overdue: 3, Oldest: start}) {
				t.Errorf("%+v", f)
			}
			// With a document, and with a user, its retention goes.
			d := store.Documents{DB: db}
			if _, removed, err := d.RemoveDocument(t.Context(), owner.ID, want[0], start); err != nil || removed {
				t.Errorf("removed while it is retained: %t, %v", removed, err)
			}
			if _, removed, err := d.RemoveDocument(t.Context(), owner.ID, want[0], start.Add(9*time.Hour)); err != nil || !removed {
				t.Errorf("not removed after it: %t, %v", removed, err)
			}
			must(t, d.ForgetDocuments(t.Context(), want[:1]))
			if f, err := s.RetentionFigures(t.Context(), start, start); err != nil || f.Retained != 5 {
				t.Errorf("%+v, %v", f, err)
			}
		}},
		{"Contents", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			old := keepDocument(t, s, 1, "user", nil)
			row := recordOf(uploadOf(2, "user", 0), 50)
			row.Content, row.Hash, row.Expires = []byte("packed"), []byte{2}, start
			if kept, err := keep(t.Context(), s, row); err != nil || !kept {
				t.Fatal(kept, err)
			}
			replace := func(id, by, user string, want bool) {
				t.Helper()
				var done bool
				err := s.Atomic(t.Context(), func(ctx context.Context) (err error) {
					done, err = s.ReplaceContent(ctx, user, id, by, start)
					return err
				})
				if want != (err == nil && done) {
					t.Errorf("%s by %s of %s: %t, %v", id, by, user, done, err)
				}
			}
			replace(old.ID, row.ID, "other", false)
			replace(old.ID, "unknown", "user", false)
			replace(row.ID, old.ID, "user", false) // it has expired
			replace(old.ID, row.ID, "user", true)
			got, err := s.FindContents(t.Context(), "user", []string{old.ID}, start)
			must(t, err)
			want := old
			want.Bytes, want.Content, want.Size, want.Hash = row.Bytes, row.Content, row.Size, row.Hash
			if d := cmp.Diff([]document.Record{want}, got); d != "" {
				t.Error(d)
			}
			gone, err := s.ClaimGone(t.Context(), start, start, 10)
			if must(t, err); len(gone) != 1 || gone[0] != (document.Gone{ID: row.ID, Bytes: old.Bytes}) {
				t.Errorf("%+v", gone)
			}
			must(t, s.ForgetDocuments(t.Context(), []string{row.ID}))
			if room, err := s.Room(t.Context(), "user", document.Quotas{All: document.Quota{Objects: 5, Bytes: 1000}, Own: document.Quota{Objects: 5, Bytes: 1000}}); err != nil || room != (document.Quota{Objects: 4, Bytes: 950}) {
				t.Errorf("%+v, %v", room, err)
			}
			// The key of an object goes with the object.
			sealed := recordOf(uploadOf(3, "user", 0), 50)
			sealed.Content, sealed.Bytes = []byte("sealed"), sealed.Bytes+".sealed"
			if kept, err := keep(t.Context(), s, sealed); err != nil || !kept {
				t.Fatal(kept, err)
			}
			put, err := store.MasterKeys{DB: db}.PutObjectKey(t.Context(), store.StoredDocument{ID: sealed.ID, Bytes: sealed.Bytes}, []byte("key"))
			if must(t, err); !put {
				t.Fatal("no key was put")
			}
			more := keepDocument(t, s, 4, "user", func(r *document.Record) { r.Expires = start })
			replace(sealed.ID, more.ID, "user", true)
			key, err := store.MasterKeys{DB: db}.ObjectKey(t.Context(), sealed.Bytes)
			if must(t, err); !bytes.Equal(key, []byte("key")) {
				t.Errorf("key %q", key)
			}
		}},
	}.run(t, open)
}
