// SPDX-License-Identifier: Apache-2.0

// Package kdf implements KDF_TREE_GOSTR3411_2012_256, the function of RFC 7836
// (R 50.1.113-2016) that derives several keys from one.
//
// Begin with Tree. The package does not derive keys from passwords: PBKDF2 of the standard
// library does, with the hash functions of package streebog.
package kdf

import (
	"crypto/hmac"
	"fmt"

	"tamga/gost/streebog"
)

// BlockSize is the length in bytes of the keys that one step derives.
const BlockSize = streebog.Size256

// Tree is KDF_TREE_GOSTR3411_2012_256 (RFC 7836, section 4.5). It returns length bytes
// derived from key, a secret of any length. The step with number i, from 1, is HMAC with
// Streebog-256 over i in r bytes, label, a zero byte, seed and the number of bits of the
// result. Both numbers are big-endian, and the last one has no zero bytes in front.
//
// r must be 1 to 4. length must be a positive multiple of BlockSize, of at most 2^(8r)-1
// blocks and less than 2^28 bytes. Other values are errors. The caller wipes the result.
func Tree(key, label, seed []byte, r, length int) ([]byte, error) {
	if r < 1 || r > 4 {
		return nil, fmt.Errorf("kdf: a counter of %d bytes, want 1 to 4", r)
	}
	steps := length / BlockSize
	if length <= 0 || length%BlockSize != 0 || uint64(steps) >= 1<<(8*r) || length >= 1<<28 {
		return nil, fmt.Errorf("kdf: %d bytes to derive, want a positive multiple of %d that a counter of %d bytes reaches", length, BlockSize, r)
	}
	bits := number(uint32(length) * 8)
	for bits[0] == 0 {
		bits = bits[1:]
	}
	mac := hmac.New(streebog.New256, key)
	out := make([]byte, 0, length)
	for i := 1; i <= steps; i++ {
		mac.Reset()
		mac.Write(number(uint32(i))[4-r:])
		mac.Write(label)
		mac.Write([]byte{0})
		mac.Write(seed)
		mac.Write(bits)
		out = mac.Sum(out)
	}
	return out, nil
}

// number returns the four big-endian bytes of n.
func number(n uint32) []byte { return []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }
