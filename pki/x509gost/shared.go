// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// ParseShared is ParseCertificate for certificates that are read often, such as those that
// messages carry. It returns the same Certificate again for the same bytes, with the digests
// that it has computed by then. It does not keep der.
func ParseShared(der []byte) (*Certificate, error) {
	if len(der) > sharedSize {
		return ParseCertificate(der)
	}
	id := maphash.Bytes(sharedSeed, der)
	if c := shared.get(id); c != nil && bytes.Equal(c.Raw, der) {
		return c, nil
	}
	c, err := ParseCertificate(bytes.Clone(der))
	if err == nil {
		shared.put(id, c)
	}
	return c, err
}

// Bounds of the memory of ParseShared: it keeps up to two times sharedCertificates.
const (
	sharedCertificates = 256
	sharedSize         = 4 << 10 // bytes of one
)

var (
	shared     certificateSet
	sharedSeed = maphash.MakeSeed()
)

// certificateSet is a bounded set of certificates by a hash of their bytes, of which one for a
// hash is kept. What is used again stays in it.
type certificateSet struct {
	mu         sync.Mutex
	young, old map[uint64]*Certificate
}

// get returns the certificate with a hash, or nil.
func (s *certificateSet) get(id uint64) *Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.young[id]
	if c == nil {
		if c = s.old[id]; c != nil {
			s.add(id, c)
		}
	}
	return c
}

func (s *certificateSet) put(id uint64, c *Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(id, c)
}

// add is put with mu held. A full young generation becomes the old one.
func (s *certificateSet) add(id uint64, c *Certificate) {
	if s.young == nil || len(s.young) >= sharedCertificates {
		s.young, s.old = map[uint64]*Certificate{}, s.young
	}
	s.young[id] = c
}
