// SPDX-License-Identifier: Apache-2.0

package mode

import "encoding/binary"

// An element of the field of 2^128 elements modulo x^128+x^7+x^2+x+1. The first bit of
// a block is the highest coefficient.
type element struct{ hi, lo uint64 }

func load(b []byte) element {
	return element{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// addProductsGeneric adds to z the products of the blocks of a and b, in constant
// time. a and b must have the same length.
func (z *element) addProductsGeneric(a, b []byte) {
	for ; len(a) > 0; a, b = a[blockSize:], b[blockSize:] {
		z.addProduct(load(a), load(b))
	}
}

// addProduct adds a*b to z in constant time.
func (z *element) addProduct(a, b element) {
	for _, word := range [2]uint64{b.lo, b.hi} {
		for range 64 {
			bit := -(word & 1)
			word >>= 1
			z.hi ^= a.hi & bit
			z.lo ^= a.lo & bit
			top := -(a.hi >> 63)
			a.hi = a.hi<<1 | a.lo>>63
			a.lo = a.lo<<1 ^ top&0x87
		}
	}
}
