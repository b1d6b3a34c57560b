// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/document"
)

// roomy are quotas that are not reached.
var roomy = document.Quotas{All: document.Quota{Objects: 10_000, Bytes: 1 << 40}, Own: document.Quota{Objects: 10_000, Bytes: 1 << 40}}

const leased = 15 * time.Minute

// uploadOf returns upload n of a user.
func uploadOf(n int, user string, size int64) document.Upload {
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
	return document.Upload{ID: id, UserID: user, Bytes: "documents/" + id, Counted: size}
}

// recordOf returns the document that an upload becomes.
func recordOf(u document.Upload, size int64) document.Record {
	return document.Record{
		Info: document.Info{
			ID: u.ID, UserID: u.UserID, Name: "a\u0416.txt", Type: "text", Parent: "p", Linked: "l", Extra: `{"A":1}`, Size: size,
			Hash: []byte{1, 0, 0xff}, HashName: "GR 34.11-2012 256", Uploaded: start, Accessed: start,
		},
		Bytes: u.Bytes,
	}
}

// keep reports whether records became documents.
func keep(ctx context.Context, s store.Documents, records ...document.Record) (bool, error) {
	outcome, err := s.KeepDocuments(ctx, records, roomy)
	return outcome == document.Done, err
}

func begin(t testing.TB, s store.Documents, uploads ...document.Upload) {
	t.Helper()
	added, err := s.AddUploads(t.Context(), uploads, start, start.Add(leased), roomy)
	must(t, err)
	if !added {
		t.Fatal("roomy quotas have no room")
	}
}

// keepDocument adds document n of a user.
func keepDocument(t testing.TB, s store.Documents, n int, user string, change func(*document.Record)) document.Record {
	t.Helper()
	u := uploadOf(n, user, 100)
	begin(t, s, u)
	r := recordOf(u, 100)
	if change != nil {
		change(&r)
	}
	kept, err := s.KeepDocuments(t.Context(), []document.Record{r}, roomy)
	must(t, err)
	if kept != document.Done {
		t.Fatal("an upload cannot be kept")
	}
	return r
}

func find(t testing.TB, s store.Documents, user string, at time.Time, ids ...string) []string {
	t.Helper()
	found, err := s.FindDocuments(t.Context(), user, ids, at)
	must(t, err)
	var got []string
	for _, r := range found {
		got = append(got, r.ID)
	}
	slices.Sort(got)
	return got
}

