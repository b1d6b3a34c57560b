// SPDX-License-Identifier: Apache-2.0

package field

import (
	"encoding/binary"
	"math/bits"
)

// nonZero returns 1 if any limb is not zero, else 0.
func nonZero(x []uint64) uint64 {
	var v uint64
	for _, w := range x {
		v |= w
	}
	return (v | -v) >> 63
}

// equal returns all ones if x and y, below 2^63, are equal, else 0.
func equal(x, y uint64) uint64 {
	return uint64(int64((x^y)-1) >> 63)
}

// less returns 1 if x < y, else 0; both have the same number of limbs.
func less(x, y []uint64) uint64 {
	var w uint64
	for i := range x {
		_, w = bits.Sub64(x[i], y[i], w)
	}
	return w
}

// assign sets z = x if mask is all ones and does not change z if mask is 0.
func assign(z, x []uint64, mask uint64) {
	for i := range z {
		z[i] ^= mask & (z[i] ^ x[i])
	}
}

// subIf sets z = x - m if mask is all ones and z = x if mask is 0. It returns the
// borrow.
func subIf(z, x, m []uint64, mask uint64) uint64 {
	var w uint64
	for i := range z {
		z[i], w = bits.Sub64(x[i], m[i]&mask, w)
	}
	return w
}

// addIf sets z = x + m if mask is all ones and z = x if mask is 0. It returns the
// carry.
func addIf(z, x, m []uint64, mask uint64) uint64 {
	var c uint64
	for i := range z {
		z[i], c = bits.Add64(x[i], m[i]&mask, c)
	}
	return c
}

// setBytes reads limbs from little-endian bytes, eight for each limb.
func setBytes(z []uint64, b []byte) {
	for i := range z {
		z[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
}

// putBytes writes limbs as little-endian bytes, eight for each limb.
func putBytes(b []byte, x []uint64) {
	for i, w := range x {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
}
