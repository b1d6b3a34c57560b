// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// register returns an office, its webhooks (none yet) and the notifier that calls them.
func register(t *testing.T) (*office, *notify.Subscriptions, *post) {
	t.Helper()
	o := open(t, nil)
	s := &notify.Subscriptions{
		Store: store.Webhooks{DB: o.db}, Vault: o.deps.Vault, Now: func() time.Time { return o.now }, Rand: rand.Reader,
		Check: func(address string) error {
			if address == "" {
				return fault.New(fault.InvalidParameters, "address")
			}
			return nil
		},
	}
	p := &post{channel: notify.Webhook}
	o.deps.Notifiers, o.deps.Listeners = append(o.deps.Notifiers, p), s
	o.Service = o.another(t, nil)
	return o, s, p
}

func TestSubscriptions(t *testing.T) {
	o, s, _ := register(t)
	all, secret, err := s.Add(t.Context(), "https://a.example/", nil)
	if err != nil || len(secret) != notify.SecretSize || bytes.Contains(all.Sealed, secret) {
		t.Fatalf("%d bytes: %v", len(secret), err)
	}
	o.now = o.now.Add(time.Second)
	some, other, err := s.Add(t.Context(), "https://b.example/", []string{"usercreated", "UserDeleted", "UserCreated"})
	if err != nil || bytes.Equal(secret, other) || fmt.Sprint(some.Events) != "[UserCreated UserDeleted]" {
		t.Fatalf("%v: %v", some.Events, err)
	}
	for event, want := range map[notify.EventType][]string{notify.UserCreated: {all.ID, some.ID}, notify.UserAccountChanged: {all.ID}} {
		if got, err := s.Listening(t.Context(), event); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is told %v: %v", event, got, err)
		}
	}
	if address, got, err := s.Open(t.Context(), some.ID); err != nil || address != "https://b.example/" || !bytes.Equal(got, other) {
		t.Errorf("%s: %v", address, err)
	}
	for _, wrong := range []struct{ address, event string }{{"", "UserCreated"}, {"https://c.example/", "Nothing"}} {
		if _, _, err := s.Add(t.Context(), wrong.address, []string{wrong.event}); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	if err := s.Remove(t.Context(), all.ID); err != nil {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), all.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if _, _, err := s.Open(t.Context(), all.ID); !notify.IsPermanent(err) {
		t.Errorf("of one that is removed: %v", err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 || list[0].ID != some.ID {
		t.Errorf("left: %v, %v", list, err)
	}
	for range 99 {
		if _, _, err := s.Add(t.Context(), "https://n.example/", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Add(t.Context(), "https://n.example/", nil); !fault.Is(err, fault.InvalidObjectState) {
		t.Errorf("one too many: %v", err)
	}
}

// changed is a register whose rows were changed by an attacker with write access to the
// database only.
type changed struct {
	notify.SubscriptionStore
	change func(*notify.Subscription)
}

func (c changed) Subscription(ctx context.Context, id string) (notify.Subscription, error) {
	s, err := c.SubscriptionStore.Subscription(ctx, id)
	c.change(&s)
	return s, err
}

// TestSwappedWebhooks: an address or a secret from another row does not open.
func TestSwappedWebhooks(t *testing.T) {
	_, s, _ := register(t)
	a, _, err := s.Add(t.Context(), "https://a.example/", nil)
	b, _, err2 := s.Add(t.Context(), "https://a.example/", nil)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	kept := s.Store
	for name, change := range map[string]func(*notify.Subscription){
		"address": func(s *notify.Subscription) { s.URL = "https://thief.example/" },
		"secret":  func(s *notify.Subscription) { s.Sealed = b.Sealed },
	} {
		s.Store = changed{kept, change}
		if address, secret, err := s.Open(t.Context(), a.ID); err == nil || address != "" || secret != nil {
			t.Errorf("another %s: %s", name, address)
		}
	}
}

// TestSystemsAreTold: in the transaction of the change, whatever the user's preferences
// are.
func TestSystemsAreTold(t *testing.T) {
	o, s, p := register(t)
	a, _, err := s.Add(t.Context(), "https://a.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []notify.Event{
		{Type: notify.UserAccountChanged, UserID: "user", Actor: "operator", Detail: "a\nb"},
		{Type: notify.UserCreateFail},
	} {
		if err := o.Emit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	undone := errors.New("undone")
	if err := o.db.Atomic(t.Context(), func(ctx context.Context) error {
		return errors.Join(o.Emit(ctx, notify.Event{Type: notify.UserDeleted, UserID: "user"}), undone)
	}); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	o.flush(t)
	if len(p.sent) != 2 || p.sent[0].To != a.ID || p.sent[0].Text != "" ||
		*p.sent[0].Notice != (notify.Notice{Type: notify.UserAccountChanged, Category: "UserAccount", UserID: "user", Actor: "operator", Detail: "a b"}) ||
		*p.sent[1].Notice != (notify.Notice{Type: notify.UserCreateFail, Category: "UserAccount"}) {
		t.Errorf("told %+v", p.sent)
	}
	if got := fmt.Sprint(o.Available()); got != "[SMS Email]" {
		t.Errorf("users may choose from %s", got)
	}
}

// TestChangeAndPause: the secret outlives a change, nothing is put into the outbox for a webhook that
// is off, and what waits for it is given up and can be sent again.
func TestChangeAndPause(t *testing.T) {
	o, s, p := register(t)
	a, secret, err := s.Add(t.Context(), "https://a.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct{ id, address, event, code string }{
		{a.ID, "", "UserCreated", fault.InvalidParameters}, {a.ID, "https://b.example/", "Nothing", fault.InvalidParameters}, {"none", "https://b.example/", "UserCreated", fault.NotFound},
	} {
		if err := s.Change(t.Context(), wrong.id, wrong.address, []string{wrong.event}); !fault.Is(err, wrong.code) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	if err := s.Change(t.Context(), a.ID, "https://b.example/", []string{"usercreated"}); err != nil {
		t.Fatal(err)
	}
	address, same, err := s.Open(t.Context(), a.ID)
	if err != nil || address != "https://b.example/" || !bytes.Equal(same, secret) {
		t.Errorf("after the change %s: %v", address, err)
	}
	emit := func() {
		t.Helper()
		if err := o.Emit(t.Context(), notify.Event{Type: notify.UserCreated, UserID: "user", New: true}); err != nil {
			t.Fatal(err)
		}
	}
	if failed, err := o.TestWebhook(t.Context(), a.ID, "operator"); err != nil || failed != nil {
		t.Errorf("a test: %v, %v", failed, err)
	}
	emit()
	if err := s.Pause(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	emit()
	if _, _, err := s.Open(t.Context(), a.ID); !notify.IsPermanent(err) {
		t.Errorf("a webhook that is off opens: %v", err)
	}
	list, err := o.List(t.Context(), notify.MessageQuery{Webhook: a.ID, Limit: 9})
	if err != nil || len(list) != 1 {
		t.Errorf("%d messages, %v: want that of the time before the pause", len(list), err)
	}
	if err := s.Resume(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	emit()
	o.flush(t)
	if len(p.sent) != 3 || p.sent[0].Notice.Type != notify.WebhookTest || p.sent[0].Notice.Actor != "operator" {
		t.Errorf("sent %+v", p.sent)
	}
	for _, err := range []error{s.Pause(t.Context(), "none"), s.Resume(t.Context(), "none")} {
		if !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}
}
