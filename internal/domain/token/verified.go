package token

import (
	"crypto/sha256"
	"sync"
)

// verifiedSize bounds the tokens remembered, a few hundred octets each.
const verifiedSize = 16 << 10

// verified remembers the claims of tokens whose signature held: a client sends
// the same token with every request, and checking its signature costs more than
// making a signature does. What is remembered is a fact about the octets of the
// token under the keys of this process and never changes; its time and its
// record are judged at every use. The zero value is ready.
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
	for other := range v.claims { // any one makes room: the order of a map is random
		if len(v.claims) < verifiedSize {
			break
		}
		delete(v.claims, other)
	}
	v.claims[token] = c
}
