// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/approval"
)

func testApprovals(t *testing.T, open func(t *testing.T) *store.DB) {
	request := func(n int) *approval.Request {
		return &approval.Request{
			ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Operation: "ResetPassword", Object: fmt.Sprintf("user %d", n%2),
			Requester: "operator", Login: "Оператор", Groups: []string{"Default", "Other"}, State: approval.Waiting, Approval: true,
			CreatedAt: start.Add(time.Duration(n) * time.Second), NotBefore: start.Add(time.Hour), ExpiresAt: start.Add(2 * time.Hour),
			Digest: []byte{byte(n)}, Sealed: []byte{1, 2},
		}
	}
	add := func(t *testing.T, s store.Approvals, r *approval.Request, most int, want bool) {
		t.Helper()
		added, err := s.AddApproval(t.Context(), r, most)
		must(t, err)
		if added != want {
			t.Errorf("added: %t, want %t", added, want)
		}
	}
	move := func(t *testing.T, s store.Approvals, n int, m approval.Move, want bool) approval.Request {
		t.Helper()
		r, moved, err := s.MoveApproval(t.Context(), request(n).ID, m)
		must(t, err)
		if moved != want {
			t.Errorf("moved from %v to %s: %t, want %t", m.From, m.To, moved, want)
		}
		return r
	}
	approve := approval.Move{From: []approval.State{approval.Waiting}, To: approval.Approved, At: start, By: "второй", Live: true}
	claim := approval.Move{From: []approval.State{approval.Approved}, To: approval.Running, At: start.Add(time.Hour), Live: true, Due: true, Lease: start.Add(3 * time.Hour)}
	end := approval.Move{From: []approval.State{approval.Running}, To: approval.Done, At: start.Add(time.Hour), Final: true}
	cases{
		{"AddFindMove", func(t *testing.T, db *store.DB) {
			s := store.Approvals{DB: db}
			add(t, s, request(1), 3, true)
			again := request(2)
			again.Digest = request(1).Digest
			add(t, s, again, 3, false) // the same call
			add(t, s, request(2), 3, true)
			add(t, s, request(3), 3, true)
			add(t, s, request(4), 3, false) // too many
			r, found, err := s.ApprovalOf(t.Context(), "operator", []byte{1})
			must(t, err)
			if d := cmp.Diff(*request(1), r); d != "" || !found {
				t.Errorf("%t %s", found, d)
			}
			for object, want := range map[string]int{"": 3, "user 1": 2, "user 0": 1, "none": 0} {
				list, err := s.OpenApprovals(t.Context(), object, "", 10)
				must(t, err)
				if len(list) != want {
					t.Errorf("%d requests about %q, want %d", len(list), object, want)
				}
			}
			if list, err := s.OpenApprovals(t.Context(), "", request(1).ID, 10); err != nil || len(list) != 2 || list[0].ID != request(2).ID {
				t.Errorf("the next page: %v, %v", list, err)
			}
			move(t, s, 1, claim, false)
			if r := move(t, s, 1, approve, true); r.State != approval.Approved || r.DecidedBy != "второй" || !r.EndedAt.IsZero() {
				t.Errorf("%+v", r)
			}
			move(t, s, 1, approve, false)
			early, late := claim, claim
			early.At, late.At = start.Add(time.Hour-1), start.Add(2*time.Hour)
			move(t, s, 1, early, false)
			move(t, s, 1, late, false)
			move(t, s, 1, claim, true)
			if r := move(t, s, 1, end, true); r.State != approval.Done || !r.EndedAt.Equal(end.At) {
				t.Errorf("%+v", r)
			}
			move(t, s, 1, end, false)
			add(t, s, again, 4, false) // the identifier is that of another
			again.ID = request(9).ID
			add(t, s, again, 4, true) // the same call, once the first one has ended
		}},
		{"Grow", func(t *testing.T, db *store.DB) {
			s := store.Approvals{DB: db}
			old := request(1)
			old.Approval, old.NotBefore, old.DelayedFrom = false, start, start
			add(t, s, old, 3, true)
			g := approval.Growth{Approval: true, NotBefore: start.Add(time.Hour), ExpiresAt: start.Add(4 * time.Hour), DelayedFrom: start.Add(time.Minute)}
			r, grown, err := s.GrowApproval(t.Context(), old, g)
			must(t, err)
			if want := (approval.Growth{Approval: r.Approval, NotBefore: r.NotBefore, ExpiresAt: r.ExpiresAt, DelayedFrom: r.DelayedFrom}); !grown || want != g {
				t.Errorf("%t, %+v", grown, r)
			}
			if _, grown, err = s.GrowApproval(t.Context(), old, g); grown || err != nil { // another caller was first
				t.Errorf("%t, %v", grown, err)
			}
			if r, ended, err := s.EndDelay(t.Context(), old.ID, start.Add(time.Second)); !ended || err != nil || !r.ConfirmedAt.Equal(start.Add(time.Second)) || !r.NotBefore.Equal(r.ConfirmedAt) {
				t.Errorf("%t, %v, %+v", ended, err, r)
			}
		}},
		{"DueAndSweep", func(t *testing.T, db *store.DB) {
			s := store.Approvals{DB: db}
			for n := range 3 {
				add(t, s, request(n), 10, true)
			}
			move(t, s, 1, approve, true)
			move(t, s, 1, claim, true)
			for hours, want := range map[int]int{1: 0, 2: 2, 3: 3} {
				list, err := s.DueApprovals(t.Context(), start.Add(time.Duration(hours)*time.Hour), 10)
				must(t, err)
				if len(list) != want {
					t.Errorf("%d requests are due after %d h, want %d", len(list), hours, want)
				}
			}
			move(t, s, 1, end, true)
			must(t, s.SweepApprovals(t.Context(), start.Add(time.Hour)))
			if _, found, err := s.Approval(t.Context(), request(1).ID); err != nil || !found {
				t.Errorf("swept too early: %t, %v", found, err)
			}
			must(t, s.SweepApprovals(t.Context(), start.Add(time.Hour+time.Second)))
			if _, found, err := s.Approval(t.Context(), request(1).ID); err != nil || found {
				t.Errorf("not swept: %t, %v", found, err)
			}
		}},
		{"ClaimedOnce", func(t *testing.T, db *store.DB) {
			s := store.Approvals{DB: db}
			add(t, s, request(1), 10, true)
			move(t, s, 1, approve, true)
			won := make([]bool, 64)
			for _, err := range together(len(won), func(i int) (err error) {
				_, won[i], err = s.MoveApproval(t.Context(), request(1).ID, claim)
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
				t.Errorf("%d of 64 callers may carry the request out, want 1", n)
			}
		}},
	}.run(t, open)
}
