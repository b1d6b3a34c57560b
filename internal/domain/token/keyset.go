// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
)

// Key is a key that signs tokens.
type Key struct {
	ID     string        // kid, never used twice
	Signer crypto.Signer // of a P-256 key
	From   time.Time     // when the key begins to sign; it is published and accepted before
}

// PublicKey is a published key. Verifiers of our tokens find it by its ID.
type PublicKey struct {
	ID   string // kid
	X, Y string // coordinates on P-256, 32 bytes each, Base64URL
}

// keySet holds the keys of one moment. It never changes.
type keySet struct {
	list     []Key
	signing  string                 // ID of the key that signs
	signers  map[string]jose.Signer // by the typ of what they sign
	public   map[string]*ecdsa.PublicKey
	verified verified // the tokens that these keys verified
}

var errUnknownKey = errors.New("token: signed by an unknown key")

// newKeySet makes a set of keys, given the newest first. The newest key whose time has come
// signs. If there is none, the oldest key signs. All keys are accepted.
func newKeySet(list []Key, now time.Time) (*keySet, error) {
	if len(list) == 0 {
		return nil, errors.New("token: signing keys: want at least one")
	}
	k := &keySet{list: list, public: make(map[string]*ecdsa.PublicKey, len(list))}
	for _, key := range list {
		public, ok := key.Signer.Public().(*ecdsa.PublicKey)
		if !ok || public.Curve != elliptic.P256() {
			return nil, fmt.Errorf("token: signing key %q: want a P-256 key", key.ID)
		}
		if key.ID == "" || k.public[key.ID] != nil {
			return nil, fmt.Errorf("token: signing key %q: want an identifier of its own", key.ID)
		}
		k.public[key.ID] = public
	}
	signing := list[len(list)-1]
	if i := slices.IndexFunc(list, func(key Key) bool { return !key.From.After(now) }); i >= 0 {
		signing = list[i]
	}
	k.signing = signing.ID
	k.signers = map[string]jose.Signer{}
	for _, typ := range append([]string{idTokenType, scopeType}, tokenTypes...) {
		var err error
		k.signers[typ], err = jose.NewSigner(
			jose.SigningKey{Algorithm: jose.ES256, Key: cryptosigner.Opaque(signing.Signer)},
			(&jose.SignerOptions{}).WithType(jose.ContentType(typ)).WithHeader("kid", signing.ID))
		if err != nil {
			return nil, fmt.Errorf("token: signing key %q: %w", signing.ID, err)
		}
	}
	return k, nil
}

// sameAs reports whether two sets accept and sign with the same keys.
func (k *keySet) sameAs(other *keySet) bool {
	return k.signing == other.signing && slices.EqualFunc(k.list, other.list, func(a, b Key) bool { return a.ID == b.ID })
}

// tokens signs and verifies tokens with the present keys.
type tokens struct {
	keys atomic.Pointer[keySet]
	load func(ctx context.Context) ([]Key, error) // nil: the keys never change
	now  func() time.Time

	mu     sync.Mutex
	loaded time.Time // when load was last called for an unknown key
}

// renewPause is the shortest time between two searches for an unknown key. Untrusted
// callers choose the kid of the tokens that they send.
const renewPause = 100 * time.Millisecond

func newTokens(keys []Key, load func(ctx context.Context) ([]Key, error), now func() time.Time) (*tokens, error) {
	t := &tokens{load: load, now: now}
	at := time.Time{}
	if now != nil {
		at = now()
	}
	k, err := newKeySet(keys, at)
	if err != nil {
		return nil, err
	}
	t.keys.Store(k)
	return t, nil
}

// reload loads the present keys.
func (t *tokens) reload(ctx context.Context) error {
	if t.load == nil {
		return nil
	}
	list, err := t.load(ctx)
	if err != nil {
		return err
	}
	k, err := newKeySet(list, t.now())
	if err != nil {
		return err
	}
	if !k.sameAs(t.keys.Load()) {
		t.keys.Store(k)
	}
	return nil
}

// renew loads keys that another process made. had is the set without the wanted key.
func (t *tokens) renew(ctx context.Context, had *keySet) (*keySet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.keys.Load(); k != had { // another call has loaded them
		return k, nil
	}
	now := t.now()
	if !t.loaded.IsZero() && now.Sub(t.loaded) < renewPause {
		return nil, errUnknownKey
	}
	t.loaded = now
	if err := t.reload(ctx); err != nil {
		return nil, err
	}
	return t.keys.Load(), nil
}

// ReloadKeys loads the token keys from the store. The server calls it every minute. So a
// new key begins to sign when its time has come, and a deleted key is not accepted any
// more.
func (s *Service) ReloadKeys(ctx context.Context) error { return s.tokens.reload(ctx) }

// PublicKeys returns the keys that verify tokens of this issuer, the newest first.
func (s *Service) PublicKeys() []PublicKey {
	var list []PublicKey
	keys := s.tokens.keys.Load()
	for _, key := range keys.list {
		// Encoded by SEC 1, 2.3.3: 04, then the coordinates.
		point, err := keys.public[key.ID].Bytes()
		if err != nil { // cannot happen: newKeySet accepts keys on P-256 only
			continue
		}
		b64 := base64.RawURLEncoding.EncodeToString
		list = append(list, PublicKey{ID: key.ID, X: b64(point[1:33]), Y: b64(point[33:65])})
	}
	return list
}
