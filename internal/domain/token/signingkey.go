// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"time"
)

// SealedKey is a token signing key as it is stored. The package vault sealed its bytes.
type SealedKey struct {
	ID        string // kid
	Sealed    []byte
	CreatedAt time.Time
}

// KeyStore keeps token signing keys.
type KeyStore interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error
	SigningKeys(ctx context.Context) ([]SealedKey, error) // newest first
	AddSigningKey(ctx context.Context, k SealedKey) error
	DeleteSigningKey(ctx context.Context, id string) error
}

// EnsureSigningKey returns the stored keys, the newest first. If there are none, it adds
// one from generate. Processes that start together agree on one key, so a key from generate
// may be dropped.
func EnsureSigningKey(ctx context.Context, store KeyStore, generate func() (SealedKey, error)) (keys []SealedKey, err error) {
	err = store.Atomic(ctx, func(ctx context.Context) error {
		keys, err = store.SigningKeys(ctx)
		if err != nil || len(keys) > 0 {
			return err
		}
		k, err := generate()
		if err != nil {
			return err
		}
		keys = []SealedKey{k}
		return store.AddSigningKey(ctx, k)
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// Overlap says when keys replace each other. A new key is published for Overlap before it
// signs, so that clients with a copy of the keys get it in time. An old key is accepted for
// Overlap and the life of a token after its successor began to sign.
type Overlap struct {
	Overlap   time.Duration
	TokenLife time.Duration
}

// From returns when a key begins to sign; see Key.From.
func (o Overlap) From(k SealedKey) time.Time { return k.CreatedAt.Add(o.Overlap) }

// RotateSigningKey adds a key from generate, which begins to sign after the overlap. atOnce
// is for a key that became known to others. It deletes every other key in the same
// transaction: the new key signs as soon as processes know it, and all earlier tokens
// become invalid. generate may run more than once.
func RotateSigningKey(ctx context.Context, store KeyStore, atOnce bool, generate func() (SealedKey, error)) (made SealedKey, err error) {
	err = store.Atomic(ctx, func(ctx context.Context) error {
		old, err := store.SigningKeys(ctx)
		if err != nil {
			return err
		}
		if made, err = generate(); err != nil {
			return err
		}
		if atOnce {
			for _, k := range old {
				if err := store.DeleteSigningKey(ctx, k.ID); err != nil {
					return err
				}
			}
		}
		return store.AddSigningKey(ctx, made)
	})
	return made, err
}

// RetireSigningKeys deletes keys that cannot have signed a token that is still valid.
func RetireSigningKeys(ctx context.Context, store KeyStore, o Overlap, now time.Time) error {
	return store.Atomic(ctx, func(ctx context.Context) error {
		keys, err := store.SigningKeys(ctx)
		if err != nil {
			return err
		}
		for i := 1; i < len(keys); i++ { // the newest is first, so keys[i-1] is the successor
			if !o.From(keys[i-1]).Add(o.Overlap + o.TokenLife).After(now) {
				if err := store.DeleteSigningKey(ctx, keys[i].ID); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
