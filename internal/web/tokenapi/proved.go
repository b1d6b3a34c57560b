// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"tamga/internal/domain/signin"
)

// maxProved is the largest number of first steps that are remembered. Each takes a few
// hundred bytes.
const maxProved = 4096

// proved remembers which passwords were correct for a challenge, so that clients who poll
// with HTTP Basic cost one derivation for each challenge. It keeps a digest under a key of
// this process and never the password. An entry opens nothing by itself: the record of the
// challenge and the issue of the token check the present state of the user. The zero value
// is ready.
type proved struct {
	mu    sync.Mutex
	key   []byte
	first map[[sha256.Size]byte]signin.FirstStep
}

func (p *proved) digest(parts ...string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, p.key)
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		mac.Write([]byte(part))
	}
	mac.Sum(sum[:0])
	return sum
}

func (p *proved) find(ref, client, login, password string) (signin.FirstStep, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ref == "" || p.first == nil {
		return signin.FirstStep{}, false
	}
	f, found := p.first[p.digest(ref, client, login, password)]
	return f, found
}

func (p *proved) keep(ref, client, login, password string, f signin.FirstStep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == nil {
		p.key, p.first = make([]byte, sha256.Size), map[[sha256.Size]byte]signin.FirstStep{}
		rand.Read(p.key) // never fails
	}
	for other := range p.first { // delete random entries: the order of a map is random
		if len(p.first) < maxProved {
			break
		}
		delete(p.first, other)
	}
	p.first[p.digest(ref, client, login, password)] = f
}
