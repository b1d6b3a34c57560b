// SPDX-License-Identifier: Apache-2.0

// Package session ends what sign-ins leave behind: access tokens, refresh tokens,
// authorization codes and counts of failed attempts.
//
// Packages that change a user, a contact or a device end the user's sessions in the same
// transaction. Each package declares what it needs as a small interface of its own. A
// [Service] satisfies all these interfaces. Begin with [New] and [Service.EndAll].
//
// The package does not sign users in: see the package signin. It does not make or check
// tokens: see the package token.
package session

import (
	"context"
	"errors"
)

// MethodDevice is the name of the sign-in method that works with mobile devices.
const MethodDevice = "mydss"

// ErrNotFound is the error of a store for a missing record. The packages signin, token,
// oath and session share it.
var ErrNotFound = errors.New("session: record not found")

// Store ends sessions. Every call joins the transaction of ctx.
type Store interface {
	// RevokeTokens ends tokens, codes and grants of a user, and tokens that the user
	// obtained for others.
	RevokeTokens(ctx context.Context, userID string) error
	// EndUserAttempt deletes the count of a user's wrong passwords.
	EndUserAttempt(ctx context.Context, userID string) error
	// ForgiveOathTokenOf deletes the count of wrong codes of the user's token and
	// unlocks the token.
	ForgiveOathTokenOf(ctx context.Context, userID string) error
	// HasMethod reports whether the user has a sign-in method.
	HasMethod(ctx context.Context, userID, method string) (bool, error)
}

// Service ends sessions. Its methods join the transaction of ctx.
type Service struct{ store Store }

// New returns a service over a store.
func New(store Store) *Service { return &Service{store} }

// EndAll revokes every token, code and grant of a user.
func (s *Service) EndAll(ctx context.Context, userID string) error {
	return s.store.RevokeTokens(ctx, userID)
}

// Forgive deletes the counts of a user's wrong passwords and of the wrong codes of the
// user's token. Both automatic locks end.
func (s *Service) Forgive(ctx context.Context, userID string) error {
	if err := s.store.EndUserAttempt(ctx, userID); err != nil {
		return err
	}
	return s.store.ForgiveOathTokenOf(ctx, userID)
}

// MethodChanged ends the user's sessions if the user has the method. Call it when the
// method loses or changes what it works with: a contact, a token, the last device. The
// method itself stays, so losing a phone does not remove the second step. The user
// cannot do the step and gets no token until the method is ready again.
func (s *Service) MethodChanged(ctx context.Context, userID, method string) error {
	has, err := s.store.HasMethod(ctx, userID, method)
	if err != nil || !has {
		return err
	}
	return s.store.RevokeTokens(ctx, userID)
}

// ContactGone is [Service.MethodChanged] for a contact that received the codes of a
// method.
func (s *Service) ContactGone(ctx context.Context, userID, method string) error {
	return s.MethodChanged(ctx, userID, method)
}

// DevicesGone is [Service.MethodChanged] for a user whose last device was removed.
func (s *Service) DevicesGone(ctx context.Context, userID string) error {
	return s.MethodChanged(ctx, userID, MethodDevice)
}

// MethodUsesContact reports whether the user has the method of a contact.
func (s *Service) MethodUsesContact(ctx context.Context, userID, method string) (bool, error) {
	return s.store.HasMethod(ctx, userID, method)
}
