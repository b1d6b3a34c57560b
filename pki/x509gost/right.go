// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// That a signature is right never changes. So the signatures of certificates and revocation lists
// that were right are remembered by the digest of everything they depend on: the certificates of
// issuers and their lists are checked with each message of their users. Dates, status and usage are
// no part of it.
var rightSignatures digestSet

// signatureID returns the digest of a signature with all that decides whether it is right.
func signatureID(oid OID, parameters, tbs, value, issuerKey []byte) (id [sha256.Size]byte) {
	h := sha256.New()
	var length [8]byte
	for _, part := range [][]byte{[]byte(oid.String()), parameters, tbs, value, issuerKey} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	h.Sum(id[:0])
	return id
}

// generation is how many digests a digestSet keeps at least: 32 KiB. It keeps up to two of them.
const generation = 1024

// digestSet is a bounded set. What is used again stays in it.
type digestSet struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]struct{}
}

// has reports whether id is in the set.
func (s *digestSet) has(id [sha256.Size]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.young[id]; ok {
		return true
	}
	_, ok := s.old[id]
	if ok {
		s.put(id)
	}
	return ok
}

func (s *digestSet) add(id [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(id)
}

// put is add with mu held. A full young generation becomes the old one.
func (s *digestSet) put(id [sha256.Size]byte) {
	if s.young == nil || len(s.young) >= generation {
		s.young, s.old = map[[sha256.Size]byte]struct{}{}, s.young
	}
	s.young[id] = struct{}{}
}

// checkSignedOnce is checkSigned for a signature that is checked often. It computes a right
// signature once.
func checkSignedOnce(oid OID, parameters, tbs, value []byte, issuer *Certificate) error {
	scheme, err := schemeOf(oid, parameters)
	if err != nil {
		return err
	}
	if len(issuer.RawSPKI) == 0 { // not a parsed certificate
		return checkSigned(scheme, tbs, value, issuer.key())
	}
	id := signatureID(oid, parameters, tbs, value, issuer.RawSPKI)
	if rightSignatures.has(id) {
		return nil
	}
	if err = checkSigned(scheme, tbs, value, issuer.key()); err == nil {
		rightSignatures.add(id)
	}
	return err
}
