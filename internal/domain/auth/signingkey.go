package auth

import (
	"context"
	"time"
)

// SealedKey is a token signing key as it is stored: opaque bytes that the room
// vault sealed.
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
}

// EnsureSigningKey returns the stored keys, newest first, after adding one from
// generate when there is none. Processes that start together agree on one key;
// generate may run without its key being kept.
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
