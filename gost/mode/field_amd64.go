// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package mode

import "golang.org/x/sys/cpu"

// vectorized reports whether the processor supports the instructions of field_amd64.s.
// Only tests change it.
var vectorized = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VPCLMULQDQ

// addProducts adds to z the products of the blocks of a and b, which must have the
// same length.
func (z *element) addProducts(a, b []byte) {
	if !vectorized || len(a) == 0 {
		z.addProductsGeneric(a, b)
		return
	}
	var sum [4]uint64
	sumProducts(&sum, &a[0], &b[0], len(a)/blockSize)
	z.addReduced(&sum)
}

// addReduced adds to z a polynomial of degree 254 or less, modulo the polynomial of
// the field. p has the lowest word first.
func (z *element) addReduced(p *[4]uint64) {
	// x^128 is x^7+x^2+x+1. The upper half times this has terms beyond x^128 again:
	// above, which is below x^7 and is reduced in the same way.
	lo, hi := p[2], p[3]
	above := hi>>63 ^ hi>>62 ^ hi>>57
	z.lo ^= p[0] ^ lo ^ lo<<1 ^ lo<<2 ^ lo<<7 ^ above ^ above<<1 ^ above<<2 ^ above<<7
	z.hi ^= p[1] ^ hi ^ (hi<<1 | lo>>63) ^ (hi<<2 | lo>>62) ^ (hi<<7 | lo>>57)
}

// sumProducts sets sum to the sum of the products of n blocks of a and b, without
// reduction.
//
//go:noescape
func sumProducts(sum *[4]uint64, a, b *byte, n int)
