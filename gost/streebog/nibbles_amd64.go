// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package streebog

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"golang.org/x/sys/cpu"
)

// halved reports whether the processor supports the instructions of nibbles_amd64.s,
// which run if it lacks those of block_amd64.s. Only tests change it.
var halved = cpu.X86.HasAVX2

// nibbleConstants returns the argument v of compressNibbles.
var nibbleConstants = sync.OnceValue(makeNibbles)

// compressNibbles does what compress does, on processors without AVX-512.
//
//go:noescape
func compressNibbles(s *state, p *byte, n int, v *nibbles)

// A half is a table of 16 bytes, once for each half of a register, or the content of a
// register.
type half [32]byte

// nibbles holds the constants of nibbles_amd64.s. It is what VPSHUFB, a look-up of 16
// bytes by 4 bits, needs to compute S and L.
//
// S splits into functions of nibbles (Biryukov, Perrin, Udovenko: Reverse-Engineering
// the S-Box of Streebog, Kuznyechik and STRIBOBr1, EUROCRYPT 2016). With the left and
// the right nibble l, r of alpha(x) and products in the field of 16 elements:
//
//	l' = nu0(l) if r = 0, else nu1(l/r)
//	r' = sigma(r*phi(l'))
//	S(x) = omega(l', r')
//
// alpha and omega are linear. The assembly keeps all numbers under alpha. Quotients and
// products are sums of logarithms, modulo 15. l' and r' stay logarithms: an index is
// that of l' = nu1(x) or r' = sigma(x). 15, or any number with the top bit set, means
// x = 0. VPSHUFB gives 0 for an index with the top bit set, so the tables
// contain their values for an index less that for x = 0: for linear, a difference in L,
// which keys make up for, and for phi, a difference of logarithms, which right makes up
// for.
type nibbles struct {
	mask    half // 15
	plus15  half // 15
	less15  half // -15
	left    half // of l: log l + log phi(nu1(0)), zeroLeft if l = 0
	right   half // of r: log r + log phi(nu1(0)), zeroRight if r = 0
	alone   half // of l: the index of nu0(l), less zeroRight
	phi     half // of the index of l': log phi(l') - log phi(nu1(0))
	start   half // 0 for the key, and alpha(x) with S(x) = 0 for the state
	alpha   [2]half
	inverse [2]half // of alpha

	// linear[1][0][q][i] has what the left nibble in register q contributes to byte i
	// of a word of L (from the lower half) or to byte i+4 (from the upper half).
	// linear[0][0][q][i] has the same for i+4 and i. linear[_][1] is for the right
	// nibble.
	linear [2][2][4][4]half

	keys [13][4]half // the constants C_1 to C_12, and one that has no effect
}

// The parts of S in the decomposition, matrices by rows from the top bit.
var (
	alphaRows = [8]byte{0x08, 0x41, 0x43, 0xef, 0x8a, 0x44, 0x1a, 0x20}
	omegaRows = [8]byte{0x0a, 0x04, 0x20, 0x9a, 0x08, 0x44, 0x82, 0x01}
	nu0       = [16]byte{2, 5, 3, 11, 6, 9, 14, 10, 0, 4, 15, 1, 8, 13, 12, 7}
	nu1       = [16]byte{7, 6, 12, 9, 0, 15, 8, 1, 4, 5, 11, 14, 13, 2, 3, 10}
	phi       = [16]byte{11, 2, 11, 8, 12, 4, 1, 12, 6, 3, 5, 8, 14, 3, 6, 11}
	sigma     = [16]byte{12, 13, 0, 4, 8, 11, 10, 14, 3, 9, 5, 2, 15, 1, 6, 7}
)

// The logarithms of 0. The assembly takes the signed minimum of two numbers as the index
// of l'. One is the quotient: log l - log r, plus 15 if that is negative as a byte. The
// other is alone + log r.
//
//	            quotient      alone + log r
//	l, r != 0   0 to 14       0x40 to 0x5d
//	only l = 0  0xe2 to 0xf0  0x40 to 0x5d
//	only r = 0  0x40 to 0x4e  0 to 15
//	both        0x30          0 to 15
//
// zeroRight keeps its top bit if a logarithm is added, and then less 15.
const (
	zeroLeft  = 0xf0
	zeroRight = 0xc0
)

func makeNibbles() *nibbles {
	v := new(nibbles)
	var logarithm, exponential [16]byte
	for i, x := 0, byte(1); i < 15; i++ {
		exponential[i], logarithm[x] = x, byte(i)
		if x <<= 1; x > 15 {
			x ^= 0b11001 // x^4 + x^3 + 1
		}
	}
	var alpha, inverse [256]byte
	var preimage byte // of 0 under S
	for x := range alpha {
		alpha[x] = product(&alphaRows, byte(x))
		inverse[alpha[x]] = byte(x)
		if pi[x] == 0 {
			preimage = alpha[x]
		}
	}

	var index [16]byte // of l' = nu1(x), by l'
	index[nu1[0]] = 15
	for i := range byte(15) {
		index[nu1[exponential[i]]] = i
	}
	offset := logarithm[phi[nu1[0]]]

	for t := range v.mask {
		x := byte(t % 16)
		v.mask[t] = 15
		v.plus15[t] = 15
		v.less15[t] = 256 - 15
		v.left[t] = (logarithm[x] + offset) % 15
		v.right[t] = v.left[t]
		if x == 0 {
			v.left[t], v.right[t] = zeroLeft, zeroRight
		}
		v.alone[t] = index[nu0[x]] - zeroRight
		if x < 15 {
			v.phi[t] = (logarithm[phi[nu1[exponential[x]]]] + 15 - offset) % 15
		}
		if t%2 == 1 {
			v.start[t] = preimage
		}
		v.alpha[0][t], v.alpha[1][t] = alpha[x], alpha[x<<4]
		v.inverse[0][t], v.inverse[1][t] = inverse[x], inverse[x<<4]
	}

	for t := range v.mask {
		x, upper := t%16, t/16
		if x == 15 {
			continue
		}
		l := product(&omegaRows, (nu1[exponential[x]]^nu1[0])<<4)
		r := product(&omegaRows, sigma[exponential[x]]^sigma[0])
		for direct := range 2 {
			for q := range 4 {
				for i := range 4 {
					column := i + 4*(upper^direct^1)
					v.linear[direct][0][q][i][t] = alpha[byte(linear(2*q+upper, l)>>(8*column))]
					v.linear[direct][1][q][i][t] = alpha[byte(linear(2*q+upper, r)>>(8*column))]
				}
			}
		}
	}

	// What the tables of L leave out, in every word.
	var left uint64
	for j := range 8 {
		left ^= linear(j, product(&omegaRows, nu1[0]<<4|sigma[0]))
	}
	for n := range roundKeys {
		for i, word := range roundKeys[n] {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], word^left)
			// Before the transposition, byte column j is in register j%4 and half j/4.
			for j := range b {
				v.keys[n][j%4][16*(j/4)+2*i] = alpha[b[j]]
				v.keys[n][j%4][16*(j/4)+2*i+1] = alpha[b[j]]
			}
		}
	}
	return v
}

// linear returns what the value x of byte j, after S and P, contributes to L.
func linear(j int, x byte) (word uint64) {
	for k := range 8 {
		if x>>k&1 == 1 {
			word ^= a[63-(8*j+k)]
		}
	}
	return word
}

// product multiplies x by a matrix of bits.
func product(rows *[8]byte, x byte) (y byte) {
	for i, row := range rows {
		y |= byte(bits.OnesCount8(row&x)&1) << (7 - i)
	}
	return y
}
