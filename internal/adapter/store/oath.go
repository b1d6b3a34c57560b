// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"tamga/internal/domain/oath"
	"time"
)

var _ oath.Store = Tokens{}

const oathColumns = "serial_key, serial, user_id, type, app, watermark, sealed, failures, locked_until, created_at, assigned_at, behind"

func scanOathToken(r row) (t oath.Record, err error) {
	var user sql.NullString
	err = r.Scan(&t.Key, &t.Serial, &user, &t.Type, &t.App, &t.Watermark, &t.Sealed, &t.Failures,
		(*timeField)(&t.LockedUntil), (*timeField)(&t.CreatedAt), (*timeField)(&t.AssignedAt), &t.Behind)
	t.UserID = user.String
	return t, err
}

// AddOathToken implements oath.Store.
func (s Tokens) AddOathToken(ctx context.Context, t oath.Record) (bool, error) {
	n, err := s.exec(ctx, "INSERT INTO oath_tokens ("+oathColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING",
		t.Key, t.Serial, orNone(t.UserID), string(t.Type), t.App, t.Watermark, t.Sealed, t.Failures, millis(t.LockedUntil), millis(t.CreatedAt), millis(t.AssignedAt), t.Behind)
	return n == 1, err
}

// OathToken implements oath.Store.
func (s Tokens) OathToken(ctx context.Context, key string) (oath.Record, bool, error) {
	return one(ctx, s.DB, scanOathToken, "SELECT "+oathColumns+" FROM oath_tokens WHERE serial_key = $1", key)
}

// OathTokenOf implements oath.Store.
func (s Tokens) OathTokenOf(ctx context.Context, userID string) (oath.Record, bool, error) {
	return one(ctx, s.DB, scanOathToken, "SELECT "+oathColumns+" FROM oath_tokens WHERE user_id = $1", userID)
}

// OathTokens implements oath.Store.
func (s Tokens) OathTokens(ctx context.Context, q oath.Query) ([]oath.Record, error) {
	return all(ctx, s.DB, scanOathToken, "SELECT "+oathColumns+` FROM oath_tokens
		WHERE serial_key > $1 AND ($2 = '' OR user_id = $2) AND (NOT $3 OR user_id IS NULL AND NOT app) ORDER BY serial_key LIMIT $4`,
		q.After, q.UserID, q.Free, q.Limit)
}

// DeleteOathToken implements oath.Store.
func (s Tokens) DeleteOathToken(ctx context.Context, key string, sealed []byte) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM oath_tokens WHERE serial_key = $1 AND sealed = $2", key, sealed)
	return n == 1, err
}

// ReleaseOathToken implements oath.Store.
func (s Tokens) ReleaseOathToken(ctx context.Context, key string, before, after []byte) (bool, error) {
	n, err := s.exec(ctx, "UPDATE oath_tokens SET user_id = NULL, sealed = $3 WHERE serial_key = $1 AND sealed = $2", key, before, after)
	return n == 1, err
}

// BeginOathAttempt implements oath.Store.
func (s Tokens) BeginOathAttempt(ctx context.Context, key string, now time.Time, rule oath.Lock) (oath.Record, bool, error) {
	return returning(ctx, s.DB, scanOathToken, `UPDATE oath_tokens SET failures = failures + 1, locked_until = CASE
			WHEN failures + 1 >= $3 THEN CAST($4 AS BIGINT)
			WHEN (failures + 1) % $5 = 0 THEN CAST($6 AS BIGINT)
			ELSE 0 END
		WHERE serial_key = $1 AND locked_until <= $2 RETURNING `+oathColumns,
		key, millis(now), int64(rule.MaxAttempts), millis(oath.Blocked), int64(rule.Attempts), millis(now.Add(rule.LockOut)))
}

// AcceptOathStep implements oath.Store.
func (s Tokens) AcceptOathStep(ctx context.Context, a oath.Acceptance) (bool, error) {
	n, err := s.exec(ctx, `UPDATE oath_tokens SET watermark = $2, sealed = $4, user_id = $5, assigned_at = $6, failures = 0, locked_until = 0, behind = FALSE
		WHERE serial_key = $1 AND watermark < $2 AND sealed = $3 AND (user_id IS NULL OR user_id = $5)`,
		a.Key, a.Step, a.Before, a.After, a.UserID, millis(a.AssignedAt))
	return n == 1, err
}

// ForgiveOathToken implements oath.Store.
func (s Tokens) ForgiveOathToken(ctx context.Context, key string) (bool, error) {
	n, err := s.exec(ctx, "UPDATE oath_tokens SET failures = 0, locked_until = 0 WHERE serial_key = $1", key)
	return n == 1, err
}

// SweepOathTokens implements oath.Store.
func (s Tokens) SweepOathTokens(ctx context.Context) error {
	return s.sweep(ctx, []sweep{{`DELETE FROM oath_tokens WHERE serial_key IN
		(SELECT serial_key FROM oath_tokens WHERE app AND user_id IS NULL LIMIT $1` + s.skipLocked() + `)`, []any{sweepPortion}}})
}
