// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
)

// operationOf returns operation n of a user, asynchronous and waiting, with a callback.
func operationOf(n int) *operation.Stored {
	at := start.Add(time.Duration(n) * time.Millisecond)
	return &operation.Stored{
		Operation: operation.Operation{
			ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Kind: "kind", Form: operation.FormOperation, Owner: audit.Principal{UserID: "user"},
			Action: "SignDocument", State: operation.Confirmed, Async: true, Parameters: "{}", Description: "document", Callback: "https://example.org/",
			CreatedAt: at, UpdatedAt: start, ConfirmedAt: start, CompleteBefore: start.Add(20 * time.Minute),
		},
		Purpose: confirm.ForOperation, Principal: []byte(`{"UserID":"user"}`), List: []byte("[]"), Plan: []byte("plan"), Secret: []byte{0, 0xff},
		Contents: "contents", Bytes: 100, StartAfter: -time.Millisecond, DueAt: at,
	}
}

// over returns an operation that has ended.
func over(o *operation.Stored, at time.Time) *operation.Stored {
	c := *o
	c.State, c.List, c.Results, c.Plan, c.Secret, c.Contents, c.Bytes, c.DueAt = operation.Completed, []byte(`[{"id":"1"}]`), "results", []byte{}, []byte{}, "", 0, time.Time{}
	c.UpdatedAt, c.CompletedAt, c.KeepUntil, c.Attempts = at, at, at.Add(24*time.Hour), 1
	return &c
}

// asStored compares stored operations. Package operation reads their owners, and only statements read when they are due.
var asStored = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(operation.Operation{}), cmpopts.IgnoreFields(operation.Operation{}, "Owner"), cmpopts.IgnoreFields(operation.Stored{}, "StartAfter", "DueAt")}

