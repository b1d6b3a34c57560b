// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
)

// wide is a quota that is not reached.
var wide = signing.Quota{Objects: 1000, Bytes: 1 << 40}

// alone does nothing in the transaction that spends an object.
var alone = audit.Beside{Record: func(context.Context) error { return nil }}

// noted adds an audit entry in the step that spends an object.
func noted(requestID string) audit.Beside {
	return audit.Beside{Entry: &audit.Entry{RequestID: requestID, Operation: "PostSignDocument", Phase: audit.Done, Outcome: audit.OK}}
}

// entries counts the audit entries.
func entries(t testing.TB, db *store.DB) int {
	t.Helper()
	list, err := store.Audit{DB: db}.Last(t.Context(), 1000)
	must(t, err)
	return len(list)
}

// preparedOf returns prepared object n, which is valid for fifteen minutes.
func preparedOf(n int) *signing.PreparedRecord {
	return &signing.PreparedRecord{
		ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Caller: "address:192.0.2.1", Type: "CAdES",
		Job: []byte{0, byte(n), 0xff}, Document: "document", Original: "original", Bytes: 100,
		CreatedAt: start, ExpiresAt: start.Add(15 * time.Minute),
	}
}

// addPrepared adds an object, which must fit.
func addPrepared(t testing.TB, s store.Prepared, p *signing.PreparedRecord) {
	t.Helper()
	added, err := s.AddPrepared(t.Context(), p, wide, wide, audit.Beside{})
	must(t, err)
	if !added {
		t.Fatal("a wide quota has no room")
	}
}

