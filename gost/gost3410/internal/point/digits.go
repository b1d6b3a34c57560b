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

// recode writes k < q or, where that is even, k+q as digits that are all odd, lowest
// first. It runs in constant time. No digit is zero, so no step of a multiplication is
// idle, and the highest is positive.
//
// An odd number n below 2^l is the sum of 2^i or -2^i over all i below l: the bits of
// (n-1)/2 + 2^(l-1) say where the sign is plus. A digit is the sum over a window.
//
// What does not come in is q-k, with which every sign would have to change: the mask of
// that, of all digits or of none, was to be seen in the time on processors where no
// branch and no address depended on it.
func recode(digits []int8, k *field.Scalar, order *field.Modulus, width int) {
	q := order.Value()
	even := k[0]&1 - 1
	var half field.Scalar // (n-1)/2: n itself may have a bit more than the limbs
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
