// SPDX-License-Identifier: Apache-2.0

package field

// P512A is a number modulo 2^512 - 569, the prime of
// TC26 512 A and 512 C. Limbs are little-endian. A value is
// represented by any number below 2^512 that is congruent to it.
type P512A [8]uint64

const p512aC = 569

var p512aPrime = [8]uint64{
	0xFFFFFFFFFFFFFDC7, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF,
	0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF,
}

// Add sets z = x + y.
func (z *P512A) Add(x, y *P512A) {
	addMinus8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), p512aC)
}

// Sub sets z = x - y.
func (z *P512A) Sub(x, y *P512A) {
	subMinus8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), p512aC)
}

// Mul sets z = x * y.
func (z *P512A) Mul(x, y *P512A) { mulP512A(z, x, y) }

// Sqr sets z = x * x.
func (z *P512A) Sqr(x *P512A) { sqrP512A(z, x) }

// Triple sets z = 3x.
func (z *P512A) Triple(x *P512A) { z.MulSmall(x, 3) }

// MulSmall sets z = x * k for k below 2^32.
func (z *P512A) MulSmall(x *P512A, k uint64) {
	smallMinus8((*[8]uint64)(z), (*[8]uint64)(x), k, p512aC)
}

// SetSmall sets z = k.
func (z *P512A) SetSmall(k uint64) { *z = P512A{k} }

// Invert sets z = 1/x, or z = 0 if x is 0.
func (z *P512A) Invert(x *P512A) {
	l := x.Limbs()
	invert(z[:], l[:], p512aPrime[:], 0x58A1F7E6CE0F4C09) // -1/p mod 2^64
}

// SetBytes sets z to 64 little-endian bytes and reports whether they are below
// the prime. If not, z is undefined.
func (z *P512A) SetBytes(b []byte) bool {
	setBytes(z[:], b)
	return less(z[:], p512aPrime[:]) == 1
}

// Limbs returns z as the number below the prime.
func (z *P512A) Limbs() (l [8]uint64) {
	reduceMinus8(&l, (*[8]uint64)(z), p512aC)
	return l
}

// IsZero returns 1 if z is 0, else 0.
func (z *P512A) IsZero() uint64 {
	l := z.Limbs()
	return 1 - nonZero(l[:])
}

// PutBytes writes z as 64 little-endian bytes.
func (z *P512A) PutBytes(b []byte) {
	l := z.Limbs()
	putBytes(b, l[:])
}

// Assign sets z = x if mask is all ones and does not change z if mask is 0.
func (z *P512A) Assign(x *P512A, mask uint64) {
	z[0] ^= mask & (z[0] ^ x[0])
	z[1] ^= mask & (z[1] ^ x[1])
	z[2] ^= mask & (z[2] ^ x[2])
	z[3] ^= mask & (z[3] ^ x[3])
	z[4] ^= mask & (z[4] ^ x[4])
	z[5] ^= mask & (z[5] ^ x[5])
	z[6] ^= mask & (z[6] ^ x[6])
	z[7] ^= mask & (z[7] ^ x[7])
}

// Lookup sets z = table[index], reading every entry.
func (z *P512A) Lookup(table []P512A, index uint64) { lookupP512A(z, table, index) }
