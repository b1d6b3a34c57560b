// SPDX-License-Identifier: Apache-2.0

package kuznyechik

import (
	"encoding/binary"
	"math/bits"
)

// groupSize is the length in bytes of the four blocks that planes hold.
const groupSize = 4 * BlockSize

// planes hold four blocks. Word k holds bit k of every byte. Byte t of block b has
// bit 4*slot(t)+b of every word. So a rotation of the words by a multiple of four
// moves the bytes in the same way within all blocks.
type planes [8]uint64

// slot returns the slot of a byte of a block, 0 to 15, in the order that pack makes:
// bytes of the first and of the second half of the block alternate.
func slot(place int) int { return 2*(place%8) + place/8 }

// pack sets x to four blocks.
func (x *planes) pack(group *[groupSize]byte) {
	for b := range 4 {
		x[b] = binary.LittleEndian.Uint64(group[BlockSize*b:])
		x[b+4] = binary.LittleEndian.Uint64(group[BlockSize*b+8:])
	}
	x.transpose()
}

// unpack is the inverse of pack.
func (x *planes) unpack(group *[groupSize]byte) {
	x.transpose()
	for b := range 4 {
		binary.LittleEndian.PutUint64(group[BlockSize*b:], x[b])
		binary.LittleEndian.PutUint64(group[BlockSize*b+8:], x[b+4])
	}
}

// spread sets all four blocks of x to the same block.
func (x *planes) spread(block *[BlockSize]byte) {
	var group [groupSize]byte
	for b := range 4 {
		copy(group[BlockSize*b:], block[:])
	}
	x.pack(&group)
}

// transpose exchanges bit i of byte j of word k with bit k of byte j of word i.
func (x *planes) transpose() {
	for i := 0; i < 8; i += 2 {
		exchange(&x[i], &x[i+1], 1, 0x5555555555555555)
	}
	for _, i := range [4]int{0, 1, 4, 5} {
		exchange(&x[i], &x[i+2], 2, 0x3333333333333333)
	}
	for i := range 4 {
		exchange(&x[i], &x[i+4], 4, 0x0f0f0f0f0f0f0f0f)
	}
}

// exchange swaps the bits of a under mask<<n with those of b under mask.
func exchange(a, b *uint64, n int, mask uint64) {
	t := (*a>>n ^ *b) & mask
	*a ^= t << n
	*b ^= t
}

func (x *planes) xor(y *planes) {
	for k := range x {
		x[k] ^= y[k]
	}
}

// A matrix is a linear map of a block: byte i of the result is the sum of the
// products of matrix[i][j] and byte j, in the field of RFC 7801, section 4.1.2.
type matrix [BlockSize][BlockSize]byte

// masks are a matrix in the form for planes. At the slot of a byte of the result,
// masks[m][d] has bit m of the factor for the byte d slots further on.
type masks [8][BlockSize]uint64

// multiply multiplies all blocks by a matrix. It sums the products with the bytes at
// all sixteen distances, one bit m of the factors at a time, by Horner's rule.
func (x *planes) multiply(by *masks) {
	// The planes rotated by every distance, in two halves.
	var low, high [BlockSize][4]uint64
	x0, x1, x2, x3, x4, x5, x6, x7 := x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
	for d := range BlockSize {
		low[d][0], low[d][1], low[d][2], low[d][3] = x0, x1, x2, x3
		high[d][0], high[d][1], high[d][2], high[d][3] = x4, x5, x6, x7
		x0, x1 = bits.RotateLeft64(x0, -4), bits.RotateLeft64(x1, -4)
		x2, x3 = bits.RotateLeft64(x2, -4), bits.RotateLeft64(x3, -4)
		x4, x5 = bits.RotateLeft64(x4, -4), bits.RotateLeft64(x5, -4)
		x6, x7 = bits.RotateLeft64(x6, -4), bits.RotateLeft64(x7, -4)
	}
	var s0, s1, s2, s3, s4, s5, s6, s7 uint64
	for m := 7; m >= 0; m-- {
		p0, p1, p2, p3 := sum(&by[m], &low)
		p4, p5, p6, p7 := sum(&by[m], &high)
		// times x modulo x^8+x^7+x^6+x+1, plus the products
		s0, s1, s2, s3, s4, s5, s6, s7 = s7^p0, s0^s7^p1, s1^p2, s2^p3, s3^p4, s4^p5, s5^s7^p6, s6^s7^p7
	}
	x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7] = s0, s1, s2, s3, s4, s5, s6, s7
}

// sum adds up four planes under the masks. It handles four planes and not eight,
// because more sums do not fit into registers.
func sum(mask *[BlockSize]uint64, y *[BlockSize][4]uint64) (s0, s1, s2, s3 uint64) {
	for d := 0; d < BlockSize; d += 2 {
		m := mask[d]
		s0 ^= y[d][0] & m
		s1 ^= y[d][1] & m
		s2 ^= y[d][2] & m
		s3 ^= y[d][3] & m
		m = mask[d+1]
		s0 ^= y[d+1][0] & m
		s1 ^= y[d+1][1] & m
		s2 ^= y[d+1][2] & m
		s3 ^= y[d+1][3] & m
	}
	return s0, s1, s2, s3
}

// The tables of the cipher: L and its inverse, and the constants C_1 to C_32 of RFC
// 7801, section 4.3. None depends on a key.
var (
	forwards, backwards = makeMasks()
	scheduleConstants   = makeScheduleConstants()
)

// lfsr are the factors of the map l (RFC 7801, section 4.1.2), beginning with that of
// the first byte of a block. Without the last factor, 1, they are a palindrome.
var lfsr = [BlockSize]byte{148, 32, 133, 16, 194, 192, 1, 251, 1, 192, 194, 16, 133, 32, 148, 1}

func makeMasks() (forwards, backwards *masks) {
	var l, inverse matrix
	for j := range BlockSize {
		var x, y [BlockSize]byte
		x[j], y[j] = 1, 1
		for range 16 {
			// R drops the last byte and puts the sum in front. Its inverse moves
			// the first byte to the end, and the sum there is the dropped byte.
			sum := dot(&x)
			copy(x[1:], x[:15])
			x[0] = sum

			first := y[0]
			copy(y[:15], y[1:])
			y[15] = first
			y[15] = dot(&y)
		}
		for i := range BlockSize {
			l[i][j], inverse[i][j] = x[i], y[i]
		}
	}
	return l.masks(), inverse.masks()
}

func (a *matrix) masks() *masks {
	t := new(masks)
	for i := range a {
		for j, factor := range a[i] {
			d := (slot(j) - slot(i) + BlockSize) % BlockSize
			for m := range t {
				t[m][d] |= uint64(factor>>m&1) * 0xf << (4 * slot(i))
			}
		}
	}
	return t
}

// dot returns l(x), the sum of the bytes of x times the factors of lfsr.
func dot(x *[BlockSize]byte) (sum byte) {
	for i, c := range lfsr {
		sum ^= mul(c, x[i])
	}
	return sum
}

// mul multiplies in the field of RFC 7801, section 4.1.2. It takes variable time, so
// it is for constants only.
func mul(a, b byte) (p byte) {
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			p ^= a
		}
		high := a >> 7
		a = a<<1 ^ high*0xc3
	}
	return p
}

func makeScheduleConstants() (c [32]planes) {
	for i := range c {
		c[i].spread(&[BlockSize]byte{15: byte(i + 1)})
		c[i].multiply(forwards)
	}
	return c
}
