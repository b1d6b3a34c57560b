// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/notify"
)

func testOutbox(t *testing.T, open func(t *testing.T) *store.DB) {
	message := func(n int, to string) notify.Record {
		return notify.Record{
			ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Channel: notify.SMS, To: to, Subject: "contact-code",
			UserID: "user", Actor: "operator", Sealed: []byte{byte(n)}, State: notify.Pending,
			CreatedAt: start, DueAt: start, ExpiresAt: start.Add(time.Hour),
		}
	}
	claim := func(t *testing.T, s store.Outbox, lease string, now time.Time, limit int) []notify.Record {
		t.Helper()
		list, err := s.ClaimMessages(t.Context(), notify.SMS, lease, now, now.Add(time.Minute), limit)
		must(t, err)
		slices.SortFunc(list, func(a, b notify.Record) int { return int(a.Sealed[0]) - int(b.Sealed[0]) })
		return list
	}
	ids := func(list []notify.Record) (n []int) {
		for _, r := range list {
			n = append(n, int(r.Sealed[0]))
		}
		return n
	}
	want := func(t *testing.T, list []notify.Record, numbers ...int) {
		t.Helper()
		if d := cmp.Diff(numbers, ids(list), cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	}
	finish := func(t *testing.T, s store.Outbox, n int, lease string, e notify.Ending, held bool) {
		t.Helper()
		got, err := s.FinishMessage(t.Context(), message(n, "").ID, lease, e)
		must(t, err)
		if got != held {
			t.Errorf("message %d: the lease was held: %t, want %t", n, got, held)
		}
	}
	sent := notify.Ending{State: notify.Sent, At: start.Add(time.Second), Wipe: true}
	cases{
		{"ClaimFinish", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			must(t, s.AddMessage(t.Context(), message(1, "7001")))
			got := claim(t, s, "lease", start, 10)
			wanted := message(1, "7001")
			wanted.Attempts = 1
			if d := cmp.Diff([]notify.Record{wanted}, got); d != "" {
				t.Error(d)
			}
			want(t, claim(t, s, "other", start, 10))
			finish(t, s, 1, "other", sent, false)
			finish(t, s, 1, "lease", sent, true)
			finish(t, s, 1, "lease", sent, false)
			wanted.State, wanted.Sealed, wanted.DoneAt = notify.Sent, nil, start.Add(time.Second)
			r, err := s.Message(t.Context(), wanted.ID)
			must(t, err)
			if d := cmp.Diff(wanted, r, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			if _, err := s.Message(t.Context(), "unknown"); err != notify.ErrNotFound {
				t.Errorf("an unknown message: %v", err)
			}
		}},
		{"OrderOfARecipient", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			mail := message(9, "7001")
			mail.Channel = notify.Email
			for _, m := range []notify.Record{message(1, "A@b"), message(2, "a@B"), message(3, "c@d"), mail} {
				must(t, s.AddMessage(t.Context(), m))
			}
			want(t, claim(t, s, "x", start, 10), 1, 3)
			// The first one must be tried again later, and the second waits for it.
			later := start.Add(10 * time.Second)
			finish(t, s, 1, "x", notify.Ending{State: notify.Pending, DueAt: later, Error: "busy", At: start}, true)
			want(t, claim(t, s, "y", start, 10))
			want(t, claim(t, s, "y", later, 10), 1)
			r, err := s.Message(t.Context(), message(1, "").ID)
			must(t, err)
			if r.Error != "busy" || r.Attempts != 2 || !r.DueAt.Equal(later) {
				t.Errorf("%+v", r)
			}
			finish(t, s, 1, "y", notify.Ending{State: notify.Dead, Error: "gone", At: later}, true)
			want(t, claim(t, s, "z", later, 10), 2)
		}},
		{"Separate", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			for n := 1; n <= 3; n++ {
				m := message(n, "7001")
				m.Separate = n > 1
				must(t, s.AddMessage(t.Context(), m))
			}
			must(t, s.AddMessage(t.Context(), message(4, "7001"))) // waits for the first
			want(t, claim(t, s, "x", start, 10), 1, 2, 3)
		}},
		{"Extended", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			must(t, s.AddMessage(t.Context(), message(1, "7001")))
			want(t, claim(t, s, "x", start, 1), 1)
			later := start.Add(time.Hour)
			for lease, want := range map[string]bool{"x": true, "other": false, "": false} {
				if held, err := s.ExtendMessage(t.Context(), message(1, "").ID, lease, later); held != want || err != nil {
					t.Errorf("by %q: %v, %v", lease, held, err)
				}
			}
			want(t, claim(t, s, "y", later.Add(-time.Millisecond), 1))
			want(t, claim(t, s, "y", later, 1), 1)
			if held, err := s.ExtendMessage(t.Context(), message(1, "").ID, "x", later.Add(time.Hour)); held || err != nil {
				t.Errorf("after it was lost: %v, %v", held, err)
			}
		}},
		{"LeaseRunsOut", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			must(t, s.AddMessage(t.Context(), message(1, "7001")))
			want(t, claim(t, s, "dead process", start, 1), 1)
			undelivered := func(now time.Time, expected bool) {
				t.Helper()
				got, err := s.Undelivered(t.Context(), notify.SMS, now)
				must(t, err)
				if got != expected {
					t.Errorf("undelivered: %t, want %t", got, expected)
				}
			}
			undelivered(start, true)
			want(t, claim(t, s, "x", start.Add(time.Minute-time.Millisecond), 1))
			want(t, claim(t, s, "x", start.Add(time.Minute), 1), 1)
			finish(t, s, 1, "dead process", sent, false)
			finish(t, s, 1, "x", sent, true)
			undelivered(start, false)
		}},
		{"LimitAndDue", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			late := message(1, "7001")
			late.DueAt = start.Add(time.Hour)
			must(t, s.AddMessage(t.Context(), late))
			for n := 2; n <= 5; n++ {
				must(t, s.AddMessage(t.Context(), message(n, fmt.Sprint(n))))
			}
			want(t, claim(t, s, "x", start, 3), 2, 3, 4)
			want(t, claim(t, s, "y", start, 3), 5)
			want(t, claim(t, s, "z", late.DueAt, 9), 1, 2, 3, 4, 5)
		}},
		{"RolledBackWithItsReason", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			failed := errors.New("no")
			err := s.Atomic(t.Context(), func(ctx context.Context) error {
				must(t, s.AddMessage(ctx, message(1, "7001")))
				return failed
			})
			if !errors.Is(err, failed) {
				t.Fatal(err)
			}
			want(t, claim(t, s, "x", start, 9))
		}},
		{"ListReviveSweep", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			for n := 1; n <= 4; n++ {
				must(t, s.AddMessage(t.Context(), message(n, fmt.Sprint(n))))
			}
			other := message(5, "5")
			other.UserID, other.Channel, other.To = "another", notify.Webhook, "hook"
			must(t, s.AddMessage(t.Context(), other))
			claim(t, s, "x", start, 3)
			finish(t, s, 1, "x", sent, true)
			finish(t, s, 2, "x", notify.Ending{State: notify.Dead, Error: "gone", At: start}, true)
			finish(t, s, 3, "x", notify.Ending{State: notify.Dead, Error: "late", At: start, Wipe: true}, true)
			list := func(q notify.MessageQuery, expected ...int) {
				t.Helper()
				got, err := s.Messages(t.Context(), q)
				must(t, err)
				var n []int
				for _, r := range got {
					var i int
					fmt.Sscanf(r.ID, "00000000-0000-4000-8000-%d", &i)
					n = append(n, i)
				}
				if d := cmp.Diff(expected, n); d != "" {
					t.Error(d)
				}
			}
			list(notify.MessageQuery{Limit: 9}, 5, 4, 3, 2, 1)
			list(notify.MessageQuery{Limit: 2}, 5, 4)
			list(notify.MessageQuery{Limit: 2, Oldest: true}, 1, 2)
			list(notify.MessageQuery{Limit: 9, State: notify.Dead}, 3, 2)
			list(notify.MessageQuery{Limit: 9, State: notify.Dead, Before: message(3, "").ID}, 2)
			list(notify.MessageQuery{Limit: 2, Before: message(4, "").ID}, 3, 2)
			list(notify.MessageQuery{Limit: 2, Before: message(9, "").ID})
			list(notify.MessageQuery{Limit: 9, UserID: "another"}, 5)
			list(notify.MessageQuery{Limit: 9, Webhook: "hook"}, 5)
			list(notify.MessageQuery{Limit: 9, Webhook: "4"})
			list(notify.MessageQuery{Limit: 9, Webhook: "hook", State: notify.Sent})
			list(notify.MessageQuery{Limit: 9, State: notify.Pending, UserID: "user"}, 4)
			for n, revived := range map[int]bool{1: false, 2: true, 3: false, 4: false} {
				got, err := s.ReviveMessage(t.Context(), message(n, "").ID, start)
				must(t, err)
				if got != revived {
					t.Errorf("message %d revived: %t, want %t", n, got, revived)
				}
			}
			r, err := s.Message(t.Context(), message(2, "").ID)
			must(t, err)
			if d := cmp.Diff(message(2, "2"), r); d != "" {
				t.Error(d)
			}
			want(t, claim(t, s, "y", start, 1), 2)
			finish(t, s, 2, "y", notify.Ending{State: notify.Dead, Error: "gone", At: start.Add(time.Minute)}, true)
			// Expired messages lose their text, messages that ended long ago are deleted.
			must(t, s.SweepMessages(t.Context(), start.Add(time.Hour-time.Millisecond), start))
			list(notify.MessageQuery{Limit: 9, State: notify.Pending}, 5, 4)
			must(t, s.SweepMessages(t.Context(), start.Add(time.Hour), start.Add(time.Second)))
			list(notify.MessageQuery{Limit: 9, State: notify.Dead}, 5, 4, 2)
			if r, err = s.Message(t.Context(), message(2, "").ID); err != nil || len(r.Sealed) != 0 {
				t.Errorf("%v, %v, want no text", r, err)
			}
		}},
		// No message is claimed twice, and no message is claimed before an earlier one of
		// the same recipient.
		{"ClaimTogether", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			const recipients, each, workers = 6, 5, 8
			for n := range recipients * each {
				must(t, s.AddMessage(t.Context(), message(n, fmt.Sprint(n%recipients))))
			}
			var mu sync.Mutex
			order := map[string][]int{}
			for _, err := range together(workers, func(w int) error {
				for n := 0; ; n++ {
					lease := fmt.Sprintf("%d-%d", w, n)
					list, err := s.ClaimMessages(t.Context(), notify.SMS, lease, start, start.Add(time.Minute), 2)
					if err != nil {
						return err
					}
					for _, r := range list {
						mu.Lock()
						order[r.To] = append(order[r.To], int(r.Sealed[0]))
						mu.Unlock()
						if held, err := s.FinishMessage(t.Context(), r.ID, lease, sent); err != nil || !held {
							return fmt.Errorf("%s: held %t: %w", r.ID, held, err)
						}
					}
					if len(list) > 0 {
						continue
					}
					if more, err := s.Undelivered(t.Context(), notify.SMS, start); err != nil || !more {
						return err
					}
				}
			}) {
				must(t, err)
			}
			for to, got := range order {
				if len(got) != each || !slices.IsSorted(got) {
					t.Errorf("recipient %s: %v, want %d in their order", to, got, each)
				}
			}
		}},
		{"Budgets", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			spend := func(key string, now time.Time, expected bool) {
				t.Helper()
				ok, err := s.SpendBudgets(t.Context(), []notify.BudgetLimit{{Key: key, Limit: 2}}, now, time.Hour)
				must(t, err)
				if ok != expected {
					t.Errorf("%s at %v: %t, want %t", key, now, ok, expected)
				}
			}
			spend("a", start, true)
			spend("a", start.Add(time.Minute), true)
			spend("a", start.Add(time.Hour-time.Millisecond), false)
			spend("b", start, true)
			spend("a", start.Add(time.Hour), true) // a new window
			spend("a", start.Add(time.Hour), true)
			spend("a", start.Add(time.Hour), false)
			must(t, s.SweepBudgets(t.Context(), start.Add(time.Hour)))
			spend("a", start.Add(time.Hour), true)
			both := func(expected bool, keys ...string) {
				t.Helper()
				var list []notify.BudgetLimit
				for i, k := range keys {
					list = append(list, notify.BudgetLimit{Key: k, Limit: i + 1})
				}
				ok, err := s.SpendBudgets(t.Context(), list, start, time.Hour)
				must(t, err)
				if ok != expected {
					t.Errorf("%v: %t, want %t", keys, ok, expected)
				}
			}
			both(true, "one", "two", "three")
			both(false, "one", "two", "three") // one is used up, and the others are not counted
			both(true, "new", "two", "three")
			both(false, "newer", "two", "three")
			both(true, "newer", "other", "three")
			both(false, "newest", "other", "three")
			won := make([]bool, 16)
			for _, err := range together(len(won), func(i int) (err error) {
				won[i], err = s.SpendBudgets(t.Context(), []notify.BudgetLimit{{Key: "crowd", Limit: 5}}, start, time.Hour)
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
			if n != 5 {
				t.Errorf("%d of a budget of 5 were let through", n)
			}
		}},
		{"LooseBudgets", func(t *testing.T, db *store.DB) {
			s := store.Outbox{DB: db}
			spend := func(now time.Time, expected bool, keys ...string) {
				t.Helper()
				var list []notify.BudgetLimit
				for _, k := range keys {
					list = append(list, notify.BudgetLimit{Key: k, Limit: 3, Loose: true})
				}
				ok, err := s.SpendBudgets(t.Context(), list, now, time.Hour)
				must(t, err)
				if ok != expected {
					t.Errorf("%v at %v: %t, want %t", keys, now, ok, expected)
				}
			}
			spend(start, true, "caller a")
			spend(start, true, "caller a", "caller b")
			spend(start, true, "caller aa") // begins with another key
			spend(start.Add(time.Minute), true, "caller a")
			spend(start.Add(time.Hour-time.Millisecond), false, "caller a")
			spend(start, false, "caller c", "caller a")
			spend(start, true, "caller c", "caller b") // c was not counted
			spend(start, true, "caller c", "caller b")
			spend(start, false, "caller b")
			spend(start.Add(time.Hour), true, "caller a")
			must(t, s.SweepBudgets(t.Context(), start.Add(time.Hour)))
			for range 3 {
				spend(start.Add(time.Hour), true, "caller b")
			}
			spend(start.Add(time.Hour), false, "caller b")
			won := make([]bool, 16)
			for _, err := range together(len(won), func(i int) (err error) {
				won[i], err = s.SpendBudgets(t.Context(), []notify.BudgetLimit{{Key: "crowd", Limit: 16, Loose: true}}, start, time.Hour)
				return err
			}) {
				must(t, err)
			}
			for i, w := range won {
				if !w {
					t.Errorf("caller %d found no room", i)
				}
			}
			ok, err := s.SpendBudgets(t.Context(), []notify.BudgetLimit{{Key: "crowd", Limit: 16, Loose: true}}, start, time.Hour)
			must(t, err)
			if ok {
				t.Error("the messages of the crowd are not all counted")
			}
		}},
	}.run(t, open)
}

func testCaptured(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{{"KeepsTheLast", func(t *testing.T, db *store.DB) {
		s := store.Captured{DB: db}
		var want []notify.Record
		for n := range 6 {
			m := notify.Record{ID: fmt.Sprint(n), Channel: notify.Email, To: "a@b.ru", Sealed: []byte{byte(n)}, CreatedAt: start}
			must(t, s.AddCaptured(t.Context(), m, 4))
			if n >= 2 {
				want = append(want, m)
			}
		}
		got, err := s.Captured(t.Context(), 100)
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if got, err = s.Captured(t.Context(), 1); err != nil || len(got) != 1 || got[0].ID != "5" {
			t.Errorf("%v, %v, want the last", got, err)
		}
	}}}.run(t, open)
}
