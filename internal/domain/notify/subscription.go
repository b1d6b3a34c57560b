// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
)

// Subscription is a system that listens to events: an address and a secret that
// messages to it are signed with.
type Subscription struct {
	ID        string // GUID
	URL       string
	Events    []EventType // empty: all
	Sealed    []byte      // the address again and the secret
	CreatedAt time.Time
	PausedAt  time.Time // when it was switched off; zero: it is on
}

// SecretSize is the length of a secret in bytes.
const SecretSize = 32

// maxSubscriptions limits the messages of one event.
const maxSubscriptions = 100

// SubscriptionStore keeps subscriptions.
type SubscriptionStore interface {
	AddSubscription(ctx context.Context, s Subscription) error
	Subscriptions(ctx context.Context) ([]Subscription, error) // the oldest first
	// Subscription finds one by its identifier, or reports ErrNotFound.
	Subscription(ctx context.Context, id string) (Subscription, error)
	// ChangeSubscription replaces the address, the events and the sealed content. It reports
	// false for an unknown identifier.
	ChangeSubscription(ctx context.Context, s Subscription) (bool, error)
	// PauseSubscription sets when a subscription was switched off, zero for one that is on. It
	// reports false for an unknown identifier.
	PauseSubscription(ctx context.Context, id string, at time.Time) (bool, error)
	// RemoveSubscription reports false when there is none.
	RemoveSubscription(ctx context.Context, id string) (bool, error)
}

// Subscriptions registers systems that listen to events.
type Subscriptions struct {
	Store SubscriptionStore
	Vault Sealer
	Check func(address string) error // returns a fault for a forbidden address
	Now   func() time.Time
	Rand  io.Reader
}

// listener is the sealed content. It contains the address, so that write access to the
// database is not enough to redirect events.
type listener struct {
	URL    string `json:"url"`
	Secret []byte `json:"secret"`
}

func subscriptionPlace(id string) vault.Place {
	return vault.Place{Purpose: "webhook", Table: "webhooks", Row: id, Column: "sealed"}
}

// Add registers an address for events of these types; no types means all. The secret is
// returned only here. Faults: invalid_parameters, invalid_object_state when there are too
// many.
func (s *Subscriptions) Add(ctx context.Context, address string, events []string) (Subscription, []byte, error) {
	sub := Subscription{CreatedAt: s.Now().UTC().Truncate(time.Millisecond)}
	if err := s.set(&sub, address, events); err != nil {
		return Subscription{}, nil, err
	}
	have, err := s.Store.Subscriptions(ctx)
	if err != nil {
		return Subscription{}, nil, err
	}
	if len(have) >= maxSubscriptions {
		return Subscription{}, nil, fault.Newf(fault.InvalidObjectState, "%d systems listen, which is the limit: remove one first", len(have))
	}
	id, err := uuid.NewRandomFromReader(s.Rand)
	if err != nil {
		return Subscription{}, nil, fmt.Errorf("notify: making an identifier: %w", err)
	}
	sub.ID = id.String()
	secret := make([]byte, SecretSize)
	if _, err := io.ReadFull(s.Rand, secret); err != nil {
		return Subscription{}, nil, fmt.Errorf("notify: making a secret: %w", err)
	}
	if err := s.seal(&sub, secret); err != nil {
		return Subscription{}, nil, err
	}
	return sub, secret, s.Store.AddSubscription(ctx, sub)
}

// set checks an address and types of events and sets them.
func (s *Subscriptions) set(sub *Subscription, address string, events []string) error {
	if err := s.Check(address); err != nil {
		return err
	}
	sub.URL, sub.Events = address, nil
	for _, name := range events {
		e, ok := EventByName(name)
		if !ok {
			return fault.Newf(fault.InvalidParameters, "event: unknown type %.40q, want one of docs/events.md", name)
		}
		if !slices.Contains(sub.Events, e.Type) {
			sub.Events = append(sub.Events, e.Type)
		}
	}
	return nil
}

// seal seals the address with a secret.
func (s *Subscriptions) seal(sub *Subscription, secret []byte) (err error) {
	plain, err := json.Marshal(listener{sub.URL, secret})
	if err != nil {
		return err
	}
	defer clear(plain)
	sub.Sealed, err = s.Vault.Seal(subscriptionPlace(sub.ID), plain)
	return err
}

