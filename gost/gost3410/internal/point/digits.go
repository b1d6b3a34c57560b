// SPDX-License-Identifier: Apache-2.0

package point

import (
	"math/bits"

	"tamga/gost/gost3410/internal/field"
)

// The widths in bits of the windows of the constant-time multiplications. Digits are
// odd and between -2^bits and 2^bits, so tables have 2^(bits-1) entries. A wider
// window for the base point would save additions, but all its entries must be read.
const (
	baseBits  = 6
	pointBits = 5
)

// windows returns the number of windows for a scalar of the given length in bytes.
func windows(size, width int) int { return (8*size + width - 1) / width }

// maxDigits is the maximum number of digits: one for each bit and one for the carry.
const maxDigits = 8*64 + 1

// recode writes k < q, or k+q if k is even, as odd digits, lowest first. It runs in
// constant time. No digit is zero, so every step of a multiplication has an addition.
// The highest digit is positive.
//
// An odd number n below 2^l is the sum of 2^i or -2^i over all i below l. The sign is
// plus where (n-1)/2 + 2^(l-1) has a bit. A digit is the sum over a window.
//
// recode does not use q-k for an even k. That would need a mask that changes the signs
// of all digits or of none. On some processors this mask was visible in the time,
// although no branch and no address depended on it.
func recode(digits []int8, k *field.Scalar, order *field.Modulus, width int) {
	q := order.Value()
	even := k[0]&1 - 1
	var half field.Scalar // (n-1)/2, because n may have one bit more than the limbs
	below, carry := bits.Add64(k[0], q[0]&even, 0)
	for i := 1; i < len(half); i++ {
		var limb uint64
		limb, carry = bits.Add64(k[i], q[i]&even, carry)
		half[i-1] = below>>1 | limb<<63
		below = limb
	}
	half[len(half)-1] = below>>1 | carry<<63
	for i := range digits {
		d := int(window(&half, i*width, width))
		if i == len(digits)-1 {
			d |= 1 << (width - 1)
		}
		digits[i] = int8(2*d - (1<<width - 1))
	}
	clear(half[:])
}

// window returns bits [from, from+width) of k. Bits beyond the limbs are zero.
func window(k *field.Scalar, from, width int) uint64 {
	i, s := from/64, from%64
	if i >= len(k) {
		return 0
	}
	w := k[i] >> s
	if s+width > 64 && i+1 < len(k) {
		w |= k[i+1] << (64 - s)
	}
	return w & (1<<width - 1)
}

// split returns the index of the magnitude of an odd digit in a table of 1, 3, 5...
// and a mask, all ones if the digit is negative.
func split(d int8) (index, negative uint64) {
	negative = uint64(int64(d) >> 63)
	return ((uint64(int64(d)) ^ negative) - negative) >> 1, negative
}

// naf writes k in the non-adjacent form of the given width, lowest digit first, and
// returns the number of digits. The digits that are not 0 are odd and below
// 2^(width-1) in magnitude, with at least width-1 zeros between two of them. It takes
// variable time and is for public values only.
func naf(digits *[maxDigits]int8, k *field.Scalar, width int) int {
	clear(digits[:])
	length := 0
	var carry uint64
	for i := 0; i < maxDigits; {
		if i < 512 && k.Bit(i) == carry || i == 512 && carry == 0 {
			i++ // the rest is even, so the digit is 0
			continue
		}
		d := int(window(k, i, width) + carry)
		carry = uint64(d >> (width - 1))
		digits[i] = int8(d - int(carry)<<width)
		length = i + 1
		i += width
	}
	return length
}

// nextCandidate adds q to x and reports whether the sum fits into the given number of
// bytes.
func nextCandidate(x *field.Scalar, order *field.Modulus, size int) bool {
	q := order.Value()
	var carry uint64
	for i := range size / 8 {
		x[i], carry = bits.Add64(x[i], q[i], carry)
	}
	return carry == 0
}
