// SPDX-License-Identifier: Apache-2.0

package streebog

import (
	"encoding/binary"
	"math/bits"
)

// blocksGeneric is the portable implementation of blocks. It ignores a part of a
// block at the end of p.
func blocksGeneric(s *state, p []byte) {
	var m, k, x [8]uint64
	for len(p) >= BlockSize {
		b := (*[BlockSize]byte)(p)
		p = p[BlockSize:]
		for i := range m {
			m[i] = binary.LittleEndian.Uint64(b[8*i:])
		}

		lps(&k, &s.h, &s.n)
		lps(&x, &k, &m)
		for i := range 11 {
			lps(&k, &k, &roundKeys[i])
			lps(&x, &x, &k)
		}
		lps(&k, &k, &roundKeys[11])
		for i := range m {
			s.h[i] ^= x[i] ^ k[i] ^ m[i]
		}

		addWord(&s.n, 8*BlockSize)
		var carry uint64
		for i := range m {
			s.sigma[i], carry = bits.Add64(s.sigma[i], m[i], carry)
		}
	}
}

// addWord adds v to the 512-bit number n.
func addWord(n *[8]uint64, v uint64) {
	for i := range n {
		n[i], v = bits.Add64(n[i], v, 0)
	}
}

// lps sets r to LPS(x^y). r may be x or y. Word i of the result takes byte i of every
// word of the input, because P is a transposition. Each input word has its own table.
func lps(r, x, y *[8]uint64) {
	t := lpsTable
	x0 := x[0] ^ y[0]
	x1 := x[1] ^ y[1]
	x2 := x[2] ^ y[2]
	x3 := x[3] ^ y[3]
	x4 := x[4] ^ y[4]
	x5 := x[5] ^ y[5]
	x6 := x[6] ^ y[6]
	x7 := x[7] ^ y[7]
	r[0] = t[0][byte(x0)] ^ t[1][byte(x1)] ^ t[2][byte(x2)] ^ t[3][byte(x3)] ^
		t[4][byte(x4)] ^ t[5][byte(x5)] ^ t[6][byte(x6)] ^ t[7][byte(x7)]
	r[1] = t[0][byte(x0>>8)] ^ t[1][byte(x1>>8)] ^ t[2][byte(x2>>8)] ^ t[3][byte(x3>>8)] ^
		t[4][byte(x4>>8)] ^ t[5][byte(x5>>8)] ^ t[6][byte(x6>>8)] ^ t[7][byte(x7>>8)]
	r[2] = t[0][byte(x0>>16)] ^ t[1][byte(x1>>16)] ^ t[2][byte(x2>>16)] ^ t[3][byte(x3>>16)] ^
		t[4][byte(x4>>16)] ^ t[5][byte(x5>>16)] ^ t[6][byte(x6>>16)] ^ t[7][byte(x7>>16)]
	r[3] = t[0][byte(x0>>24)] ^ t[1][byte(x1>>24)] ^ t[2][byte(x2>>24)] ^ t[3][byte(x3>>24)] ^
		t[4][byte(x4>>24)] ^ t[5][byte(x5>>24)] ^ t[6][byte(x6>>24)] ^ t[7][byte(x7>>24)]
	r[4] = t[0][byte(x0>>32)] ^ t[1][byte(x1>>32)] ^ t[2][byte(x2>>32)] ^ t[3][byte(x3>>32)] ^
		t[4][byte(x4>>32)] ^ t[5][byte(x5>>32)] ^ t[6][byte(x6>>32)] ^ t[7][byte(x7>>32)]
	r[5] = t[0][byte(x0>>40)] ^ t[1][byte(x1>>40)] ^ t[2][byte(x2>>40)] ^ t[3][byte(x3>>40)] ^
		t[4][byte(x4>>40)] ^ t[5][byte(x5>>40)] ^ t[6][byte(x6>>40)] ^ t[7][byte(x7>>40)]
	r[6] = t[0][byte(x0>>48)] ^ t[1][byte(x1>>48)] ^ t[2][byte(x2>>48)] ^ t[3][byte(x3>>48)] ^
		t[4][byte(x4>>48)] ^ t[5][byte(x5>>48)] ^ t[6][byte(x6>>48)] ^ t[7][byte(x7>>48)]
	r[7] = t[0][byte(x0>>56)] ^ t[1][byte(x1>>56)] ^ t[2][byte(x2>>56)] ^ t[3][byte(x3>>56)] ^
		t[4][byte(x4>>56)] ^ t[5][byte(x5>>56)] ^ t[6][byte(x6>>56)] ^ t[7][byte(x7>>56)]
}