func testPrepared(t *testing.T, open func(t *testing.T) *store.DB) {
	const wrong = 3
	later := start.Add(time.Minute)
	cases{
		{"Kept", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			p := preparedOf(1)
			if _, found, err := s.FindPrepared(t.Context(), p.ID); found || err != nil {
				t.Errorf("before: found %v, %v", found, err)
			}
			addPrepared(t, s, p)
			got, found, err := s.FindPrepared(t.Context(), p.ID)
			must(t, err)
			if d := cmp.Diff(p, got); !found || d != "" {
				t.Error(d)
			}
			if _, found, err := s.FindPrepared(t.Context(), "a\x00\xff"); found || err != nil {
				t.Errorf("hostile name: found %v, %v", found, err)
			}
			if _, err := s.AddPrepared(t.Context(), p, wide, wide, audit.Beside{}); err == nil {
				t.Error("the same name was added twice")
			}
			ownerless := preparedOf(2)
			ownerless.Caller = ""
			if _, err := s.AddPrepared(t.Context(), ownerless, wide, wide, audit.Beside{}); err == nil {
				t.Error("an object without a caller is kept")
			}
		}},
		{"AddedWithAnEntry", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			failed := errors.New("the disk is full")
			entry := noted("one").Entry
			room := signing.Quota{Objects: 2, Bytes: 1 << 40}
			for n, c := range []struct {
				beside audit.Beside
				err    error
				want   int // entries
			}{
				{audit.Beside{Entry: entry, Record: func(context.Context) error { return failed }}, failed, 0},
				{audit.Beside{Entry: entry}, nil, 1},
				{audit.Beside{Entry: entry, Record: func(ctx context.Context) error { return store.Audit{DB: db}.Record(ctx, *entry) }}, nil, 2},
				{audit.Beside{Entry: entry}, nil, 0}, // the quota is used up
				{audit.Beside{Entry: entry, Record: func(ctx context.Context) error { return store.Audit{DB: db}.Record(ctx, *entry) }}, nil, 0},
			} {
				before := entries(t, db)
				added, err := s.AddPrepared(t.Context(), preparedOf(n), wide, room, c.beside)
				if added != (c.want > 0) || !errors.Is(err, c.err) {
					t.Errorf("%d: %v, %v", n, added, err)
				}
				if made := entries(t, db) - before; made != c.want {
					t.Errorf("%d: %d audit entries, want %d", n, made, c.want)
				}
				if _, found, err := s.FindPrepared(t.Context(), preparedOf(n).ID); found != added || err != nil {
					t.Errorf("%d: found %v, %v", n, found, err)
				}
			}
		}},
		{"AddedAndSpentWithBothEntries", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			p := preparedOf(1)
			outcome := audit.Entry{
				At: later, RequestID: "request", Correlation: "given", Operation: "PreSignDocument", Phase: audit.Done, Outcome: audit.OK,
				Object: "prepared object " + p.ID, Remote: "192.0.2.1", Detail: "a detail", Duration: 1500 * time.Millisecond,
				Principal: audit.Principal{UserID: "u", Login: "login", Group: "group", Operator: true, TokenID: "t", ClientID: "c", Method: "password", Actor: "a"},
			}
			attempt := audit.Entry{
				At: later.Add(-1500 * time.Millisecond), RequestID: "request", Correlation: "given", Operation: "PreSignDocument", Phase: audit.Attempt,
				Remote: "192.0.2.1", Principal: outcome.Principal,
			}
			both := audit.Beside{Entry: &outcome, Attempt: true}
			for _, step := range []func() (bool, error){
				func() (bool, error) { return s.AddPrepared(t.Context(), p, wide, wide, both) },
				func() (bool, error) { return s.SpendPrepared(t.Context(), p.ID, "", later, wrong, both) },
			} {
				done, err := step()
				must(t, err)
				list, err := store.Audit{DB: db}.Last(t.Context(), 1000)
				must(t, err)
				if d := cmp.Diff([]audit.Entry{attempt, outcome}, list[max(0, len(list)-2):]); !done || d != "" {
					t.Error(done, d)
				}
			}
			if n := entries(t, db); n != 4 {
				t.Errorf("%d audit entries, want 4", n)
			}
		}},
		{"Leases", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			p := preparedOf(1)
			addPrepared(t, s, p)
			until := later.Add(time.Minute)
			for i, c := range []struct {
				lease string
				at    time.Time
				want  bool
			}{
				{"a", later, true},
				{"b", later, false},
				{"a", later, false}, // not twice either
				{"b", until.Add(-time.Millisecond), false},
				{"b", until, true}, // the lease of the first one has expired
			} {
				got, err := s.ClaimPrepared(t.Context(), p.ID, c.lease, c.at, c.at.Add(time.Minute), wrong)
				must(t, err)
				if got != c.want {
					t.Errorf("row %d: %v, want %v", i, got, c.want)
				}
			}
			// A request that lost its lease can neither release nor spend the object of
			// another.
			must(t, s.ReleasePrepared(t.Context(), p.ID, "a"))
			if got, err := s.SpendPrepared(t.Context(), p.ID, "a", until, wrong, alone); got || err != nil {
				t.Errorf("spending with a lost lease: %v, %v", got, err)
			}
			if got, err := s.ClaimPrepared(t.Context(), p.ID, "c", until, until, wrong); got || err != nil {
				t.Errorf("leasing after a release with a lost lease: %v, %v", got, err)
			}
			if got, err := s.ExtendPrepared(t.Context(), p.ID, "a", until.Add(time.Hour)); got || err != nil {
				t.Errorf("extending a lost lease: %v, %v", got, err)
			}
			for _, at := range []time.Time{until.Add(2 * time.Minute), until.Add(time.Minute)} {
				if got, err := s.ExtendPrepared(t.Context(), p.ID, "b", at); !got || err != nil {
					t.Errorf("extending: %v, %v", got, err)
				}
				if got, err := s.ClaimPrepared(t.Context(), p.ID, "c", at.Add(-time.Millisecond), at, wrong); got || err != nil {
					t.Errorf("leasing what another request has extended: %v, %v", got, err)
				}
			}
			must(t, s.ReleasePrepared(t.Context(), p.ID, "b"))
			for _, lease := range []string{"b", ""} {
				if got, err := s.ExtendPrepared(t.Context(), p.ID, lease, until); got || err != nil {
					t.Errorf("extending after the release: %v, %v", got, err)
				}
			}
			if got, err := s.ClaimPrepared(t.Context(), p.ID, "c", later, until, wrong); !got || err != nil {
				t.Errorf("after the release: %v, %v", got, err)
			}
			if got, err := s.ClaimPrepared(t.Context(), "unknown", "c", later, until, wrong); got || err != nil {
				t.Errorf("unknown: %v, %v", got, err)
			}
			addPrepared(t, s, preparedOf(2))
			if got, err := s.ClaimPrepared(t.Context(), preparedOf(2).ID, "a", p.ExpiresAt, p.ExpiresAt.Add(time.Minute), wrong); got || err != nil {
				t.Errorf("expired: %v, %v", got, err)
			}
		}},
		{"SpentOnce", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			p := preparedOf(1)
			addPrepared(t, s, p)
			if got, err := s.SpendPrepared(t.Context(), p.ID, "b", later, wrong, audit.Beside{}); got || err != nil {
				t.Errorf("with a lease that it has not: %v, %v", got, err)
			}
			_, err := s.ClaimPrepared(t.Context(), p.ID, "a", later, later.Add(time.Minute), wrong)
			must(t, err)
			for i, want := range []bool{true, false} {
				if got, err := s.SpendPrepared(t.Context(), p.ID, "a", later, wrong, audit.Beside{}); got != want || err != nil {
					t.Errorf("spending %d: %v, %v", i, got, err)
				}
			}
			if got, err := s.ExtendPrepared(t.Context(), p.ID, "a", later.Add(time.Minute)); got || err != nil {
				t.Errorf("extending a spent object: %v, %v", got, err)
			}
			if got, err := s.ClaimPrepared(t.Context(), p.ID, "b", later.Add(time.Hour), later.Add(2*time.Hour), wrong); got || err != nil {
				t.Errorf("leasing a spent object: %v, %v", got, err)
			}
			got, _, err := s.FindPrepared(t.Context(), p.ID)
			must(t, err)
			if !got.SpentAt.Equal(later) || len(got.Job) != 0 {
				t.Errorf("spent at %v with a job of %d bytes", got.SpentAt, len(got.Job))
			}
		}},
		{"SpentWithAnEntry", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			failed := errors.New("the disk is full")
			for n, c := range []struct {
				beside audit.Beside
				want   int // entries
			}{
				{noted("one"), 1},
				{audit.Beside{Entry: noted("one").Entry, Record: func(ctx context.Context) error { return store.Audit{DB: db}.Record(ctx, *noted("one").Entry) }}, 2},
				{audit.Beside{Entry: noted("one").Entry, Record: func(context.Context) error { return failed }}, 0},
			} {
				p := preparedOf(n)
				p.Caller = fmt.Sprint(n)
				addPrepared(t, s, p)
				before := entries(t, db)
				if got, err := s.SpendPrepared(t.Context(), p.ID, "a", later, wrong, c.beside); got || err != nil || entries(t, db) != before {
					t.Errorf("%d: with a lease that it has not: %v, %v", n, got, err)
				}
				_, err := s.ClaimPrepared(t.Context(), p.ID, "a", later, later.Add(time.Minute), wrong)
				must(t, err)
				got, err := s.SpendPrepared(t.Context(), p.ID, "a", later, wrong, c.beside)
				if got != (c.want > 0) || c.want == 0 && !errors.Is(err, failed) || c.want > 0 && err != nil {
					t.Errorf("%d: %v, %v", n, got, err)
				}
				if made := entries(t, db) - before; made != c.want {
					t.Errorf("%d: %d audit entries, want %d", n, made, c.want)
				}
				// The usage is given back with the entry, or neither.
				room := signing.Quota{Objects: 1, Bytes: 1 << 40}
				next := preparedOf(n + 100)
				next.Caller = p.Caller
				if added, err := s.AddPrepared(t.Context(), next, wide, room, audit.Beside{}); added != (c.want > 0) || err != nil {
					t.Errorf("%d: room for another one %v, %v", n, added, err)
				}
			}
		}},
		{"OneOfManyAtOnce", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			p := preparedOf(1)
			addPrepared(t, s, p)
			won := make([]bool, 50)
			for _, err := range together(len(won), func(i int) (err error) {
				lease := ""
				if i%2 == 0 {
					lease = fmt.Sprint(i)
					if won[i], err = s.ClaimPrepared(t.Context(), p.ID, lease, later, later.Add(time.Minute), wrong); err != nil || !won[i] {
						return err
					}
				}
				won[i], err = s.SpendPrepared(t.Context(), p.ID, lease, later, wrong, []audit.Beside{{}, alone, noted("one")}[i%3])
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
				t.Errorf("%d of %d spent the object", n, len(won))
			}
		}},
		{"WithoutLease", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			p := preparedOf(1)
			addPrepared(t, s, p)
			spend := func(at time.Time, want bool) {
				t.Helper()
				if spent, err := s.SpendPrepared(t.Context(), p.ID, "", at, wrong, noted("one")); spent != want || err != nil {
					t.Errorf("spending at %v: %v, %v", at, spent, err)
				}
			}
			claimed, err := s.ClaimPrepared(t.Context(), p.ID, "a", later, later.Add(time.Minute), wrong)
			must(t, err)
			if !claimed {
				t.Error("a new object is not claimed")
			}
			spend(later.Add(time.Minute-time.Millisecond), false) // another completion has it
			spend(p.ExpiresAt, false)
			for range wrong {
				_, _, err := s.FailPrepared(t.Context(), p.ID, later.Add(time.Minute), wrong+1)
				must(t, err)
			}
			spend(later.Add(time.Minute), false) // as many wrong values as discard it
			if n := entries(t, db); n != 0 {
				t.Errorf("%d audit entries of what was refused", n)
			}
			if spent, err := s.SpendPrepared(t.Context(), p.ID, "", later.Add(time.Minute), wrong+1, noted("one")); !spent || err != nil {
				t.Errorf("after the lease: %v, %v", spent, err)
			}
			spend(later.Add(time.Minute), false) // it was spent
			if n := entries(t, db); n != 1 {
				t.Errorf("%d audit entries, want 1", n)
			}
			got, _, err := s.FindPrepared(t.Context(), p.ID)
			must(t, err)
			if len(got.Job) > 0 || got.Document != "" || got.Original != "" {
				t.Errorf("a spent object keeps %+v", got)
			}
		}},
		{"WrongValues", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			p := preparedOf(1)
			addPrepared(t, s, p)
			fail := func(id string, at time.Time, want int) {
				t.Helper()
				n, counted, err := s.FailPrepared(t.Context(), id, at, wrong)
				if n != want || counted != (want > 0) || err != nil {
					t.Errorf("a wrong value counts as %d, %v, %v; want %d", n, counted, err, want)
				}
			}
			fail("unknown", later, 0)
			fail(p.ID, p.ExpiresAt, 0)
			_, err := s.ClaimPrepared(t.Context(), p.ID, "a", later, later.Add(time.Minute), wrong)
			must(t, err)
			fail(p.ID, later, 0) // a completion has it
			must(t, s.ReleasePrepared(t.Context(), p.ID, "a"))
			for n := 1; n <= wrong; n++ {
				fail(p.ID, later, n)
			}
			fail(p.ID, later, 0)
			if ok, err := s.ClaimPrepared(t.Context(), p.ID, "a", later, later.Add(time.Minute), wrong); ok || err != nil {
				t.Errorf("after all: %v, %v", ok, err)
			}
			got, _, err := s.FindPrepared(t.Context(), p.ID)
			must(t, err)
			if got.Failures != wrong {
				t.Errorf("%d failures are kept", got.Failures)
			}
		}},
		{"Quotas", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			all, own := signing.Quota{Objects: 3, Bytes: 350}, signing.Quota{Objects: 2, Bytes: 250}
			add := func(n int, caller string, size int64, want bool) {
				t.Helper()
				p := preparedOf(n)
				p.Caller, p.Bytes = caller, size
				got, err := s.AddPrepared(t.Context(), p, all, own, audit.Beside{})
				must(t, err)
				if got != want {
					t.Errorf("object %d of %s: %v, want %v", n, caller, got, want)
				}
				if _, found, err := s.FindPrepared(t.Context(), p.ID); found != want || err != nil {
					t.Errorf("object %d: found %v, %v", n, found, err)
				}
			}
			add(1, "a", 251, false) // even as the first one
			add(1, "a", 100, true)
			add(2, "a", 151, false) // bytes of the caller
			add(2, "a", 150, true)
			add(3, "a", 0, false)   // objects of the caller
			add(3, "b", 101, false) // bytes of all
			add(3, "b", 100, true)
			add(4, "c", 0, false) // objects of all
			_, err := s.ClaimPrepared(t.Context(), preparedOf(2).ID, "x", later, later.Add(time.Minute), wrong)
			must(t, err)
			_, err = s.SpendPrepared(t.Context(), preparedOf(2).ID, "x", later, wrong, alone)
			must(t, err)
			add(4, "c", 151, false)
			add(4, "c", 150, true) // spent objects are free again
			must(t, s.SweepPrepared(t.Context(), start.Add(15*time.Minute)))
			for n := 1; n <= 4; n++ {
				if _, found, err := s.FindPrepared(t.Context(), preparedOf(n).ID); found || err != nil {
					t.Errorf("object %d after its time: found %v, %v", n, found, err)
				}
			}
			add(5, "a", 250, true) // and expired ones
			add(6, "b", 100, true)
			add(7, "b", 1, false)
		}},
		{"ShareOfCallersWithoutToken", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			all := signing.Quota{Objects: 6, Bytes: 600}
			add := func(n int, caller string, size int64, want bool) {
				t.Helper()
				p := preparedOf(n)
				p.Caller, p.Bytes = caller, size
				if got, err := s.AddPrepared(t.Context(), p, all, wide, audit.Beside{}); got != want || err != nil {
					t.Errorf("object %d of %s: %v, %v, want %v", n, caller, got, err, want)
				}
			}
			first, second, user := signing.OfAddress+"192.0.2.1", signing.OfAddress+"192.0.2.2", "user:a"
			add(1, first, 100, true)
			add(2, second, 201, false) // bytes of the share
			add(2, second, 100, true)
			add(3, second, 100, true)
			add(4, first, 0, false) // objects of the share
			add(5, user, 100, true)
			add(6, user, 100, true)
			_, err := s.ClaimPrepared(t.Context(), preparedOf(1).ID, "x", later, later.Add(time.Minute), wrong)
			must(t, err)
			_, err = s.SpendPrepared(t.Context(), preparedOf(1).ID, "x", later, wrong, audit.Beside{})
			must(t, err)
			add(4, first, 101, false)
			add(4, first, 100, true) // spent objects are free again
			add(7, user, 101, false) // the quota of all
			add(7, user, 100, true)
			add(8, user, 0, false)
			must(t, s.SweepPrepared(t.Context(), start.Add(15*time.Minute)))
			add(9, first, 300, true) // and expired ones
			add(10, second, 1, false)
			add(11, user, 300, true)
		}},
		{"QuotaAtOnce", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			added := make([]bool, 40)
			for _, err := range together(len(added), func(i int) (err error) {
				p := preparedOf(i)
				p.Caller = "user:a"
				added[i], err = s.AddPrepared(t.Context(), p, signing.Quota{Objects: 7, Bytes: 1 << 20}, wide, audit.Beside{})
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
				t.Errorf("%d objects in a quota of 7", n)
			}
		}},
		{"Sweep", func(t *testing.T, db *store.DB) {
			s := store.Prepared{DB: db}
			old, leased, young := preparedOf(1), preparedOf(2), preparedOf(3)
			young.ExpiresAt = start.Add(time.Hour)
			for _, p := range []*signing.PreparedRecord{old, leased, young} {
				addPrepared(t, s, p)
			}
			end := old.ExpiresAt
			_, err := s.ClaimPrepared(t.Context(), leased.ID, "x", later, end.Add(time.Minute), wrong)
			must(t, err)
			for _, step := range []struct {
				at   time.Time
				left []bool // old, leased, young
			}{
				{end.Add(-time.Millisecond), []bool{true, true, true}},
				{end, []bool{false, true, true}},
				{end.Add(time.Minute), []bool{false, false, true}},
				{young.ExpiresAt, []bool{false, false, false}},
			} {
				must(t, s.SweepPrepared(t.Context(), step.at))
				for i, p := range []*signing.PreparedRecord{old, leased, young} {
					if _, found, err := s.FindPrepared(t.Context(), p.ID); found != step.left[i] || err != nil {
						t.Errorf("%v: object %d found %v, %v", step.at, i+1, found, err)
					}
				}
			}
		}},
	}.run(t, open)
}
