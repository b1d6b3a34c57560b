// SPDX-License-Identifier: Apache-2.0

package gost28147

import (
	"math/bits"
	"sync"
)

// SBox is a substitution parameter set: eight substitutions of four bits. The sets
// are the variables of this package. Other packages cannot make new sets.
type SBox struct {
	name string
	// rows[i] substitutes bits 4i to 4i+3 of a word.
	rows [8][16]byte
	// anf holds the algebraic normal form of all 32 output bits, twice side by side.
	// Bit b of anf[m] is 1 if the product of the input bits that m selects, from the
	// nibble that contains b, is a term of output bit b.
	anf   [16]uint64
	table func() *[4][256]uint32
	wide  wide // the tables of the assembly
}

func newSBox(name string, rows [8][16]byte) *SBox {
	s := &SBox{name: name, rows: rows}
	for i, row := range rows {
		for m := range row {
			// The coefficient of product m is the sum of the values at all
			// arguments that have only bits of m (Möbius transform).
			var c byte
			for x, y := range row {
				if x&m == x {
					c ^= y
				}
			}
			s.anf[m] |= uint64(c) << (4 * i) * (1<<32 + 1)
		}
	}
	s.wide.set(&rows)
	s.table = sync.OnceValue(func() *[4][256]uint32 {
		t := new([4][256]uint32)
		for j := range t {
			for x := range t[j] {
				y := uint32(rows[2*j][x&15]) | uint32(rows[2*j+1][x>>4])<<4
				t[j][x] = bits.RotateLeft32(y<<(8*j), 11)
			}
		}
		return t
	})
	return s
}

// Name returns the name of the set's object identifier, such as
// "id-Gost28147-89-CryptoPro-A-ParamSet".
func (s *SBox) Name() string { return s.name }

// PublicTable returns tables that join substitution and rotation. The round function
// of a sum x (RFC 5830, section 5) is
//
//	t[0][x&255] ^ t[1][x>>8&255] ^ t[2][x>>16&255] ^ t[3][x>>24]
//
// An attacker who shares the processor's cache can learn which entries were read. So
// use the tables for public data only, as the hash GOST R 34.11-94 does. NewCipher
// does not use them. The caller must not change the tables.
func (s *SBox) PublicTable() *[4][256]uint32 { return s.table() }

// substitute applies the set to all nibbles of x, one word or two, in constant time.
// It evaluates the normal form of all bits side by side.
func substitute[W uint32 | uint64](s *SBox, x W) W {
	ones := ^W(0) / 15 // 0x111...
	// b0 to b3 are bits 0 to 3 of every nibble, each copied to all bits of its nibble.
	b0 := (x & ones) * 15
	b1 := (x >> 1 & ones) * 15
	b2 := (x >> 2 & ones) * 15
	b3 := (x >> 3 & ones) * 15
	b01, b23 := b0&b1, b2&b3
	c := &s.anf
	return W(c[0]) ^ b0&W(c[1]) ^ b1&W(c[2]) ^ b01&W(c[3]) ^
		b2&(W(c[4])^b0&W(c[5])^b1&W(c[6])^b01&W(c[7])) ^
		b3&(W(c[8])^b0&W(c[9])^b1&W(c[10])^b01&W(c[11])) ^
		b23&(W(c[12])^b0&W(c[13])^b1&W(c[14])^b01&W(c[15]))
}
