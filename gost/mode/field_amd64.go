//go:build !purego

package mode

import "golang.org/x/sys/cpu"

// vectorized says that the processor has what field_amd64.s uses.
var vectorized = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VPCLMULQDQ

// addProducts adds to z the products of the blocks of a and b, which have one length.
func (z *element) addProducts(a, b []byte) {
	if !vectorized || len(a) == 0 {
		z.addProductsGeneric(a, b)
		return
	}
	var sum [4]uint64
	sumProducts(&sum, &a[0], &b[0], len(a)/blockSize)
	z.addReduced(&sum)
}

// addReduced adds to z a polynomial of degree 254 or less, the lowest word first,
// modulo the polynomial of the field.
func (z *element) addReduced(p *[4]uint64) {
	// x^128 is x^7+x^2+x+1; what the upper half moves beyond x^128 is below x^7 and
	// counts once more.
	lo, hi := p[2], p[3]
	above := hi>>63 ^ hi>>62 ^ hi>>57
	z.lo ^= p[0] ^ lo ^ lo<<1 ^ lo<<2 ^ lo<<7 ^ above ^ above<<1 ^ above<<2 ^ above<<7
	z.hi ^= p[1] ^ hi ^ (hi<<1 | lo>>63) ^ (hi<<2 | lo>>62) ^ (hi<<7 | lo>>57)
}

// sumProducts adds up the products of n blocks of a and b without reduction. In
// field_amd64.s.
//
//go:noescape
func sumProducts(sum *[4]uint64, a, b *byte, n int)
