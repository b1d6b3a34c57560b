// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"tamga/internal/domain/lock"
	"tamga/internal/domain/passkey"
)

// Passkeys implements passkey.Store.
type Passkeys struct{ *DB }

var _ passkey.Store = Passkeys{}

// Atomic implements passkey.Store; see DB.locked.
func (s Passkeys) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

const passkeyColumns = "id, user_id, name, counter, sealed, created_at, used_at"

func scanPasskey(r row) (p passkey.Record, err error) {
	err = r.Scan(&p.ID, &p.UserID, &p.Name, &p.Counter, &p.Sealed, (*timeField)(&p.CreatedAt), (*timeField)(&p.UsedAt))
	return p, err
}

// AddPasskey implements passkey.Store.
func (s Passkeys) AddPasskey(ctx context.Context, r passkey.Record) (bool, error) {
	n, err := s.exec(ctx, "INSERT INTO passkeys ("+passkeyColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
		r.ID, r.UserID, r.Name, r.Counter, r.Sealed, millis(r.CreatedAt), millis(r.UsedAt))
	return n == 1, err
}

// Passkeys implements passkey.Store.
func (s Passkeys) Passkeys(ctx context.Context, userID string) ([]passkey.Record, error) {
	return all(ctx, s.DB, scanPasskey, "SELECT "+passkeyColumns+" FROM passkeys WHERE user_id = $1 ORDER BY created_at, id", userID)
}

// RenamePasskey implements passkey.Store.
func (s Passkeys) RenamePasskey(ctx context.Context, userID, id, name string) (bool, error) {
	n, err := s.exec(ctx, "UPDATE passkeys SET name = $3 WHERE id = $2 AND user_id = $1", userID, id, name)
	return n == 1, err
}

// DeletePasskey implements passkey.Store.
func (s Passkeys) DeletePasskey(ctx context.Context, userID, id string) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM passkeys WHERE id = $2 AND user_id = $1", userID, id)
	return n == 1, err
}

// UsePasskey implements passkey.Store.
func (s Passkeys) UsePasskey(ctx context.Context, userID, id string, before, after int64, at time.Time) (bool, error) {
	n, err := s.exec(ctx, "UPDATE passkeys SET counter = $4, used_at = $5 WHERE id = $2 AND user_id = $1 AND counter = $3",
		userID, id, before, after, millis(at))
	return n == 1, err
}

// SetRegistration implements passkey.Store.
func (s Passkeys) SetRegistration(ctx context.Context, r passkey.Registration) error {
	_, err := s.exec(ctx, `INSERT INTO passkey_registrations (user_id, session, name, challenge, expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (user_id) DO UPDATE SET session = excluded.session, name = excluded.name, challenge = excluded.challenge, expires_at = excluded.expires_at`,
		r.UserID, r.Session, r.Name, r.Challenge, millis(r.EndsAt))
	return err
}

// SpendRegistration implements passkey.Store.
func (s Passkeys) SpendRegistration(ctx context.Context, userID, session string, now time.Time) (passkey.Registration, bool, error) {
	return returning(ctx, s.DB, func(r row) (g passkey.Registration, err error) {
		err = r.Scan(&g.UserID, &g.Session, &g.Name, &g.Challenge, (*timeField)(&g.EndsAt))
		return g, err
	}, `DELETE FROM passkey_registrations WHERE user_id = $1 AND session = $2 AND expires_at > $3
		RETURNING user_id, session, name, challenge, expires_at`, userID, session, millis(now))
}

// SweepRegistrations implements passkey.Store.
func (s Passkeys) SweepRegistrations(ctx context.Context, now time.Time) error {
	_, err := s.exec(ctx, "DELETE FROM passkey_registrations WHERE expires_at <= $1", millis(now))
	return err
}
