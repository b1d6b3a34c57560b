// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
)

// TestSignatureID checks that every part counts, and where a part ends.
func TestSignatureID(t *testing.T) {
	a, b := OID{1, 2, 3}, OID{1, 2, 4}
	seen := map[[sha256.Size]byte]int{}
	for i, id := range [][sha256.Size]byte{
		signatureID(a, []byte("p"), []byte("tbs"), []byte("v"), []byte("key")),
		signatureID(b, []byte("p"), []byte("tbs"), []byte("v"), []byte("key")),
		signatureID(a, []byte("q"), []byte("tbs"), []byte("v"), []byte("key")),
		signatureID(a, []byte("p"), []byte("tbS"), []byte("v"), []byte("key")),
		signatureID(a, []byte("p"), []byte("tbs"), []byte("w"), []byte("key")),
		signatureID(a, []byte("p"), []byte("tbs"), []byte("v"), []byte("keY")),
		signatureID(a, []byte("p"), []byte("tbsv"), nil, []byte("key")),
		signatureID(a, []byte("pt"), []byte("bs"), []byte("v"), []byte("key")),
		signatureID(a, []byte("p"), []byte("tbs"), []byte("vk"), []byte("ey")),
	} {
		if other, ok := seen[id]; ok {
			t.Errorf("cases %d and %d have the same digest", other, i)
		}
		seen[id] = i
	}
}

// TestDigestSet checks that the set is bounded and keeps what is used again.
func TestDigestSet(t *testing.T) {
	var s digestSet
	id := func(i int) (id [sha256.Size]byte) {
		binary.BigEndian.PutUint64(id[:], uint64(i))
		return id
	}
	if s.has(id(0)) {
		t.Fatal("an empty set has a digest")
	}
	s.add(id(0))
	s.add(id(1))
	for i := 2; i < 10*generation; i++ {
		s.add(id(i))
		if !s.has(id(0)) || !s.has(id(i)) {
			t.Fatalf("after %d digests one in use is missing", i)
		}
		if n := len(s.young) + len(s.old); n > 2*generation {
			t.Fatalf("the set has %d digests", n)
		}
	}
	if s.has(id(1)) {
		t.Error("a digest that was not used is still there")
	}
}
