// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"crypto/cipher"
	"crypto/subtle"
)

// OMAC returns the message authentication code of GOST R 34.13-2015, section 5.6. It
// has the length of a block of the cipher, 8 or 16 bytes.
func OMAC(b cipher.Block, message []byte) []byte {
	size := b.BlockSize()
	polynomial := byte(0x1b)
	if size == 16 {
		polynomial = 0x87
	}
	key := make([]byte, size)
	b.Encrypt(key, key)
	double(key, polynomial)
	last := make([]byte, size)
	state := make([]byte, size)
	for len(message) > size {
		subtle.XORBytes(state, state, message[:size])
		b.Encrypt(state, state)
		message = message[size:]
	}
	if n := copy(last, message); n < size {
		last[n] = 0x80
		double(key, polynomial)
	}
	subtle.XORBytes(state, state, last)
	subtle.XORBytes(state, state, key)
	b.Encrypt(state, state)
	return state
}

// double multiplies v by x in the field of the block, in constant time.
func double(v []byte, polynomial byte) {
	carry := byte(0)
	for i := len(v) - 1; i >= 0; i-- {
		next := v[i] >> 7
		v[i] = v[i]<<1 | carry
		carry = next
	}
	v[len(v)-1] ^= polynomial & -carry
}