func testOperations(t *testing.T, open func(t *testing.T) *store.DB) {
	later := start.Add(time.Minute)
	keep := later.Add(24 * time.Hour)
	add := func(t *testing.T, s store.Operations, o *operation.Stored) {
		t.Helper()
		if added, err := s.AddOperation(t.Context(), o, operation.Quota(wide)); err != nil || !added {
			t.Fatal(added, err)
		}
	}
	claim := func(t *testing.T, s store.Operations, token string, at time.Time) string {
		t.Helper()
		o, found, err := s.ClaimNext(t.Context(), false, lease.Lease{Token: token, Until: at.Add(time.Minute)}, at)
		must(t, err)
		if !found {
			return ""
		}
		return o.ID
	}
	expire := func(t *testing.T, s store.Operations, at time.Time, limit int) (ids []string) {
		t.Helper()
		list, err := s.ExpireOperations(t.Context(), at, keep, limit)
		must(t, err)
		for _, o := range list {
			ids = append(ids, o.ID)
		}
		return ids
	}
	state := func(t *testing.T, s store.Operations, id string) operation.State {
		t.Helper()
		o, found, err := s.FindOperation(t.Context(), id)
		must(t, err)
		if !found {
			return ""
		}
		return o.State
	}
	cases{
		{"UnderWay", func(t *testing.T, db *store.DB) {
			s, users := store.Operations{DB: db}, store.Users{DB: db}
			for _, g := range []string{"Default", "Other"} {
				group(t, db, g)
				must(t, users.AddUser(t.Context(), user.User{ID: g, Login: g, Group: g, Operator: true, CreatedAt: start}, g))
				must(t, users.SetOperatorGroups(t.Context(), g, []string{g}))
			}
			u := person(t, db, 1)
			for i := 1; i <= 3; i++ {
				o := operationOf(i)
				o.Owner.UserID = u.ID
				add(t, s, o)
				c := confirmationOf(i, u.ID)
				if i == 3 {
					c.Purpose = confirm.ForSignIn
				}
				addConfirmation(t, store.Confirmations{DB: db}, c)
			}
			var got []string
			for after := (operation.UnderWay{}); ; {
				list, err := s.UnderWay(t.Context(), "Default", after, 2, start)
				must(t, err)
				for _, x := range list {
					got = append(got, x.Login+" "+x.Action+" "+x.CreatedAt.Sub(start).String())
				}
				if len(list) < 2 {
					break
				}
				after = list[1]
			}
			want := []string{"User1 SignDocument 1ms", "User1 SignDocument 2ms", "User1 SignDocument 3ms", "User1 SignDocuments 1s", "User1 SignDocuments 2s"}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if list, err := s.UnderWay(t.Context(), "Other", operation.UnderWay{}, 9, start); err != nil || len(list) != 0 {
				t.Errorf("another operator sees %+v, %v", list, err)
			}
			if list, err := s.UnderWay(t.Context(), "Default", operation.UnderWay{}, 9, start.Add(time.Hour)); err != nil || len(list) != 0 {
				t.Errorf("after the end there are %+v, %v", list, err)
			}
		}},
		{"Kept", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			o := operationOf(1)
			add(t, s, o)
			got, found, err := s.FindOperation(t.Context(), o.ID)
			must(t, err)
			if d := cmp.Diff(o, got, asStored); !found || d != "" {
				t.Error(d)
			}
			done := over(operationOf(2), later)
			done.Attempts = 0
			add(t, s, done)
			got, _, err = s.FindOperation(t.Context(), done.ID)
			must(t, err)
			if d := cmp.Diff(done, got, asStored); d != "" {
				t.Error(d)
			}
			if _, found, err := s.FindOperation(t.Context(), "a\x00\xff"); found || err != nil {
				t.Errorf("hostile name: %v, %v", found, err)
			}
		}},
		{"Quota", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			for n, want := range []bool{true, true, false} {
				if got, err := s.AddOperation(t.Context(), operationOf(n), operation.Quota{Objects: 2, Bytes: 1000}); got != want || err != nil {
					t.Errorf("operation %d: %v, %v", n, got, err)
				}
			}
			if got, err := s.AddOperation(t.Context(), operationOf(3), operation.Quota{Objects: 9, Bytes: 299}); got || err != nil {
				t.Errorf("bytes: %v, %v", got, err)
			}
			kept := over(operationOf(5), later)
			kept.Bytes = 100
			for _, n := range []int64{299, 300} {
				want := n == 300 // results count as long as they are kept
				if got, err := s.AddOperation(t.Context(), kept, operation.Quota{Objects: 1, Bytes: n}); got != want || err != nil {
					t.Errorf("results in %d bytes: %v, %v", n, got, err)
				}
			}
			bare := over(operationOf(6), later)
			if got, err := s.AddOperation(t.Context(), bare, operation.Quota{}); !got || err != nil {
				t.Errorf("one that keeps nothing: %v, %v", got, err)
			}
			other := operationOf(4)
			other.Owner.UserID = "other"
			if got, err := s.AddOperation(t.Context(), other, operation.Quota{Objects: 1, Bytes: 100}); !got || err != nil {
				t.Errorf("of another user: %v, %v", got, err)
			}
		}},
		{"Leases", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			o := operationOf(1)
			add(t, s, o)
			if id := claim(t, s, "a", later); id != o.ID {
				t.Fatalf("claimed %q", id)
			}
			if id := claim(t, s, "b", later); id != "" {
				t.Error("claimed twice")
			}
			held, err := s.ExtendOperation(t.Context(), o.ID, lease.Lease{Token: "a", Until: later.Add(2 * time.Minute)})
			must(t, err)
			if id := claim(t, s, "b", later.Add(time.Minute)); !held || id != "" {
				t.Errorf("an extended lease: %v, %q", held, id)
			}
			if id := claim(t, s, "b", later.Add(2*time.Minute)); id != o.ID {
				t.Error("an expired lease is not taken over")
			}
			if held, err := s.ExtendOperation(t.Context(), o.ID, lease.Lease{Token: "a", Until: keep}); held || err != nil {
				t.Errorf("extending a lost lease: %v, %v", held, err)
			}
			if held, err := s.SpendOperation(t.Context(), over(o, later), "a"); held || err != nil {
				t.Errorf("finishing with a lost lease: %v, %v", held, err)
			}
			must(t, s.PostponeOperation(t.Context(), o.ID, "a", start, true, nil))
			must(t, s.PostponeOperation(t.Context(), o.ID, "b", later.Add(4*time.Minute), true, nil))
			if id := claim(t, s, "c", later.Add(3*time.Minute)); id != "" {
				t.Error("claimed before it is due")
			}
			if id := claim(t, s, "c", later.Add(4*time.Minute)); id != o.ID {
				t.Error("not claimed when it is due")
			}
			got, _, err := s.FindOperation(t.Context(), o.ID)
			must(t, err)
			if got.Attempts != 2 {
				t.Errorf("%d attempts, want 2: one was given back", got.Attempts)
			}
			for i, want := range []bool{true, false} {
				if held, err := s.SpendOperation(t.Context(), over(o, later), "c"); held != want || err != nil {
					t.Errorf("finishing %d: %v, %v", i, held, err)
				}
			}
			if held, err := s.SpendOperation(t.Context(), over(o, later), ""); held || err != nil {
				t.Errorf("finishing without a lease: %v, %v", held, err)
			}
			got, _, err = s.FindOperation(t.Context(), o.ID)
			must(t, err)
			want := over(o, later)
			want.Attempts = 2
			if d := cmp.Diff(want, got, asStored); d != "" {
				t.Error(d)
			}
		}},
		{"FinishRollsBack", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			o := operationOf(1)
			add(t, s, o)
			claim(t, s, "a", later)
			broken := errors.New("broken")
			for _, want := range []error{broken, fault.Rollback(fault.New("code", "text"))} {
				err := s.Atomic(t.Context(), lock.Set{}, func(ctx context.Context) error {
					if held, err := s.SpendOperation(ctx, over(o, later), "a"); !held || err != nil {
						t.Error(held, err)
					}
					return want
				})
				if !errors.Is(err, want) || state(t, s, o.ID) != operation.Confirmed {
					t.Errorf("an end that was rolled back: %v, %v", err, state(t, s, o.ID))
				}
			}
		}},
		{"Cancel", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			o := operationOf(1)
			add(t, s, o)
			claim(t, s, "a", later)
			if ok, err := s.CancelOperation(t.Context(), o.ID, "other", later, keep); ok || err != nil {
				t.Errorf("by another: %v, %v", ok, err)
			}
			for i, want := range []bool{true, false} {
				if ok, err := s.CancelOperation(t.Context(), o.ID, "user", later, keep); ok != want || err != nil {
					t.Errorf("%d: %v, %v", i, ok, err)
				}
			}
			if held, err := s.SpendOperation(t.Context(), over(o, later), "a"); held || err != nil {
				t.Errorf("finished after it was cancelled: %v, %v", held, err)
			}
			got, _, err := s.FindOperation(t.Context(), o.ID)
			must(t, err)
			if got.State != operation.Cancelled || len(got.Plan)+len(got.Secret)+len(got.Contents) != 0 || !got.CompletedAt.Equal(later) {
				t.Errorf("%+v", got)
			}
		}},
		{"ExpireAndSweep", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			late, leased := operationOf(1), operationOf(2)
			leased.CompleteBefore = late.CompleteBefore.Add(time.Second)
			add(t, s, late)
			add(t, s, leased)
			end := leased.CompleteBefore
			o, found, err := s.ClaimNext(t.Context(), false, lease.Lease{Token: "a", Until: end.Add(time.Minute)}, late.CompleteBefore)
			must(t, err)
			if !found || o.ID != leased.ID {
				t.Fatal("an expired operation was claimed")
			}
			active, err := s.OpenOperations(t.Context(), "user", "", end, 10)
			must(t, err)
			if len(active) != 1 || active[0].ID != leased.ID {
				t.Errorf("%d active", len(active))
			}
			if ok, err := s.CancelOperation(t.Context(), late.ID, "user", end, keep); ok || err != nil {
				t.Errorf("cancelled after its time: %v, %v", ok, err)
			}
			if list := expire(t, s, late.CompleteBefore.Add(-time.Second), 9); len(list) != 0 {
				t.Errorf("%v expired before their time", list)
			}
			list, err := s.ExpireOperations(t.Context(), end, keep, 9)
			must(t, err)
			want := []*operation.Stored{{Operation: operation.Operation{ID: late.ID, Owner: late.Owner, Callback: late.Callback, State: operation.Expired, KeepUntil: keep}}}
			if d := cmp.Diff(want, list, cmpopts.IgnoreUnexported(operation.Operation{})); d != "" {
				t.Error(d)
			}
			if a, b := state(t, s, late.ID), state(t, s, leased.ID); a != operation.Expired || b != operation.Confirmed {
				t.Errorf("%v, %v", a, b)
			}
			if list := expire(t, s, end, 9); len(list) != 0 {
				t.Errorf("%v expired again", list)
			}
			if held, err := s.SpendOperation(t.Context(), over(leased, end), "a"); !held || err != nil {
				t.Errorf("what was begun in time is lost: %v, %v", held, err)
			}
			must(t, s.SweepOperations(t.Context(), keep.Add(48*time.Hour)))
			if a, b := state(t, s, late.ID), state(t, s, leased.ID); a != "" || b != "" {
				t.Errorf("%v, %v", a, b)
			}
		}},
		{"OneOfManyAtOnce", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			const operations = 10
			for n := range operations {
				add(t, s, operationOf(n))
			}
			won := make([]int, operations)
			for _, err := range together(40, func(i int) error {
				for n := 0; ; n++ {
					name := fmt.Sprint(i, n)
					o, found, err := s.ClaimNext(t.Context(), false, lease.Lease{Token: name, Until: keep}, later)
					if err != nil {
						return err
					}
					if !found {
						left, err := s.OpenOperations(t.Context(), "user", "", later, 100)
						if err != nil {
							return err
						}
						waiting := false
						for _, o := range left {
							waiting = waiting || o.LeasedUntil.IsZero()
						}
						if waiting {
							continue // another caller was faster
						}
						return nil
					}
					held, err := s.SpendOperation(t.Context(), over(o, later), name)
					if err != nil {
						return err
					}
					if held {
						var n int
						fmt.Sscanf(o.ID[24:], "%d", &n)
						won[n]++
					}
				}
			}) {
				must(t, err)
			}
			for n, w := range won {
				if w != 1 {
					t.Errorf("operation %d was finished %d times", n, w)
				}
			}
		}},
		{"CancelAgainstFinish", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			for n := range 20 {
				o := operationOf(n)
				add(t, s, o)
				claim(t, s, "a", later)
				var finished, cancelled bool
				for _, err := range together(2, func(i int) (err error) {
					if i == 0 {
						finished, err = s.SpendOperation(t.Context(), over(o, later), "a")
					} else {
						cancelled, err = s.CancelOperation(t.Context(), o.ID, "user", later, keep)
					}
					return err
				}) {
					must(t, err)
				}
				want := map[bool]operation.State{true: operation.Completed, false: operation.Cancelled}[finished]
				if finished == cancelled || state(t, s, o.ID) != want {
					t.Fatalf("finished %v, cancelled %v, state %v", finished, cancelled, state(t, s, o.ID))
				}
			}
		}},
		{"ExpiredInPortions", func(t *testing.T, db *store.DB) {
			s := store.Operations{DB: db}
			for n := range 3 {
				add(t, s, operationOf(n))
			}
			end := start.Add(time.Hour)
			if a, b := expire(t, s, end, 2), expire(t, s, end, 2); len(a) != 2 || len(b) != 1 || slices.Contains(a, b[0]) {
				t.Errorf("%v and %v", a, b)
			}
		}},
		{"Called", func(t *testing.T, db *store.DB) {
			s, messages := store.Operations{DB: db}, store.Outbox{DB: db}
			for n := range 4 {
				o := over(operationOf(n), later)
				if n == 3 {
					o.Callback = ""
				}
				add(t, s, o)
				must(t, messages.AddMessage(t.Context(), notify.Record{
					ID: o.ID, Channel: notify.Callback, To: "https://example.org/", Separate: true, Sealed: []byte{1}, State: notify.Pending, CreatedAt: later, DueAt: later, ExpiresAt: keep,
				}))
			}
			list, err := messages.ClaimMessages(t.Context(), notify.Callback, "a", later, keep, 9)
			must(t, err)
			if len(list) != 4 {
				t.Fatalf("%d messages", len(list))
			}
			for n, end := range map[int]notify.State{1: notify.Dead, 2: notify.Sent, 3: notify.Sent} {
				_, err := messages.FinishMessage(t.Context(), operationOf(n).ID, "a", notify.Ending{State: end, At: later})
				must(t, err)
			}
			for n := range 4 {
				o, _, err := s.FindOperation(t.Context(), operationOf(n).ID)
				must(t, err)
				if o.Called != (n == 2) {
					t.Errorf("%d: called %v", n, o.Called)
				}
			}
		}},
	}.run(t, open)
}

