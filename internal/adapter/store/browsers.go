// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"tamga/internal/domain/device"
	"tamga/internal/domain/lock"
)

// Browsers implements device.BrowserStore.
type Browsers struct{ *DB }

var _ device.BrowserStore = Browsers{}

// Atomic implements device.BrowserStore; see DB.locked.
func (s Browsers) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

const browserColumns = "id, user_id, created_at, sealed"

func scanBrowser(r row) (b device.BrowserRecord, err error) {
	err = r.Scan(&b.ID, &b.UserID, (*timeField)(&b.CreatedAt), &b.Sealed)
	return b, err
}

// PutBrowser implements device.BrowserStore.
func (s Browsers) PutBrowser(ctx context.Context, r device.BrowserRecord) error {
	_, err := s.exec(ctx, "INSERT INTO browsers ("+browserColumns+`) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, created_at = excluded.created_at, sealed = excluded.sealed`,
		r.ID, r.UserID, millis(r.CreatedAt), r.Sealed)
	return err
}

// Browser implements device.BrowserStore.
func (s Browsers) Browser(ctx context.Context, id string) (device.BrowserRecord, bool, error) {
	return one(ctx, s.DB, scanBrowser, "SELECT "+browserColumns+" FROM browsers WHERE id = $1", id)
}

// Browsers implements device.BrowserStore.
func (s Browsers) Browsers(ctx context.Context, userID string) ([]device.BrowserRecord, error) {
	return all(ctx, s.DB, scanBrowser, "SELECT "+browserColumns+" FROM browsers WHERE user_id = $1 ORDER BY created_at, id", userID)
}

// ChangeBrowser implements device.BrowserStore.
func (s Browsers) ChangeBrowser(ctx context.Context, id string, before, after []byte) (bool, error) {
	n, err := s.exec(ctx, "UPDATE browsers SET sealed = $3 WHERE id = $1 AND sealed = $2", id, before, after)
	return n == 1, err
}

// DeleteBrowser implements device.BrowserStore.
func (s Browsers) DeleteBrowser(ctx context.Context, userID, id string) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM browsers WHERE id = $2 AND user_id = $1", userID, id)
	return n == 1, err
}