func testDocuments(t *testing.T, open func(t *testing.T) *store.DB) {
	const user, other = "user", "other"
	cases{
		{"Kept", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			r := keepDocument(t, s, 1, user, func(r *document.Record) { r.Expires = start.Add(time.Hour) })
			found, err := s.FindDocuments(t.Context(), user, []string{r.ID}, start)
			must(t, err)
			if d := cmp.Diff([]document.Record{r}, found, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			byHash, ok, err := s.FindByHash(t.Context(), user, r.Hash, start)
			must(t, err)
			if d := cmp.Diff(r, byHash); !ok || d != "" {
				t.Error(d)
			}
		}},
		{"TheNewestFirstByPlace", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			var want []string
			for i := range 5 { // two of them are as old as each other
				r := keepDocument(t, s, i+1, user, func(r *document.Record) { r.Uploaded = start.Add(time.Duration(i/2) * time.Second) })
				want = append(want, r.ID)
			}
			slices.Reverse(want)
			keepDocument(t, s, 6, other, nil)
			keepDocument(t, s, 7, user, func(r *document.Record) { r.Expires = start.Add(time.Second) })
			var got []string
			for older := (document.Position{}); ; {
				list, err := s.NewestDocuments(t.Context(), user, older, 2, start.Add(time.Hour))
				must(t, err)
				for _, r := range list {
					got, older = append(got, r.ID), document.Position{At: r.Uploaded, ID: r.ID}
				}
				if len(list) == 0 || len(got) > len(want) {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the newest are %v, want %v", got, want)
			}
		}},
		{"ContentInTheRow", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			small := func(n int, user string) document.Record {
				r := recordOf(uploadOf(n, user, 0), 10)
				r.Bytes += ".sealed"
				r.Content = bytes.Repeat([]byte{0, 1, 2, 0xff}, 100)
				return r
			}
			q := document.Quotas{All: document.Quota{Objects: 200, Bytes: 2000}, Own: document.Quota{Objects: 130, Bytes: 1200}}
			room := func(want document.Quota) {
				t.Helper()
				if got, err := s.Room(t.Context(), user, q); err != nil || got != want {
					t.Errorf("room %+v, %v, want %+v", got, err, want)
				}
			}
			room(document.Quota{Objects: 130, Bytes: 1200})
			var records []document.Record
			for n := range 117 { // two statements of 50, and 17 of one
				records = append(records, small(n+1, user))
			}
			larger := uploadOf(200, user, 20)
			begin(t, s, larger)
			outcome, err := s.KeepDocuments(t.Context(), append(records, recordOf(larger, 20)), q)
			if err != nil || outcome != document.Done {
				t.Fatal(outcome, err)
			}
			room(document.Quota{Objects: 12, Bytes: 10})
			for _, want := range []document.Record{records[0], records[49], records[116], recordOf(larger, 20)} {
				got, err := s.FindContents(t.Context(), user, []string{want.ID}, start)
				must(t, err)
				if d := cmp.Diff([]document.Record{want}, got); d != "" {
					t.Error(d)
				}
				want.Content = nil
				list, err := s.FindDocuments(t.Context(), user, []string{want.ID}, start)
				must(t, err)
				if d := cmp.Diff([]document.Record{want}, list); d != "" {
					t.Error(d)
				}
				if found, err := s.FindContents(t.Context(), other, []string{want.ID}, start); len(found) > 0 || err != nil {
					t.Errorf("of another user: %v, %v", found, err)
				}
			}
			both, err := s.FindContents(t.Context(), user, []string{records[1].ID, "unknown", larger.ID}, start)
			must(t, err)
			slices.SortFunc(both, func(a, b document.Record) int { return strings.Compare(a.ID, b.ID) })
			if d := cmp.Diff([]document.Record{records[1], recordOf(larger, 20)}, both); d != "" {
				t.Error(d)
			}
			for what, c := range map[string]struct {
				records []document.Record
				want    document.Outcome
			}{
				"more than the quota":    {[]document.Record{small(300, user), small(301, user)}, document.Full},
				"with an unknown upload": {[]document.Record{small(302, user), recordOf(uploadOf(303, user, 1), 1)}, document.Lost},
			} {
				if got, err := s.KeepDocuments(t.Context(), c.records, q); got != c.want || err != nil {
					t.Errorf("%s: %v, %v", what, got, err)
				}
				if got := find(t, s, user, start, c.records[0].ID); len(got) != 0 {
					t.Errorf("%s: %v are there", what, got)
				}
			}
			if _, err := s.KeepDocuments(t.Context(), []document.Record{small(304, user), small(305, other)}, q); err == nil {
				t.Error("documents of two users at once")
			}
			if _, err := s.KeepDocuments(t.Context(), []document.Record{small(1, user)}, q); err == nil {
				t.Error("an identifier is used twice")
			}

			keys := store.MasterKeys{DB: db}
			heads, err := keys.OnlyHeads(t.Context(), start, "", 1, 256)
			must(t, err)
			if len(heads) != 1 || heads[0].ID != records[0].ID || !bytes.Equal(heads[0].Head, records[0].Content[:256]) {
				t.Errorf("heads: %+v", heads)
			}
			if put, err := keys.PutObjectKey(t.Context(), heads[0], []byte{1}); !put || err != nil {
				t.Errorf("putting a key: %v, %v", put, err)
			}
			if key, err := keys.ObjectKey(t.Context(), records[0].Bytes); err != nil || !bytes.Equal(key, []byte{1}) {
				t.Errorf("key %x, %v", key, err)
			}

			gone, ok, err := s.RemoveDocument(t.Context(), user, records[0].ID, start)
			if !ok || err != nil || gone.Bytes != "" {
				t.Errorf("removed %+v, %v, %v", gone, ok, err)
			}
			list, err := s.ClaimGone(t.Context(), start, start, 10)
			must(t, err)
			if d := cmp.Diff([]document.Gone{{ID: records[0].ID}}, list); d != "" {
				t.Error(d)
			}
			must(t, s.ForgetDocuments(t.Context(), []string{records[0].ID}))
			room(document.Quota{Objects: 13, Bytes: 20})
		}},
		{"OthersAndUnfinishedAndExpiredAreNotThere", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			mine := keepDocument(t, s, 1, user, nil)
			theirs := keepDocument(t, s, 2, other, nil)
			begin(t, s, uploadOf(3, user, 1))
			short := keepDocument(t, s, 4, user, func(r *document.Record) { r.Expires = start.Add(time.Hour) })
			gone := keepDocument(t, s, 5, user, nil)
			if g, ok, err := s.RemoveDocument(t.Context(), user, gone.ID, start); !ok || err != nil || g.Bytes != gone.Bytes {
				t.Errorf("removing: %v %v %v", g, ok, err)
			}
			ids := []string{mine.ID, theirs.ID, uploadOf(3, user, 1).ID, short.ID, gone.ID, "a\x00\xff", ""}
			for _, c := range []struct {
				at   time.Time
				want []string
			}{
				{start, []string{mine.ID, short.ID}},
				{start.Add(time.Hour - time.Millisecond), []string{mine.ID, short.ID}},
				{start.Add(time.Hour), []string{mine.ID}},
			} {
				if got := find(t, s, user, c.at, ids...); !slices.Equal(got, c.want) {
					t.Errorf("at %v: %v, want %v", c.at, got, c.want)
				}
				list, err := s.ListDocuments(t.Context(), user, "", 10, c.at)
				must(t, err)
				if len(list) != len(c.want) {
					t.Errorf("at %v: %d are listed", c.at, len(list))
				}
			}
			for what, do := range map[string]func() (bool, error){
				"changing another's": func() (bool, error) {
					i := theirs.Info
					i.UserID = user
					return s.ChangeDocument(t.Context(), i, start)
				},
				"removing another's": func() (bool, error) {
					_, ok, err := s.RemoveDocument(t.Context(), user, theirs.ID, start)
					return ok, err
				},
				"removing what is gone": func() (bool, error) {
					_, ok, err := s.RemoveDocument(t.Context(), user, gone.ID, start)
					return ok, err
				},
				"removing an upload": func() (bool, error) {
					_, ok, err := s.RemoveDocument(t.Context(), user, uploadOf(3, user, 1).ID, start)
					return ok, err
				},
				"changing what expired": func() (bool, error) { return s.ChangeDocument(t.Context(), short.Info, start.Add(time.Hour)) },
				"ending a document":     func() (bool, error) { return s.EndUpload(t.Context(), mine.ID) },
			} {
				if ok, err := do(); ok || err != nil {
					t.Errorf("%s: %v, %v", what, ok, err)
				}
			}
		}},
		{"AllOrNone", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			a, b := uploadOf(1, user, 10), uploadOf(2, user, 10)
			begin(t, s, a, b)
			if ended, err := s.EndUpload(t.Context(), b.ID); !ended || err != nil {
				t.Fatal(ended, err)
			}
			kept, err := keep(t.Context(), s, recordOf(a, 10), recordOf(b, 10))
			if kept || err != nil {
				t.Errorf("kept %v, %v", kept, err)
			}
			if got := find(t, s, user, start, a.ID, b.ID); len(got) != 0 {
				t.Errorf("%v are there", got)
			}
			if kept, err := keep(t.Context(), s, recordOf(a, 11)); kept || err != nil {
				t.Errorf("more bytes than were counted: %v, %v", kept, err)
			}
			if kept, err := keep(t.Context(), s, recordOf(a, 10)); !kept || err != nil {
				t.Errorf("alone: %v, %v", kept, err)
			}
			if kept, err := keep(t.Context(), s, recordOf(a, 10)); kept || err != nil {
				t.Errorf("twice: %v, %v", kept, err)
			}
			// The same upload twice in one call adds nothing.
			if _, err := s.AddUploads(t.Context(), []document.Upload{uploadOf(7, user, 1), uploadOf(7, user, 1)}, start, start.Add(leased), roomy); err == nil {
				t.Error("the same identifier was added twice")
			}
			begin(t, s, uploadOf(7, user, 1))
		}},
		{"WithinATransaction", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			u := uploadOf(1, user, 10)
			begin(t, s, u)
			failed := errors.New("what it was made for failed")
			err := db.Atomic(t.Context(), func(ctx context.Context) error {
				kept, err := keep(ctx, s, recordOf(u, 10))
				must(t, err)
				if !kept {
					t.Error("not kept")
				}
				return failed
			})
			if !errors.Is(err, failed) {
				t.Fatal(err)
			}
			if got := find(t, s, user, start, u.ID); len(got) != 0 {
				t.Error("a document of a transaction that was rolled back is there")
			}
		}},
		{"Quotas", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			q := document.Quotas{All: document.Quota{Objects: 4, Bytes: 1000}, Own: document.Quota{Objects: 3, Bytes: 600}}
			add := func(want bool, uploads ...document.Upload) {
				t.Helper()
				added, err := s.AddUploads(t.Context(), uploads, start, start.Add(leased), q)
				must(t, err)
				if added != want {
					t.Errorf("%v: %v, want %v", uploads, added, want)
				}
			}
			extend := func(want document.Outcome, u document.Upload, more int64) {
				t.Helper()
				got, err := s.ExtendUpload(t.Context(), u, more, start.Add(leased), q)
				must(t, err)
				if got != want {
					t.Errorf("%d more: %v, want %v", more, got, want)
				}
			}
			add(false, uploadOf(1, user, 601))
			add(false, uploadOf(1, user, 300), uploadOf(2, user, 301))
			add(false, uploadOf(1, user, 1), uploadOf(2, user, 1), uploadOf(3, user, 1), uploadOf(4, user, 1))
			add(true, uploadOf(1, user, 300), uploadOf(2, user, 200))
			extend(document.Full, uploadOf(1, user, 0), 101)
			extend(document.Done, uploadOf(1, user, 0), 100)
			extend(document.Full, uploadOf(1, user, 0), 1)
			extend(document.Done, uploadOf(1, user, 0), 0) // an extension costs nothing
			extend(document.Lost, uploadOf(9, user, 0), 0)
			extend(document.Lost, uploadOf(1, other, 0), 0) // it belongs to another user
			add(false, uploadOf(3, other, 401))
			add(true, uploadOf(3, other, 400))
			// A document counts with its size, not with the size reserved for it.
			kept, err := keep(t.Context(), s, recordOf(uploadOf(1, user, 0), 50))
			if !kept || err != nil {
				t.Fatal(kept, err)
			}
			extend(document.Full, uploadOf(2, user, 0), 351)
			extend(document.Done, uploadOf(2, user, 0), 350)
			// An ended upload counts until it is forgotten: its bytes are stored until
			// then.
			if ended, err := s.EndUpload(t.Context(), uploadOf(2, user, 0).ID); !ended || err != nil {
				t.Fatal(ended, err)
			}
			extend(document.Lost, uploadOf(2, user, 0), 0)
			add(false, uploadOf(4, user, 100))
			must(t, s.ForgetDocuments(t.Context(), []string{uploadOf(1, user, 0).ID, uploadOf(2, user, 0).ID, "unknown"}))
			must(t, s.ForgetDocuments(t.Context(), []string{uploadOf(2, user, 0).ID})) // only once
			add(false, uploadOf(4, user, 551))
			add(true, uploadOf(4, user, 550))
			if got := find(t, s, user, start, uploadOf(1, user, 0).ID); len(got) != 1 {
				t.Error("a document that has not ended was forgotten")
			}
		}},
		{"QuotaAtOnce", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			q := document.Quotas{All: document.Quota{Objects: 7, Bytes: 1 << 20}, Own: roomy.Own}
			added := make([]bool, 40)
			for _, err := range together(len(added), func(i int) (err error) {
				added[i], err = s.AddUploads(t.Context(), []document.Upload{uploadOf(i, fmt.Sprint("user", i%3), 10)}, start, start.Add(leased), q)
				return err
			}) {
				must(t, err)
			}
			n := 0
			for _, a := range added {
				if a {
					n++
				}
			}
			if n != 7 {
				t.Errorf("%d uploads in a quota of 7", n)
			}
		}},
		{"SweepOrKeep", func(t *testing.T, db *store.DB) {
			// An upload whose lease has expired is either swept or kept, never both.
			s := store.Documents{DB: db}
			const n = 30
			kept := make([]bool, n)
			for i := range n {
				begin(t, s, uploadOf(i, user, 10))
			}
			swept := map[string]bool{}
			for _, err := range together(n+1, func(i int) (err error) {
				if i == n {
					gone, err := s.ClaimGone(t.Context(), start.Add(leased), start, n)
					for _, g := range gone {
						swept[g.ID] = true
					}
					return err
				}
				kept[i], err = keep(t.Context(), s, recordOf(uploadOf(i, user, 10), 10))
				return err
			}) {
				must(t, err)
			}
			for i := range n {
				if id := uploadOf(i, user, 10).ID; kept[i] == swept[id] {
					t.Errorf("upload %d: kept %v, swept %v", i, kept[i], swept[id])
				}
			}
		}},
		{"ClaimGone", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			begin(t, s, uploadOf(1, user, 1))
			short := keepDocument(t, s, 2, user, func(r *document.Record) { r.Expires = start.Add(time.Hour) })
			keepDocument(t, s, 3, user, nil)
			removed := keepDocument(t, s, 4, user, nil)
			_, _, err := s.RemoveDocument(t.Context(), user, removed.ID, start)
			must(t, err)
			claim := func(now, expired time.Time, want ...int) {
				t.Helper()
				gone, err := s.ClaimGone(t.Context(), now, expired, 10)
				must(t, err)
				var got, ids []string
				for _, g := range gone {
					got = append(got, g.ID)
					if g.Bytes != "documents/"+g.ID {
						t.Errorf("%s is stored in %s", g.ID, g.Bytes)
					}
				}
				for _, n := range want {
					ids = append(ids, uploadOf(n, "", 0).ID)
				}
				if !slices.Equal(got, ids) {
					t.Errorf("gone are %v, want %v", got, ids)
				}
			}
			claim(start, start, 4)
			claim(start, start, 4) // until it is forgotten
			must(t, s.ForgetDocuments(t.Context(), []string{removed.ID}))
			claim(start.Add(leased-time.Millisecond), start)
			claim(start.Add(leased), start, 1)
			claim(start.Add(leased), short.Expires.Add(-time.Millisecond), 1)
			claim(start.Add(leased), short.Expires, 1, 2)
			if got := find(t, s, user, start, short.ID); len(got) != 0 {
				t.Error("a document can be found while it is being removed")
			}
		}},
		{"ChangesAndLists", func(t *testing.T, db *store.DB) {
			s := store.Documents{DB: db}
			var ids []string
			for n := range 7 {
				r := keepDocument(t, s, n, user, func(r *document.Record) { r.Uploaded = start.Add(time.Duration(n) * time.Second) })
				ids = append(ids, r.ID)
			}
			var got []string
			for behind := ""; ; {
				list, err := s.ListDocuments(t.Context(), user, behind, 3, start)
				must(t, err)
				for _, r := range list {
					got = append(got, r.ID)
					behind = r.ID
				}
				if len(list) < 3 {
					break
				}
			}
			if !slices.Equal(got, ids) {
				t.Errorf("listed %v, want %v", got, ids)
			}
			if got := find(t, s, user, start, ids...); !slices.Equal(got, ids) {
				t.Errorf("found %v, want %v", got, ids)
			}
			youngest, ok, err := s.FindByHash(t.Context(), user, []byte{1, 0, 0xff}, start)
			if !ok || err != nil || youngest.ID != ids[6] {
				t.Errorf("by hash %v, %v, %v", youngest.ID, ok, err)
			}
			if _, ok, err := s.FindByHash(t.Context(), other, []byte{1, 0, 0xff}, start); ok || err != nil {
				t.Errorf("by hash, of another: %v, %v", ok, err)
			}
			i := youngest.Info
			i.Name, i.Type, i.Parent, i.Linked, i.Extra, i.Expires = "b", "c", "d", "e", "f", start.Add(time.Minute)
			if changed, err := s.ChangeDocument(t.Context(), i, start); !changed || err != nil {
				t.Fatal(changed, err)
			}
			at := start.Add(10 * time.Second)
			must(t, s.TouchDocuments(t.Context(), []string{i.ID, "unknown"}, at))
			must(t, s.TouchDocuments(t.Context(), []string{i.ID}, start)) // never backwards
			i.Accessed = at
			found, err := s.FindDocuments(t.Context(), user, []string{i.ID}, start)
			must(t, err)
			if d := cmp.Diff([]document.Record{{Info: i, Bytes: youngest.Bytes}}, found); d != "" {
				t.Error(d)
			}
		}},
	}.run(t, open)
}