func testAnswers(t *testing.T, open func(t *testing.T) *store.DB) {
	id := signing.AnswerID{Caller: "user:1", Name: "name"}
	request, other := []byte{1, 0, 255}, []byte{2}
	later, expires := start.Add(time.Minute), start.Add(24*time.Hour)
	claim := func(t *testing.T, s store.Answers, request []byte, lease string, at time.Time) bool {
		t.Helper()
		claimed, err := s.ClaimAnswer(t.Context(), id, request, lease, at, at.Add(time.Minute), at.Add(24*time.Hour))
		must(t, err)
		return claimed
	}
	cases{
		{"Claims", func(t *testing.T, db *store.DB) {
			s := store.Answers{DB: db}
			if _, found, err := s.FindAnswer(t.Context(), id); found || err != nil {
				t.Errorf("before: %v, %v", found, err)
			}
			for i, c := range []struct {
				request []byte
				lease   string
				at      time.Time
				want    bool
			}{
				{request, "a", start, true},
				{request, "b", start, false},
				{request, "b", later.Add(-time.Millisecond), false},
				{other, "b", later, false}, // another request does not take a name over
				{request, "b", later, true},
				{request, "c", later, false},
			} {
				if got := claim(t, s, c.request, c.lease, c.at); got != c.want {
					t.Errorf("row %d: %v", i, got)
				}
			}
			if held, err := s.ExtendAnswer(t.Context(), id, "a", expires); held || err != nil {
				t.Errorf("extending a lost lease: %v, %v", held, err)
			}
			outcome := &audit.Entry{RequestID: "1", Operation: "SignDocument", Phase: audit.Done, Outcome: audit.OK, Principal: audit.Principal{UserID: id.Caller, Operator: true}, Duration: time.Millisecond}
			answer := &signing.AnswerRecord{Request: request, Head: []byte("head"), Body: []byte{0, 1}, Blob: "blob", DoneAt: later, ExpiresAt: expires}
			if held, err := s.RecordAnswer(t.Context(), id, "a", answer, 5, outcome); held || err != nil {
				t.Errorf("recording with a lost lease: %v, %v", held, err)
			}
			must(t, s.ReleaseAnswer(t.Context(), id, "a"))
			for i, want := range []bool{true, false} {
				if held, err := s.RecordAnswer(t.Context(), id, "b", answer, 5, outcome); held != want || err != nil {
					t.Errorf("recording %d: %v, %v", i, held, err)
				}
			}
			// The outcome is there once: with the answer.
			entries, err := store.Audit{DB: db}.Last(t.Context(), 10)
			must(t, err)
			if len(entries) == 1 {
				outcome.At = entries[0].At
			}
			if d := cmp.Diff([]audit.Entry{*outcome}, entries); d != "" {
				t.Error(d)
			}
			must(t, s.ReleaseAnswer(t.Context(), id, "b")) // too late to have an effect
			got, found, err := s.FindAnswer(t.Context(), id)
			must(t, err)
			if d := cmp.Diff(answer, got); !found || d != "" {
				t.Error(d)
			}
			if claim(t, s, request, "c", later.Add(time.Hour)) {
				t.Error("an answered name is claimed")
			}
			if n, err := s.AnswerBytes(t.Context(), id.Caller); n != 5 || err != nil {
				t.Error(n, err)
			}
			if !claim(t, s, other, "d", expires) {
				t.Error("an expired name is not free")
			}
			if n, err := s.AnswerBytes(t.Context(), id.Caller); n != 0 || err != nil {
				t.Error(n, err)
			}
			must(t, s.ReleaseAnswer(t.Context(), id, "d"))
			if _, found, err := s.FindAnswer(t.Context(), id); found || err != nil {
				t.Errorf("released: %v, %v", found, err)
			}
		}},
		{"OneOfManyAtOnce", func(t *testing.T, db *store.DB) {
			s := store.Answers{DB: db}
			won := make([]bool, 50)
			for _, err := range together(len(won), func(i int) (err error) {
				won[i], err = s.ClaimAnswer(t.Context(), id, request, fmt.Sprint(i), start, later, expires)
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
				t.Errorf("%d hold the lease", n)
			}
		}},
		{"Sweep", func(t *testing.T, db *store.DB) {
			s := store.Answers{DB: db}
			claim(t, s, request, "a", start)
			must(t, s.SweepAnswers(t.Context(), expires.Add(-time.Millisecond)))
			if _, found, err := s.FindAnswer(t.Context(), id); !found || err != nil {
				t.Error(found, err)
			}
			must(t, s.SweepAnswers(t.Context(), expires))
			if _, found, err := s.FindAnswer(t.Context(), id); found || err != nil {
				t.Error(found, err)
			}
		}},
	}.run(t, open)
}
