// SPDX-License-Identifier: Apache-2.0

// Package capture keeps messages instead of sending them, for a server that people try out. It
// provides a notifier for every channel. Begin with New, then use Box.Notifiers and Box.List.
package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

// Shown is the largest number of messages that are kept and listed.
const Shown = 1000

// Store keeps captured messages. Of a record it keeps ID, Channel, To, Sealed and CreatedAt.
// store.Captured implements it.
type Store interface {
	// AddCaptured adds a message, unless it is there already, and keeps only the last keep
	// messages.
	AddCaptured(ctx context.Context, r notify.Record, keep int) error
	// Captured returns the last limit messages, the newest last.
	Captured(ctx context.Context, limit int) ([]notify.Record, error)
}

// Message is a captured message.
type Message struct {
	ID      string
	At      time.Time // when the message was requested
	Channel notify.Channel
	To      string
	Subject string
	Text    string
	Picture []byte // GIF; nil in most messages
}

// Box holds captured messages. Their contents are sealed, because a server on trial may have
// confidential data too.
type Box struct {
	store Store
	vault notify.Sealer
}

// New returns a box.
func New(store Store, vault notify.Sealer) *Box { return &Box{store, vault} }

// Notifiers returns one notifier for each channel that users choose from, e-mail first.
func (b *Box) Notifiers() (list []notify.Notifier) {
	for _, info := range notify.ForUsers() {
		list = append(list, slot{b, info.Channel})
	}
	return list
}

// slot is the notifier of one channel.
type slot struct {
	box     *Box
	channel notify.Channel
}

func (s slot) Channel() notify.Channel { return s.channel }

// content is the sealed part of a message.
type content struct {
	Subject, Text string
	Picture       []byte `json:",omitempty"`
}

func (s slot) Send(ctx context.Context, m notify.Message) error {
	plain, err := json.Marshal(content{m.Subject, m.Text, m.Picture})
	if err != nil {
		return err
	}
	defer clear(plain)
	sealed, err := s.box.vault.Seal(place(m.ID), plain)
	if err != nil {
		return err
	}
	return s.box.store.AddCaptured(ctx, notify.Record{ID: m.ID, Channel: m.Channel, To: m.To, Sealed: sealed, CreatedAt: m.Created}, Shown)
}

// List returns the last messages, the newest last.
func (b *Box) List(ctx context.Context) ([]Message, error) {
	records, err := b.store.Captured(ctx, Shown)
	if err != nil {
		return nil, err
	}
	list := make([]Message, len(records))
	for i, r := range records {
		plain, err := b.vault.Open(place(r.ID), r.Sealed)
		if err != nil {
			return nil, fmt.Errorf("capture: message %s: %w", r.ID, err)
		}
		var c content
		if err := json.Unmarshal(plain, &c); err != nil {
			return nil, errors.New("capture: message " + r.ID + ": its text has a form that this program does not know")
		}
		clear(plain)
		list[i] = Message{r.ID, r.CreatedAt, r.Channel, r.To, c.Subject, c.Text, c.Picture}
	}
	return list, nil
}

func place(id string) vault.Place {
	return vault.Place{Purpose: "captured message", Table: "captured_messages", Row: id, Column: "sealed"}
}
