// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"tamga/internal/domain/lock"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
)

// SetMethod implements signin.Store.
func (s Tokens) SetMethod(ctx context.Context, userID string, m signin.StoredMethod) error {
	_, err := s.exec(ctx, `INSERT INTO user_methods (user_id, method, level) VALUES ($1, $2, $3)
		ON CONFLICT (user_id, method) DO UPDATE SET level = excluded.level`, userID, m.Name, m.Level)
	return err
}

var addMethods = newInsertion(1, "user_methods", "user_id, method, level", "")

// AddMethod implements signin.MethodStore.
func (s Tokens) AddMethod(ctx context.Context, userID string, m signin.StoredMethod) error {
	_, err := s.insert(ctx, addMethods, userID, m.Name, m.Level)
	return err
}

// DeleteMethod implements signin.Store.
func (s Tokens) DeleteMethod(ctx context.Context, userID, name string) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM user_methods WHERE user_id = $1 AND method = $2", userID, name)
	return n == 1, err
}

// MethodsOf implements signin.Store.
func (s Tokens) MethodsOf(ctx context.Context, userID string) ([]signin.StoredMethod, error) {
	return all(ctx, s.DB, func(r row) (m signin.StoredMethod, err error) {
		err = r.Scan(&m.Name, &m.Level)
		return m, err
	}, "SELECT method, level FROM user_methods WHERE user_id = $1", userID)
}

// AddCertificate implements signin.Store.
func (s Tokens) AddCertificate(ctx context.Context, c signin.SignInCertificate) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO sign_in_certificates (thumbprint, user_id, subject, issuer, serial, not_after, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
		c.Thumbprint[:], c.UserID, c.Subject, c.Issuer, c.Serial, millis(c.NotAfter), millis(c.CreatedAt))
	return n == 1, err
}

// RemoveCertificate implements signin.Store.
func (s Tokens) RemoveCertificate(ctx context.Context, userID string, thumbprint [sha256.Size]byte) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM sign_in_certificates WHERE user_id = $1 AND thumbprint = $2", userID, thumbprint[:])
	return n == 1, err
}

// CertificatesOf implements signin.Store.
func (s Tokens) CertificatesOf(ctx context.Context, userID string) ([]signin.SignInCertificate, error) {
	return all(ctx, s.DB, func(r row) (c signin.SignInCertificate, err error) {
		var thumbprint []byte
		err = r.Scan(&thumbprint, &c.UserID, &c.Subject, &c.Issuer, &c.Serial, (*timeField)(&c.NotAfter), (*timeField)(&c.CreatedAt))
		if err == nil && len(thumbprint) != len(c.Thumbprint) {
			err = fmt.Errorf("store: a thumbprint has %d bytes, want %d", len(thumbprint), len(c.Thumbprint))
		}
		copy(c.Thumbprint[:], thumbprint)
		return c, err
	}, `SELECT thumbprint, user_id, subject, issuer, serial, not_after, created_at
		FROM sign_in_certificates WHERE user_id = $1 ORDER BY created_at, thumbprint`, userID)
}

// BearerByCertificate implements signin.Store.
func (s Tokens) BearerByCertificate(ctx context.Context, thumbprint [sha256.Size]byte) (b token.Bearer, scheme signin.Scheme, err error) {
	_, found, err := one(ctx, s.DB, func(r row) (struct{}, error) {
		return struct{}{}, r.Scan(append(userFields(&b.User), schemeFields(&scheme)...)...)
	}, "SELECT "+userColumns+", "+schemeColumns+` FROM sign_in_certificates k JOIN users u ON u.id = k.user_id WHERE k.thumbprint = $1`, thumbprint[:])
	if err == nil && !found {
		err = session.ErrNotFound
	}
	return b, scheme, err
}

// AddCode implements signin.Store.
func (s Tokens) AddCode(ctx context.Context, c signin.Code) error {
	_, err := s.exec(ctx, `INSERT INTO authorization_codes (hash, user_id, client_id, redirect_uri, scope, method, thumbprint, expires_at, spent_at, token_id,
			granted, login_only, nonce, challenge, signed_in_at, grant_id, parent_id, ends_at, second_step)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, '', $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		c.Hash[:], c.UserID, c.ClientID, c.RedirectURI, c.Scope, c.Method, notNull(c.Thumbprint), millis(c.ExpiresAt),
		c.Granted, c.LoginOnly, c.Nonce, c.Challenge, millis(c.SignedInAt),
		c.GrantID, c.ParentID, millis(c.EndsAt), c.SecondStep)
	return err
}

// SpendCode implements signin.Store.
func (s Tokens) SpendCode(ctx context.Context, hash [sha256.Size]byte, clientID, redirectURI, tokenID string, now time.Time) (signin.Code, bool, error) {
	return returning(ctx, s.DB, func(r row) (signin.Code, error) {
		c := signin.Code{Hash: hash, ClientID: clientID, RedirectURI: redirectURI}
		err := r.Scan(&c.UserID, &c.Scope, &c.Method, &c.Thumbprint, (*timeField)(&c.ExpiresAt),
			&c.Granted, &c.LoginOnly, &c.Nonce, &c.Challenge, (*timeField)(&c.SignedInAt),
			&c.GrantID, &c.ParentID, (*timeField)(&c.EndsAt), &c.SecondStep)
		return c, err
	}, `UPDATE authorization_codes SET spent_at = $5, token_id = $4
		WHERE hash = $1 AND client_id = $2 AND redirect_uri = $3 AND spent_at = 0 AND expires_at > $5
		RETURNING user_id, scope, method, thumbprint, expires_at, granted, login_only, nonce, challenge, signed_in_at,
			grant_id, parent_id, ends_at, second_step`, hash[:], clientID, redirectURI, tokenID, millis(now))
}

// CodeUser implements signin.CodeStore.
func (s Tokens) CodeUser(ctx context.Context, hash [sha256.Size]byte) (string, error) {
	id, _, err := one(ctx, s.DB, scalar[string], "SELECT user_id FROM authorization_codes WHERE hash = $1", hash[:])
	return id, err
}

// EndReplayed implements signin.Store. A code from a sign-in was exchanged for the first
// token of the sign-in, and the grant has the id of that token. A derived code names the
// sign-in itself.
func (s Tokens) EndReplayed(ctx context.Context, hash [sha256.Size]byte, clientID string) (ended bool, err error) {
	owner, err := s.CodeUser(ctx, hash)
	if err != nil || owner == "" {
		return false, err
	}
	err = s.locked(ctx, lock.User(owner), func(ctx context.Context) error {
		ended = false
		const signIn = `(SELECT CASE WHEN grant_id <> '' THEN grant_id ELSE token_id END
			FROM authorization_codes WHERE hash = $1 AND client_id = $2 AND spent_at <> 0)`
		for _, statement := range []string{
			"UPDATE access_tokens SET revoked = TRUE WHERE id IN (SELECT id FROM access_tokens WHERE NOT revoked AND (id = " + signIn +
				" OR grant_id <> '' AND grant_id = " + signIn + ")" + s.inOrder("id") + ")",
			"DELETE FROM grants WHERE id IN " + signIn,
			// This statement must be the last: it may delete the code itself.
			"DELETE FROM authorization_codes WHERE grant_id <> '' AND grant_id IN " + signIn,
		} {
			n, err := s.exec(ctx, statement, hash[:], clientID)
			if err != nil {
				return err
			}
			ended = ended || n > 0
		}
		return nil
	})
	return ended && err == nil, err
}
