// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

func TestBudgets(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget notify.Budget
		next   func(n int, d *notify.Direct) // makes order n of the same scope
		beside func(d *notify.Direct)        // makes one of another scope
	}{
		{"Recipient", notify.Budget{Recipient: 3}, func(n int, d *notify.Direct) { d.Actor = fmt.Sprint(n) }, func(d *notify.Direct) { d.To = "79269999999" }},
		{"Actor", notify.Budget{Actor: 3}, func(n int, d *notify.Direct) { d.To = fmt.Sprintf("7%010d", n) }, func(d *notify.Direct) { d.Actor = "another" }},
		{"Prefix", notify.Budget{Prefix: 3}, func(n int, d *notify.Direct) { d.To, d.Actor = fmt.Sprintf("792612%05d", n), fmt.Sprint(n) }, func(d *notify.Direct) { d.To = "79261300000" }},
		{"Total", notify.Budget{Total: 3}, func(n int, d *notify.Direct) { d.To, d.Actor = fmt.Sprintf("7%010d", n), fmt.Sprint(n) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := open(t, func(s *notify.Settings) { s.Budgets = map[notify.Channel]notify.Budget{notify.SMS: c.budget} })
			put := func(n int) error {
				d := direct("79261234567", "123456")
				c.next(n, &d)
				return o.Order(t.Context(), d)
			}
			for n := range 3 {
				if err := put(n); err != nil {
					t.Fatal(err)
				}
			}
			if err := put(3); !fault.Is(err, fault.TooManyRequests) {
				t.Errorf("over the budget: %v", err)
			}
			if c.beside != nil {
				d := direct("79261234567", "123456")
				c.beside(&d)
				if err := o.Order(t.Context(), d); err != nil {
					t.Errorf("another: %v", err)
				}
			}
			o.now = start.Add(time.Hour)
			if err := put(4); err != nil {
				t.Errorf("an hour later: %v", err)
			}
		})
	}
}

// TestTrialBudget sends test messages: an operator has a budget of all channels, and the command line has none.
func TestTrialBudget(t *testing.T) {
	o := open(t, nil)
	try := func(actor string) error {
		_, err := o.Try(t.Context(), notify.SMS, "79261234567", "", actor)
		return err
	}
	for range 20 {
		if err := try("one"); err != nil {
			t.Fatal(err)
		}
	}
	if err := try("one"); !fault.Is(err, fault.TooManyRequests) {
		t.Errorf("over the budget: %v", err)
	}
	for range 21 {
		if err := try(""); err != nil {
			t.Errorf("the command line: %v", err)
		}
	}
	if err := try("another"); err != nil {
		t.Errorf("another operator: %v", err)
	}
	o.now = start.Add(time.Hour)
	if err := try("one"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// A large budget is exact for messages that are ordered one after the other.
func TestLooseBudget(t *testing.T) {
	const limit = 256
	o := open(t, func(s *notify.Settings) { s.Budgets = map[notify.Channel]notify.Budget{notify.SMS: {Actor: limit}} })
	taken := 0
	for n := range limit + 20 {
		switch err := o.Order(t.Context(), direct(fmt.Sprintf("7%010d", n), "123456")); {
		case err == nil:
			taken++
		case !fault.Is(err, fault.TooManyRequests):
			t.Fatal(err)
		}
	}
	if taken != limit {
		t.Errorf("%d messages were taken, want %d", taken, limit)
	}
}

// An address in other letters is the same address.
func TestBudgetOfAnAddress(t *testing.T) {
	o := open(t, func(s *notify.Settings) {
		s.Budgets = map[notify.Channel]notify.Budget{notify.Email: {Recipient: 1}}
	})
	d := direct("Victim@Example.ru", "1")
	d.Channel = notify.Email
	if err := o.Order(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	d.To = "victim@example.ru"
	if err := o.Order(t.Context(), d); !fault.Is(err, fault.TooManyRequests) {
		t.Errorf("%v, want too_many_requests", err)
	}
}

// Notices of security have budgets of their own: no number of other messages to a range of numbers, to
// an address or by a caller uses them up. If one cannot be put into the outbox, the change is refused
// and nothing of it stays. Other events never refuse.
func TestNoticesOfSecurity(t *testing.T) {
	const limit = 3
	for name, budget := range map[string]notify.Budget{
		"address": {Recipient: limit}, "range": {Prefix: limit}, "caller": {Actor: limit}, "installation": {Total: limit},
	} {
		for _, event := range []notify.EventType{
			notify.UserPasswordReset, notify.UserPasswordChanged, notify.UserDeleted, notify.UserFactorChanged, notify.UserChangeWaits, notify.UserChangeCancelled,
		} {
			o := open(t, func(s *notify.Settings) { s.Budgets = map[notify.Channel]notify.Budget{notify.SMS: budget} })
			for range limit {
				d := direct("79260000001", "1")
				d.Actor = "operator"
				if event == notify.UserFactorChanged || event == notify.UserChangeWaits || event == notify.UserChangeCancelled {
					d.To = "79260000009" // all confirmed contacts
				}
				if err := o.Order(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			queued := func() int {
				list, err := o.List(t.Context(), notify.MessageQuery{UserID: "user", Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, m := range list {
					if m.Subject == string(event) && m.Channel == notify.SMS {
						n++
					}
				}
				return n
			}
			emit := func() error {
				return o.deps.Store.Atomic(t.Context(), func(ctx context.Context) error {
					return o.Emit(ctx, notify.Event{Type: event, UserID: "user", Actor: "operator"})
				})
			}
			most := limit
			if name == "address" {
				most = 10 * limit
			}
			for n := range most {
				if err := emit(); err != nil || queued() != n+1 {
					t.Fatalf("%s, %s: notice %d: %v, %d in the outbox", name, event, n, err, queued())
				}
			}
			err := emit()
			if !fault.Is(err, fault.TooManyRequests) || fault.Commits(err) || queued() != most {
				t.Errorf("%s, %s: one more: %v, %d in the outbox", name, event, err, queued())
			}
			// What a user does to the own account does not stop others from acting on it.
			if name == "address" {
				if err := o.Emit(t.Context(), notify.Event{Type: event, UserID: "user", Actor: "user"}); err != nil {
					t.Errorf("%s by the user: %v", event, err)
				}
			}
			if err := o.Emit(t.Context(), notify.Event{Type: notify.UserAccountChanged, UserID: "user", Actor: "operator"}); err != nil {
				t.Errorf("another event: %v", err)
			}
		}
	}
}
