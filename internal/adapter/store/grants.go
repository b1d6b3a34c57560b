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

const grantColumns = "id, handle, secret, user_id, client_id, scope, method, login_only, second_step, signed_in_at, refreshed_at, expires_at"

func scanGrant(r row) (g token.Grant, err error) {
	var handle, secret []byte
	err = r.Scan(&g.ID, &handle, &secret, &g.UserID, &g.ClientID, &g.Scope, &g.Method, &g.LoginOnly, &g.SecondStep,
		(*timeField)(&g.SignedInAt), (*timeField)(&g.UsedAt), (*timeField)(&g.ExpiresAt))
	if err == nil && (len(handle) != sha256.Size || len(secret) != sha256.Size) {
		err = fmt.Errorf("store: a grant has hashes of %d and %d bytes, want %d", len(handle), len(secret), sha256.Size)
	}
	copy(g.Handle[:], handle)
	copy(g.Secret[:], secret)
	return g, err
}

// AddGrant implements token.Store.
func (s Tokens) AddGrant(ctx context.Context, g token.Grant) error {
	_, err := s.exec(ctx, "INSERT INTO grants ("+grantColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
		g.ID, g.Handle[:], g.Secret[:], g.UserID, g.ClientID, g.Scope, g.Method, g.LoginOnly, g.SecondStep,
		millis(g.SignedInAt), millis(g.UsedAt), millis(g.ExpiresAt))
	return err
}

// Rotate implements token.Store.
func (s Tokens) Rotate(ctx context.Context, handle, old, next [sha256.Size]byte, clientID string, now time.Time) (token.Grant, bool, error) {
	return returning(ctx, s.DB, scanGrant, `UPDATE grants SET secret = $3, refreshed_at = $5
		WHERE handle = $1 AND secret = $2 AND client_id = $4 AND expires_at > $5 RETURNING `+grantColumns,
		handle[:], old[:], next[:], clientID, millis(now))
}

// GrantUser implements token.Store.
func (s Tokens) GrantUser(ctx context.Context, handle [sha256.Size]byte) (string, error) {
	id, _, err := one(ctx, s.DB, scalar[string], "SELECT user_id FROM grants WHERE handle = $1", handle[:])
	return id, err
}

// EndGrant implements token.Store.
func (s Tokens) EndGrant(ctx context.Context, handle [sha256.Size]byte) (ended bool, err error) {
	owner, err := s.GrantUser(ctx, handle)
	if err != nil || owner == "" {
		return false, err
	}
	err = s.locked(ctx, lock.User(owner), func(ctx context.Context) error {
		if _, err := s.exec(ctx, `UPDATE access_tokens SET revoked = TRUE WHERE id IN (SELECT id FROM access_tokens
			WHERE grant_id <> '' AND grant_id = (SELECT id FROM grants WHERE handle = $1)`+s.inOrder("id")+`)`, handle[:]); err != nil {
			return err
		}
		if _, err := s.exec(ctx, `DELETE FROM authorization_codes
			WHERE grant_id <> '' AND grant_id IN (SELECT id FROM grants WHERE handle = $1)`, handle[:]); err != nil {
			return err
		}
		n, err := s.exec(ctx, "DELETE FROM grants WHERE handle = $1", handle[:])
		ended = n == 1
		return err
	})
	return ended && err == nil, err
}

// EndSignIn implements token.Store.
func (s Tokens) EndSignIn(ctx context.Context, userID, tokenID string) error {
	return s.locked(ctx, lock.User(userID), func(ctx context.Context) error {
		const signIn = `(SELECT CASE WHEN grant_id <> '' THEN grant_id ELSE id END FROM access_tokens WHERE id = $1 AND user_id = $2)`
		for _, statement := range []string{
			"UPDATE access_tokens SET revoked = TRUE WHERE id IN (SELECT id FROM access_tokens WHERE NOT revoked AND (id IN " + signIn +
				" OR grant_id <> '' AND grant_id IN " + signIn + ")" + s.inOrder("id") + ")",
			"DELETE FROM authorization_codes WHERE grant_id <> '' AND grant_id IN " + signIn,
			"DELETE FROM grants WHERE id IN " + signIn,
		} {
			if _, err := s.exec(ctx, statement, tokenID, userID); err != nil {
				return err
			}
		}
		return nil
	})
}

// GrantsOf implements token.Store.
func (s Tokens) GrantsOf(ctx context.Context, userID string, now time.Time) ([]token.Grant, error) {
	return all(ctx, s.DB, scanGrant, "SELECT "+grantColumns+` FROM grants
		WHERE user_id = $1 AND expires_at > $2 ORDER BY signed_in_at, id LIMIT 1000`, userID, millis(now))
}

// CredentialOfExternal implements token.Store.
func (s Tokens) CredentialOfExternal(ctx context.Context, issuer, login string) (signin.Credential, error) {
	c, found, err := one(ctx, s.DB, scanCredential, credentials+` WHERE u.id =
		(SELECT e.user_id FROM external_logins e WHERE e.issuer_folded = $1 AND e.login_folded = $2)`, issuer, login)
	if err == nil && !found {
		err = session.ErrNotFound
	}
	return c, err
}

// AddExternalVisit implements signin.Store.
func (s Tokens) AddExternalVisit(ctx context.Context, v signin.ExternalVisit) error {
	_, err := s.exec(ctx, "INSERT INTO external_visits (handle, ticket, returns_to, ended, expires_at) VALUES ($1, $2, $3, FALSE, $4)",
		v.Handle[:], v.Ticket, v.ReturnsTo, millis(v.ExpiresAt))
	return err
}

// ExternalVisit implements signin.Store.
func (s Tokens) ExternalVisit(ctx context.Context, handle [sha256.Size]byte, now time.Time) (signin.ExternalVisit, error) {
	v, found, err := one(ctx, s.DB, func(r row) (signin.ExternalVisit, error) {
		v := signin.ExternalVisit{Handle: handle}
		err := r.Scan(&v.Ticket, &v.ReturnsTo, (*timeField)(&v.ExpiresAt))
		return v, err
	}, "SELECT ticket, returns_to, expires_at FROM external_visits WHERE handle = $1 AND NOT ended AND expires_at > $2", handle[:], millis(now))
	if err == nil && !found {
		err = session.ErrNotFound
	}
	return v, err
}

// EndExternalVisit implements signin.Store.
func (s Tokens) EndExternalVisit(ctx context.Context, handle [sha256.Size]byte, now time.Time) (bool, error) {
	n, err := s.exec(ctx, "UPDATE external_visits SET ended = TRUE WHERE handle = $1 AND NOT ended AND expires_at > $2", handle[:], millis(now))
	return n == 1, err
}
