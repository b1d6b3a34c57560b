package store

import (
	"context"
	"time"

	"tamga/internal/domain/auth"
)

// Tokens satisfies auth.Store and auth.KeyStore.
type Tokens struct{ *DB }

var (
	_ auth.Store    = Tokens{}
	_ auth.KeyStore = Tokens{}
)

// SetPassword implements auth.Store.
func (s Tokens) SetPassword(ctx context.Context, userID, encoded string, at time.Time) error {
	// From users, so that an unknown user is no row and not a broken reference.
	n, err := s.exec(ctx, `INSERT INTO passwords (user_id, encoded, changed_at)
		SELECT id, CAST($2 AS TEXT), CAST($3 AS BIGINT) FROM users WHERE id = $1
		ON CONFLICT (user_id) DO UPDATE SET encoded = excluded.encoded, changed_at = excluded.changed_at`,
		userID, encoded, millis(at))
	if err == nil && n == 0 {
		return auth.ErrNotFound
	}
	return err
}

// CredentialByLogin implements auth.Store.
func (s Tokens) CredentialByLogin(ctx context.Context, folded string) (auth.Credential, error) {
	c, found, err := one(ctx, s.DB, func(r row) (c auth.Credential, err error) {
		err = r.Scan(append(userFields(&c.User), &c.Encoded)...)
		return c, err
	}, "SELECT "+userColumns+", p.encoded FROM users u JOIN passwords p ON p.user_id = u.id WHERE u.login_folded = $1", folded)
	if err == nil && !found {
		err = auth.ErrNotFound
	}
	return c, err
}

// BeginAttempt implements auth.Store.
func (s Tokens) BeginAttempt(ctx context.Context, login auth.LoginKey, now time.Time, rule auth.LockOut) (bool, error) {
	lockEnd := millis(now.Add(rule.LockOut))
	firstLock := int64(0)
	if rule.Failures <= 1 {
		firstLock = lockEnd
	}
	// A window that has ended starts anew with this attempt. A lock-out that
	// has ended inside a longer window does not: the count is kept, so the
	// next wrong password locks out again.
	n, err := s.exec(ctx, `INSERT INTO login_failures AS f (login, failures, window_from, locked_until)
		VALUES ($1, 1, $2, $3)
		ON CONFLICT (login) DO UPDATE SET
			failures = CASE WHEN f.window_from <= $4 THEN 1 ELSE f.failures + 1 END,
			window_from = CASE WHEN f.window_from <= $4 THEN excluded.window_from ELSE f.window_from END,
			locked_until = CASE
				WHEN f.window_from <= $4 THEN excluded.locked_until
				WHEN f.failures + 1 >= $5 THEN CAST($6 AS BIGINT)
				ELSE 0 END
		WHERE f.locked_until <= excluded.window_from`,
		login[:], millis(now), firstLock, millis(now.Add(-rule.Window)), int64(rule.Failures), lockEnd)
	return n == 1, err
}

// EndAttempt implements auth.Store.
func (s Tokens) EndAttempt(ctx context.Context, login auth.LoginKey) error {
	_, err := s.exec(ctx, "DELETE FROM login_failures WHERE login = $1", login[:])
	return err
}

// AddToken implements auth.Store.
func (s Tokens) AddToken(ctx context.Context, t auth.TokenRecord, encoded string) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO access_tokens (id, user_id, client_id, method, created_at, expires_at, revoked)
		SELECT CAST($1 AS TEXT), u.id, CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), FALSE
		FROM users u JOIN passwords p ON p.user_id = u.id
		WHERE u.id = $2 AND u.locked = FALSE AND p.encoded = $7`,
		t.ID, t.UserID, t.ClientID, t.Method, millis(t.CreatedAt), millis(t.ExpiresAt), encoded)
	return n == 1, err
}

// BearerByToken implements auth.Store.
func (s Tokens) BearerByToken(ctx context.Context, tokenID string) (auth.Bearer, error) {
	b, found, err := one(ctx, s.DB, func(r row) (b auth.Bearer, err error) {
		t := &b.Token
		err = r.Scan(append(userFields(&b.User), &t.ID, &t.UserID, &t.ClientID, &t.Method,
			(*timeField)(&t.CreatedAt), (*timeField)(&t.ExpiresAt), &t.Revoked)...)
		return b, err
	}, "SELECT "+userColumns+`, t.id, t.user_id, t.client_id, t.method, t.created_at, t.expires_at, t.revoked
		FROM access_tokens t JOIN users u ON u.id = t.user_id WHERE t.id = $1`, tokenID)
	if err == nil && !found {
		err = auth.ErrNotFound
	}
	if err == nil && b.User.Operator {
		b.Groups, err = s.operatorGroups(ctx, b.User.ID)
	}
	return b, err
}

// RevokeTokens implements auth.Store.
func (s Tokens) RevokeTokens(ctx context.Context, userID string) error {
	_, err := s.exec(ctx, "UPDATE access_tokens SET revoked = TRUE WHERE user_id = $1 AND revoked = FALSE", userID)
	return err
}

// sweepPortion keeps a sweep from holding up other writers.
const sweepPortion = 1000

// Sweep implements auth.Store.
func (s Tokens) Sweep(ctx context.Context, now time.Time, window time.Duration) error {
	for _, sweep := range []struct {
		query string
		args  []any
	}{
		{`DELETE FROM access_tokens WHERE id IN
			(SELECT id FROM access_tokens WHERE expires_at <= $1 LIMIT $2)`,
			[]any{millis(now), sweepPortion}},
		{`DELETE FROM login_failures WHERE login IN
			(SELECT login FROM login_failures WHERE window_from <= $3 AND locked_until <= $1 LIMIT $2)`,
			[]any{millis(now), sweepPortion, millis(now.Add(-window))}},
	} {
		for n := int64(sweepPortion); n == sweepPortion; {
			var err error
			if n, err = s.exec(ctx, sweep.query, sweep.args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// SigningKeys implements auth.KeyStore.
func (s Tokens) SigningKeys(ctx context.Context) ([]auth.SealedKey, error) {
	return all(ctx, s.DB, func(r row) (k auth.SealedKey, err error) {
		err = r.Scan(&k.ID, &k.Sealed, (*timeField)(&k.CreatedAt))
		return k, err
	}, "SELECT id, sealed, created_at FROM signing_keys ORDER BY created_at DESC, id")
}

// AddSigningKey implements auth.KeyStore.
func (s Tokens) AddSigningKey(ctx context.Context, k auth.SealedKey) error {
	_, err := s.exec(ctx, "INSERT INTO signing_keys (id, sealed, created_at) VALUES ($1, $2, $3)",
		k.ID, k.Sealed, millis(k.CreatedAt))
	return err
}
