// SPDX-License-Identifier: Apache-2.0

package token

import (
	"crypto/sha256"
	"sync"
)

// verifiedSize is the largest number of tokens in the cache. Each takes a few hundred
// bytes.
const verifiedSize = 16 << 10

// verified caches the claims of tokens with a valid signature. A client sends the same
// token with every request, and verifying a signature costs more than making one. A cached
// entry depends only on the bytes of the token and on the keys of the set, so it never
// becomes wrong. The expiry and the record of the token are checked at every use. The zero
// value is ready.
type verified struct {
	mu     sync.RWMutex
	claims map[[sha256.Size]byte]claims
}

func (v *verified) find(token [sha256.Size]byte) (claims, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	c, found := v.claims[token]
	return c, found
}

func (v *verified) keep(token [sha256.Size]byte, c claims) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.claims == nil {
		v.claims = map[[sha256.Size]byte]claims{}
	}
	for other := range v.claims { // delete random entries: the order of a map is random
		if len(v.claims) < verifiedSize {
			break
		}
		delete(v.claims, other)
	}
	v.claims[token] = c
}
