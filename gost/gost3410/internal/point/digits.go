package point

import (
	"math/bits"

	"tamga/gost/gost3410/internal/field"
)

// Windows of the constant-time multiplications, in bits. Their digits are odd and lie
// between -2^bits and 2^bits, so tables have 2^(bits-1) entries. A wider window
// for the base point saves additions but has more entries to read in full.
const (
	baseBits  = 6
	pointBits = 5
)

// windows returns how many windows hold any scalar of the given octets.
func windows(octets, width int) int { return (8*octets + width - 1) / width }

// maxDigits bounds the digits of all recodings: one a bit and one for the carry.
const maxDigits = 8*64 + 1

// recode writes k or q-k, whichever is odd, as digits that are all odd, lowest
// first, and returns the mask that says it was q-k. It runs in constant time. No
// digit is zero, so no step of a multiplication is idle.
//
// An odd number n below 2^l is the sum of 2^i or -2^i over all i below l: the bits of
// (n-1)/2 + 2^(l-1) say where the sign is plus. A digit is the sum over a window.
func recode(digits []int8, k *field.Scalar, order *field.Modulus, width int) (negated uint64) {
	q := order.Value()
	var n field.Scalar
	var borrow uint64
	for i := range n { // not modulo q: for 0 it must be q, which is odd
		n[i], borrow = bits.Sub64(q[i], k[i], borrow)
	}
	odd := -(k[0] & 1)
	n.Assign(k, odd)
	for i := range digits {
		// Bit 0 is dropped by beginning one bit further up.
		d := int(window(&n, i*width+1, width))
		if i == len(digits)-1 {
			d |= 1 << (width - 1)
		}
		digits[i] = int8(2*d - (1<<width - 1))
	}
	clear(n[:])
	return ^odd
}

// window returns bits [from, from+width) of k; bits beyond the limbs are zero.
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

// split returns the place of an odd digit's magnitude in a table of 1, 3, 5... and
// the mask of its sign.
func split(d int8) (index, negative uint64) {
	negative = uint64(int64(d) >> 63)
	return ((uint64(int64(d)) ^ negative) - negative) >> 1, negative
}

// naf writes k in the non-adjacent form of the given width, lowest digit first,
// and returns the number of digits: odd digits below 2^(width-1) in magnitude,
// at least width-1 zeros between two of them. Variable time, for public values.
func naf(digits *[maxDigits]int8, k *field.Scalar, width int) int {
	clear(digits[:])
	length := 0
	var carry uint64
	for i := 0; i < maxDigits; {
		if i < 512 && k.Bit(i) == carry || i == 512 && carry == 0 {
			i++ // an even remainder: digit 0
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

// nextCandidate adds q to x and reports whether the sum still fits the octets.
func nextCandidate(x *field.Scalar, order *field.Modulus, octets int) bool {
	q := order.Value()
	var carry uint64
	for i := range octets / 8 {
		x[i], carry = bits.Add64(x[i], q[i], carry)
	}
	return carry == 0
}