var errNoSubscription = fault.New(fault.NotFound, "webhook: unknown, want an identifier from the list")

// Subscription finds a subscription. The fault is object_not_found.
func (s *Subscriptions) Subscription(ctx context.Context, id string) (Subscription, error) {
	sub, err := s.Store.Subscription(ctx, id)
	if errors.Is(err, ErrNotFound) {
		err = errNoSubscription
	}
	return sub, err
}

// Change replaces the address and the types of events of a subscription. The secret stays. Messages
// that wait go to the new address. Faults: invalid_parameters, object_not_found.
func (s *Subscriptions) Change(ctx context.Context, id, address string, events []string) error {
	sub, err := s.Subscription(ctx, id)
	if err != nil {
		return err
	}
	_, secret, err := s.open(sub)
	if err != nil {
		return fault.New(fault.InvalidObjectState, "the webhook cannot be opened: remove it and add it again").With(err)
	}
	defer clear(secret)
	if err := s.set(&sub, address, events); err != nil {
		return err
	}
	if err := s.seal(&sub, secret); err != nil {
		return err
	}
	return known(s.Store.ChangeSubscription(ctx, sub))
}

// Pause switches a subscription off: no event is put into the outbox for it, and messages that wait
// are given up when they are due. The fault is object_not_found.
func (s *Subscriptions) Pause(ctx context.Context, id string) error {
	return known(s.Store.PauseSubscription(ctx, id, s.Now().UTC().Truncate(time.Millisecond)))
}

// Resume switches a subscription on again, for events from now on. The fault is object_not_found.
func (s *Subscriptions) Resume(ctx context.Context, id string) error {
	return known(s.Store.PauseSubscription(ctx, id, time.Time{}))
}

// known returns the fault for a subscription that a change did not find.
func known(found bool, err error) error {
	if err == nil && !found {
		err = errNoSubscription
	}
	return err
}

// List returns the subscriptions, the oldest first.
func (s *Subscriptions) List(ctx context.Context) ([]Subscription, error) {
	return s.Store.Subscriptions(ctx)
}

// Remove ends a subscription: its waiting messages are given up. The fault is
// object_not_found.
func (s *Subscriptions) Remove(ctx context.Context, id string) error {
	return known(s.Store.RemoveSubscription(ctx, id))
}

// Listening implements Listeners.
func (s *Subscriptions) Listening(ctx context.Context, event EventType) (ids []string, err error) {
	have, err := s.Store.Subscriptions(ctx)
	for _, sub := range have {
		if sub.PausedAt.IsZero() && (len(sub.Events) == 0 || slices.Contains(sub.Events, event)) {
			ids = append(ids, sub.ID)
		}
	}
	return ids, err
}

// Open returns the address and the secret of a subscription, for the Notifier that sends
// to it. Errors that a retry cannot help are Permanent.
func (s *Subscriptions) Open(ctx context.Context, id string) (address string, secret []byte, err error) {
	sub, err := s.Store.Subscription(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return "", nil, Permanent(errors.New("the subscription was removed"))
	}
	if err != nil {
		return "", nil, err
	}
	if !sub.PausedAt.IsZero() {
		return "", nil, Permanent(errors.New("the webhook is switched off"))
	}
	return s.open(sub)
}

func (s *Subscriptions) open(sub Subscription) (address string, secret []byte, err error) {
	plain, err := s.Vault.Open(subscriptionPlace(sub.ID), sub.Sealed)
	if err != nil {
		return "", nil, fmt.Errorf("the secret cannot be opened: %w", err)
	}
	defer clear(plain)
	var l listener
	if err := json.Unmarshal(plain, &l); err != nil || l.URL != sub.URL {
		return "", nil, Permanent(errors.New("the subscription was changed from outside: remove it and add it again"))
	}
	return l.URL, l.Secret, nil
}

// EventByName finds an event of the catalogue without regard to letter case.
func EventByName(name string) (EventInfo, bool) {
	for _, e := range Events() {
		if strings.EqualFold(string(e.Type), name) {
			return e, true
		}
	}
	return EventInfo{}, false
}
