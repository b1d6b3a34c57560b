// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"tamga/internal/domain/notify"
)

// Listeners finds the addresses and secrets of systems that receive events.
// [notify.Subscriptions] implements it.
type Listeners interface {
	Open(ctx context.Context, id string) (address string, secret []byte, err error)
}

// Notifier is the notifier of the channel Webhook.
type Notifier struct {
	sender    *Sender
	listeners Listeners
}

var _ notify.Notifier = (*Notifier)(nil)

// NewNotifier returns the notifier. Every listener has its own secret, so the secret in c
// is not used.
func NewNotifier(c Config, l Listeners) *Notifier { return &Notifier{newSender(c), l} }

// Channel implements notify.Notifier.
func (n *Notifier) Channel() notify.Channel { return notify.Webhook }

// event is the body of a request. It is the same for every attempt.
type event struct {
	Type      notify.EventType `json:"type"`
	Timestamp string           `json:"timestamp"` // the time of the event
	Data      eventData        `json:"data"`
}

type eventData struct {
	Category string `json:"category"`
	UserID   string `json:"user_id,omitempty"`
	ActorID  string `json:"actor_id,omitempty"` // the user who caused it; absent: the service itself
	Detail   string `json:"detail,omitempty"`
}

// Send implements notify.Notifier.
func (n *Notifier) Send(ctx context.Context, m notify.Message) error {
	if m.Notice == nil {
		return notify.Permanent(errors.New("webhook: the message is no event"))
	}
	address, secret, err := n.listeners.Open(ctx, m.To)
	if err != nil {
		return err
	}
	defer clear(secret)
	body, err := json.Marshal(event{m.Notice.Type, m.Created.UTC().Format(time.RFC3339Nano), eventData{
		m.Notice.Category, m.Notice.UserID, m.Notice.Actor, m.Notice.Detail,
	}})
	if err != nil {
		return err
	}
	return n.sender.post(ctx, secret, address, m.ID, inMemory(body))
}

// Callbacks returns the notifier of the channel Callback. It sends what clients wait for to
// the addresses that they named, signed with the secret of the sender.
func (s *Sender) Callbacks() notify.Notifier { return callbacks{s} }

type callbacks struct{ sender *Sender }

// Channel implements notify.Notifier.
func (c callbacks) Channel() notify.Channel { return notify.Callback }

// Send implements notify.Notifier.
func (c callbacks) Send(ctx context.Context, m notify.Message) error {
	body := content(inMemory(m.Text))
	if m.Body != nil {
		body = m.Body
	}
	return c.sender.Post(ctx, m.To, m.ID, body)
}

// inMemory is a body in memory.
type inMemory []byte

func (o inMemory) Size() int64 { return int64(len(o)) }

// WriteTo implements io.WriterTo.
func (o inMemory) WriteTo(w io.Writer) (int64, error) { return bytes.NewReader(o).WriteTo(w) }
