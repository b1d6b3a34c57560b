// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"time"

	"tamga/internal/domain/notify"
)

// Webhooks implements notify.SubscriptionStore.
type Webhooks struct{ *DB }

var _ notify.SubscriptionStore = Webhooks{}

const webhookColumns = "id, url, events, sealed, created_at, paused_at"

func scanWebhook(r row) (w notify.Subscription, err error) {
	var events string
	if err := r.Scan(&w.ID, &w.URL, &events, &w.Sealed, (*timeField)(&w.CreatedAt), (*timeField)(&w.PausedAt)); err != nil {
		return w, err
	}
	return w, json.Unmarshal([]byte(events), &w.Events)
}

// AddSubscription implements notify.SubscriptionStore.
func (s Webhooks) AddSubscription(ctx context.Context, w notify.Subscription) error {
	events, err := json.Marshal(append([]notify.EventType{}, w.Events...))
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, "INSERT INTO webhooks ("+webhookColumns+") VALUES ($1, $2, $3, $4, $5, $6)",
		w.ID, w.URL, string(events), w.Sealed, millis(w.CreatedAt), millis(w.PausedAt))
	return err
}

// ChangeSubscription implements notify.SubscriptionStore.
func (s Webhooks) ChangeSubscription(ctx context.Context, w notify.Subscription) (bool, error) {
	events, err := json.Marshal(append([]notify.EventType{}, w.Events...))
	if err != nil {
		return false, err
	}
	n, err := s.exec(ctx, "UPDATE webhooks SET url = $2, events = $3, sealed = $4 WHERE id = $1", w.ID, w.URL, string(events), w.Sealed)
	return n == 1, err
}

// PauseSubscription implements notify.SubscriptionStore.
func (s Webhooks) PauseSubscription(ctx context.Context, id string, at time.Time) (bool, error) {
	n, err := s.exec(ctx, "UPDATE webhooks SET paused_at = $2 WHERE id = $1", id, millis(at))
	return n == 1, err
}

// Subscriptions implements notify.SubscriptionStore.
func (s Webhooks) Subscriptions(ctx context.Context) ([]notify.Subscription, error) {
	return remembered(ctx, s.DB, "webhooks", func() ([]notify.Subscription, error) {
		return all(ctx, s.DB, scanWebhook, "SELECT "+webhookColumns+" FROM webhooks ORDER BY created_at, id")
	})
}

// Subscription implements notify.SubscriptionStore.
func (s Webhooks) Subscription(ctx context.Context, id string) (notify.Subscription, error) {
	w, found, err := one(ctx, s.DB, scanWebhook, "SELECT "+webhookColumns+" FROM webhooks WHERE id = $1", id)
	if err == nil && !found {
		err = notify.ErrNotFound
	}
	return w, err
}

// RemoveSubscription implements notify.SubscriptionStore.
func (s Webhooks) RemoveSubscription(ctx context.Context, id string) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM webhooks WHERE id = $1", id)
	return n == 1, err
}
