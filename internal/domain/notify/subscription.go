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
	if err := s.Check(address); err != nil {
		return Subscription{}, nil, err
	}
	sub := Subscription{URL: address, CreatedAt: s.Now().UTC().Truncate(time.Millisecond)}
	for _, name := range events {
		e, ok := EventByName(name)
		if !ok {
			return Subscription{}, nil, fault.Newf(fault.InvalidParameters, "event: unknown type %.40q, want one of docs/events.md", name)
		}
		if !slices.Contains(sub.Events, e.Type) {
			sub.Events = append(sub.Events, e.Type)
		}
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
	plain, err := json.Marshal(listener{address, secret})
	if err != nil {
		return Subscription{}, nil, err
	}
	defer clear(plain)
	if sub.Sealed, err = s.Vault.Seal(subscriptionPlace(sub.ID), plain); err != nil {
		return Subscription{}, nil, err
	}
	return sub, secret, s.Store.AddSubscription(ctx, sub)
}

// List returns the subscriptions, the oldest first.
func (s *Subscriptions) List(ctx context.Context) ([]Subscription, error) {
	return s.Store.Subscriptions(ctx)
}

// Remove ends a subscription: its waiting messages are given up. The fault is
// object_not_found.
func (s *Subscriptions) Remove(ctx context.Context, id string) error {
	removed, err := s.Store.RemoveSubscription(ctx, id)
	if err == nil && !removed {
		err = fault.New(fault.NotFound, "webhook: unknown, want an identifier from the list")
	}
	return err
}

// Listening implements Listeners.
func (s *Subscriptions) Listening(ctx context.Context, event EventType) (ids []string, err error) {
	have, err := s.Store.Subscriptions(ctx)
	for _, sub := range have {
		if len(sub.Events) == 0 || slices.Contains(sub.Events, event) {
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
		return "", nil, Permanent(errors.New("nobody listens there any more"))
	}
	if err != nil {
		return "", nil, err
	}
	plain, err := s.Vault.Open(subscriptionPlace(id), sub.Sealed)
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
