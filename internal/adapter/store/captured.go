// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"

	"tamga/internal/domain/notify"
)

// Captured stores messages that are shown instead of sent.
type Captured struct{ *DB }

// AddCaptured stores a message once and deletes all but the last keep messages. Of the
// record it stores ID, Channel, To, Sealed and CreatedAt.
func (s Captured) AddCaptured(ctx context.Context, m notify.Record, keep int) error {
	return s.Unit(ctx, func(ctx context.Context) error {
		_, err := s.exec(ctx, `INSERT INTO captured_messages (message_id, at, channel, recipient, sealed)
			VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
			m.ID, millis(m.CreatedAt), string(m.Channel), m.To, m.Sealed)
		if err != nil {
			return err
		}
		_, err = s.exec(ctx, "DELETE FROM captured_messages WHERE id <= (SELECT MAX(id) FROM captured_messages) - $1", keep)
		return err
	})
}

// Captured returns the last limit messages, the newest last.
func (s Captured) Captured(ctx context.Context, limit int) ([]notify.Record, error) {
	list, err := all(ctx, s.DB, func(r row) (m notify.Record, err error) {
		err = r.Scan(&m.ID, (*timeField)(&m.CreatedAt), &m.Channel, &m.To, &m.Sealed)
		return m, err
	}, "SELECT message_id, at, channel, recipient, sealed FROM captured_messages ORDER BY id DESC LIMIT $1", limit)
	slices.Reverse(list)
	return list, err
}
