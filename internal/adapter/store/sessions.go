// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"tamga/internal/domain/lock"
	"tamga/internal/domain/session"
)

var _ session.Store = Tokens{}

// RevokeTokens implements session.Store.
func (s Tokens) RevokeTokens(ctx context.Context, userID string) error {
	return s.locked(ctx, lock.User(userID), func(ctx context.Context) error {
		for _, statement := range []string{
			// Tokens that operators obtained for each other belong to two users, so the
			// rows are locked in order.
			"UPDATE access_tokens SET revoked = TRUE WHERE id IN (SELECT id FROM access_tokens WHERE revoked = FALSE AND (user_id = $1 OR actor_id = $1 AND actor_id <> '')" + s.inOrder("id") + ")",
			"DELETE FROM authorization_codes WHERE user_id = $1",
			"DELETE FROM grants WHERE user_id = $1",
		} {
			if _, err := s.exec(ctx, statement, userID); err != nil {
				return err
			}
		}
		return nil
	})
}

// EndUserAttempt implements session.Store.
func (s Tokens) EndUserAttempt(ctx context.Context, userID string) error {
	if err := s.EndAttempt(ctx, userID, false); err != nil {
		return err
	}
	return s.EndAttempt(ctx, userID, true)
}

// ForgiveOathTokenOf implements session.Store.
func (s Tokens) ForgiveOathTokenOf(ctx context.Context, userID string) error {
	_, err := s.exec(ctx, "UPDATE oath_tokens SET failures = 0, locked_until = 0 WHERE user_id = $1", userID)
	return err
}

// HasMethod implements session.Store.
func (s Tokens) HasMethod(ctx context.Context, userID, method string) (bool, error) {
	_, found, err := one(ctx, s.DB, scalar[int64], "SELECT 1 FROM user_methods WHERE user_id = $1 AND method = $2", userID, method)
	return found, err
}
