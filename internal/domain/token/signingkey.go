package token

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
	DeleteSigningKey(ctx context.Context, id string) error
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

// Overlap is how keys follow each other. A new key is published for Overlap before it
// signs, so that whoever keeps a copy of our keys has it in time; an old one stays for
// Overlap and the life of a token after its successor began to sign.
type Overlap struct {
	Overlap   time.Duration
	TokenLife time.Duration
}

// From is when a key begins to sign, as Key has it.
func (o Overlap) From(k SealedKey) time.Time { return k.CreatedAt.Add(o.Overlap) }

// RotateSigningKey adds a key from generate, which begins to sign after the overlap.
// With atOnce every other key is taken away in the same transaction, for a key that
// has become known to somebody: the new one signs as soon as processes know of it, and
// what the others have signed is good no more. generate may run more than once.
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

// RetireSigningKeys deletes keys that nothing alive can have been signed with.
func RetireSigningKeys(ctx context.Context, store KeyStore, o Overlap, now time.Time) error {
	return store.Atomic(ctx, func(ctx context.Context) error {
		keys, err := store.SigningKeys(ctx)
		if err != nil {
			return err
		}
		for i := 1; i < len(keys); i++ { // newest first: the one before is the successor
			if !o.From(keys[i-1]).Add(o.Overlap + o.TokenLife).After(now) {
				if err := store.DeleteSigningKey(ctx, keys[i].ID); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
