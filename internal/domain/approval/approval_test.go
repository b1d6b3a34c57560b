// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	people "tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

// world is a service with a clock, whose operators reach every user.
type world struct {
	*approval.Service
	t      *testing.T
	users  store.Users
	at     time.Time
	events []notify.EventType
}

func (w *world) Reach(context.Context, audit.Principal, string) error { return nil }

func (w *world) Emit(_ context.Context, e notify.Event) error {
	w.events = append(w.events, e.Type)
	return nil
}

func newWorld(t *testing.T) *world {
	ring, err := vault.NewRing("1", map[string][]byte{"1": make([]byte, 32)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.SQLite(t)
	w := &world{t: t, users: store.Users{DB: db}, at: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	for _, g := range []string{"A", "B"} {
		w.is("a group", w.users.AddGroup(t.Context(), people.Group{Name: g}), "")
	}
	for id, groups := range map[string][]string{"first": {"A"}, "second": {"A", "B"}, "other": {"B"}} {
		w.is("an operator", w.users.AddUser(t.Context(), people.User{ID: id, Login: id, Group: "A", Operator: true}, id), "")
		w.is("its groups", w.users.SetOperatorGroups(t.Context(), id, groups), "")
	}
	w.Service = approval.New(approval.Deps{
		Store: store.Approvals{DB: db}, Reach: w, Events: w, Vault: ring, Audit: store.Audit{DB: db},
		Now: func() time.Time { return w.at }, Rand: rand.Reader, Life: time.Hour, Keep: time.Hour,
	})
	return w
}

var (
	first  = audit.Principal{UserID: "first", Login: "first", Operator: true}
	second = audit.Principal{UserID: "second", Login: "second", Operator: true}
	other  = audit.Principal{UserID: "other", Login: "other", Operator: true}
	user   = audit.Principal{UserID: "user"}
)

// call makes a call and returns its admission, nil if it waits.
func (w *world) call(c approval.Call, n approval.Needs) *approval.Admission {
	w.t.Helper()
	admission, err := w.Hold(w.t.Context(), first, c, n)
	if err != nil && !fault.Is(err, fault.WrongOperation) {
		w.t.Fatal(err)
	}
	return admission
}

// is compares the code of a fault; "" for none.
func (w *world) is(what string, err error, code string) {
	w.t.Helper()
	if f, ok := fault.As(err); err != nil && (!ok || f.Code != code) || err == nil && code != "" {
		w.t.Errorf("%s: %v, want %q", what, err, code)
	}
}

// only returns the open request.
func (w *world) only() approval.Request {
	w.t.Helper()
	list, err := w.List(w.t.Context(), approval.Administrator, "", 1000)
	if err != nil || len(list) != 1 {
		w.t.Fatalf("%d requests are open: %v", len(list), err)
	}
	return list[0]
}

// TestDelayAndApproval: a request that needs both is carried out after both, once, and may be
// repeated after a failure.
func TestDelayAndApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := approval.Call{Operation: "ResetPassword", Method: "POST", Target: "/x", Object: "user", Value: []byte(`{}`)}
	needs := approval.Needs{Approval: true, Delay: 24 * time.Hour}
	if w.call(c, needs) != nil {
		t.Fatal("it does not wait")
	}
	r := w.only()
	_, err := w.Decide(t.Context(), first, r.ID, true)
	w.is("the requester approves", err, fault.AccessDenied)
	_, err = w.Decide(t.Context(), user, r.ID, true)
	w.is("a user approves", err, fault.NotFound)
	_, err = w.Decide(t.Context(), second, r.ID, true)
	w.is("another operator approves", err, "")
	if _, stored, err := w.Read(t.Context(), second, r.ID); err != nil || string(stored.Value) != "{}" || stored.Target != "/x" {
		t.Errorf("%+v, %v", stored, err)
	}
	if w.at = w.at.Add(24*time.Hour - time.Millisecond); w.call(c, needs) != nil {
		t.Error("it is carried out before its time")
	}
	w.at = w.at.Add(time.Millisecond)
	changed := c
	changed.Value = []byte(`{"ReturnRawPassword":true}`)
	if w.call(changed, needs) != nil {
		t.Error("another call is carried out")
	}
	admission := w.call(c, needs)
	if admission == nil || w.call(c, needs) != nil {
		t.Fatal("want one admission")
	}
	w.is("a failure", admission.End(t.Context(), fault.New(fault.InvalidParameters, "refused")), "")
	if admission = w.call(c, needs); admission == nil {
		t.Fatal("it is not repeated after a failure")
	}
	w.is("a success", admission.End(t.Context(), nil), "")
	if w.call(c, needs) != nil {
		t.Error("it is carried out twice")
	}
	_, err = w.Decide(t.Context(), second, r.ID, true)
	w.is("approved after it was carried out", err, fault.WrongOperation)
	want := []notify.EventType{notify.UserChangeWaits, notify.ApprovalRequested, notify.ApprovalGiven, notify.UserChangeWaits, notify.ApprovalRequested, notify.UserChangeWaits, notify.ApprovalRequested}
	if !slices.Equal(w.events, want) {
		t.Errorf("events %v", w.events)
	}
}

// TestNeedsGrow: a request needs what the rules and the state ask for when it is carried out. What
// is new is waited for, what was fulfilled counts.
func TestNeedsGrow(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	approve := func(w *world) {
		_, err := w.Decide(w.t.Context(), second, w.only().ID, true)
		w.is("approve", err, "")
	}
	for name, c := range map[string]struct {
		first  approval.Needs
		then   func(w *world) // what is fulfilled, and passes
		later  approval.Needs
		events []notify.EventType // of what is new
		runs   func(w *world)     // until it runs; nil: at once
	}{
		"a delay after an approval":            {approval.Needs{Approval: true}, approve, approval.Needs{Approval: true, Delay: day}, []notify.EventType{notify.UserChangeWaits}, func(w *world) { w.at = w.at.Add(day) }},
		"an approval after a delay":            {approval.Needs{Delay: day}, func(w *world) { w.at = w.at.Add(day) }, approval.Needs{Approval: true, Delay: day}, []notify.EventType{notify.ApprovalRequested}, approve},
		"a longer delay counts from its begin": {approval.Needs{Delay: day}, func(w *world) { w.at = w.at.Add(day) }, approval.Needs{Delay: 2 * day}, []notify.EventType{notify.UserChangeWaits}, func(w *world) { w.at = w.at.Add(day) }},
		"a longer delay after the word of the user": {approval.Needs{Delay: day}, func(w *world) {
			_, ended, err := w.Store.EndDelay(w.t.Context(), w.only().ID, w.at)
			if w.is("confirm", err, ""); !ended {
				w.t.Error("the delay has not ended")
			}
		}, approval.Needs{Delay: 2 * day}, nil, nil},
		"a shorter delay":  {approval.Needs{Delay: 2 * day}, func(w *world) { w.at = w.at.Add(2 * day) }, approval.Needs{Delay: day}, nil, nil},
		"nothing any more": {approval.Needs{Approval: true, Delay: day}, func(*world) {}, approval.Needs{}, nil, nil},
		"both at once":     {approval.Needs{Approval: true}, func(*world) {}, approval.Needs{Delay: day}, []notify.EventType{notify.UserChangeWaits}, func(w *world) { w.at = w.at.Add(day) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			call := approval.Call{Operation: "ResetPassword", Object: "user", Value: []byte(name)}
			if w.call(call, c.first) != nil {
				t.Fatal("it does not wait")
			}
			c.then(w)
			id := w.only().ID
			w.events = nil
			admission := w.call(call, c.later)
			if (admission != nil) != (c.runs == nil) || !slices.Equal(w.events, c.events) {
				t.Fatalf("it runs: %t; events %v", admission != nil, w.events)
			}
			if c.runs != nil {
				if w.call(call, c.later) != nil {
					t.Error("the second attempt runs")
				}
				c.runs(w)
				admission = w.call(call, c.later)
			}
			if admission == nil || string(admission.Value) != name {
				t.Fatalf("it does not run: %+v", admission)
			}
			w.is("the end", admission.End(t.Context(), nil), "")
			if r, _, err := w.Read(t.Context(), approval.Administrator, id); err != nil || r.State != approval.Done {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestRequestsEnd: a request expires, is interrupted or is cancelled, and is then of no use.
func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := approval.Call{Operation: "RegisterUser", Method: "POST", Target: "/x"}
	needs := approval.Needs{Approval: true}
	state := func(id string) approval.State {
		t.Helper()
		r, _, err := w.Read(t.Context(), approval.Administrator, id)
		if err != nil {
			t.Fatal(err)
		}
		return r.State
	}
	w.call(c, needs)
	r := w.only()
	_, err := w.Decide(t.Context(), other, r.ID, true)
	w.is("an operator of other groups", err, fault.NotFound)
	_, err = w.Decide(t.Context(), second, r.ID, true)
	w.is("an operator of more groups", err, "")
	w.at = w.at.Add(time.Hour)
	if w.call(c, needs) != nil || state(r.ID) != approval.Expired {
		t.Errorf("after its time it is %s", state(r.ID))
	}
	r = w.only() // the last call asks again
	_, err = w.Decide(t.Context(), second, r.ID, true)
	w.is("approve", err, "")
	if w.call(c, needs) == nil {
		t.Fatal("no admission")
	}
	w.at = w.at.Add(15 * time.Minute) // the process has died
	w.is("sweep", w.Sweep(t.Context()), "")
	if got := state(r.ID); got != approval.Interrupted {
		t.Errorf("a request whose process has died is %s", got)
	}
	w.at = w.at.Add(2 * time.Hour)
	w.is("sweep", w.Sweep(t.Context()), "")
	_, _, err = w.Read(t.Context(), approval.Administrator, r.ID)
	w.is("a request that was swept", err, fault.NotFound)

	c.Object = "user"
	w.call(c, approval.Needs{Delay: time.Hour})
	r = w.only()
	_, err = w.Cancel(t.Context(), audit.Principal{UserID: "another"}, r.ID)
	w.is("another user cancels", err, fault.NotFound)
	_, err = w.Cancel(t.Context(), user, r.ID)
	w.is("the user cancels", err, "")
	w.at = w.at.Add(time.Hour)
	if w.call(c, approval.Needs{Delay: time.Hour}) != nil || state(r.ID) != approval.Cancelled {
		t.Errorf("it is %s", state(r.ID))
	}
}

// TestListByParts: lists of every length have all open requests once, the oldest first.
func TestListByParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const number = 7
	for i := range number {
		w.at = w.at.Add(time.Millisecond)
		object := "user"
		if i%3 == 2 {
			object = "" // a request about no user
		}
		w.call(approval.Call{Operation: "ResetPassword", Method: "POST", Value: []byte{byte(i)}, Object: object}, approval.Needs{Approval: true})
	}
	for most := 1; most <= number+1; most++ {
		var got []time.Time
		for after := ""; ; {
			list, err := w.List(t.Context(), approval.Administrator, after, most)
			if err != nil || len(list) > most {
				t.Fatal(len(list), err)
			}
			for _, r := range list {
				got = append(got, r.CreatedAt)
				after = r.ID
			}
			if len(list) < most {
				break
			}
		}
		if len(got) != number || !slices.IsSortedFunc(got, time.Time.Compare) {
			t.Errorf("lists of %d have %d requests at %v", most, len(got), got)
		}
	}
	const about = number / 3 // requests about no user; the others are about one whom no operator reaches
	for who, want := range map[*audit.Principal]int{&first: about, &second: about, &other: 0, &user: 0} {
		if list, err := w.List(t.Context(), *who, "", number+1); err != nil || len(list) != want {
			t.Errorf("%s sees %d requests, want %d (%v)", who.UserID, len(list), want, err)
		}
	}
	w.is("lose a group", w.users.SetOperatorGroups(t.Context(), "second", []string{"B"}), "")
	if list, err := w.List(t.Context(), second, "", number+1); err != nil || len(list) != 0 {
		t.Errorf("without the group %d requests are seen, want none (%v)", len(list), err)
	}
	if list, err := w.List(t.Context(), approval.Administrator, "no such request", 5); err != nil || len(list) != 0 {
		t.Errorf("after a request that does not exist: %d, %v", len(list), err)
	}
}
