// SPDX-License-Identifier: Apache-2.0

package field

// P512B is a number modulo 2^511 + 111, the prime of
// TC26 512 B. Limbs are little-endian. A value is
// represented by any number below 2^512 that is congruent to it.
type P512B [8]uint64

const p512bC = 111

var p512bPrime = [8]uint64{
	0x000000000000006F, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
	0x0000000000000000, 0x0000000000000000, 0x0000000000000000, 0x8000000000000000,
}

// Add sets z = x + y.
func (z *P512B) Add(x, y *P512B) { addPlus8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), p512bC) }

// Sub sets z = x - y.
func (z *P512B) Sub(x, y *P512B) { subPlus8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), p512bC) }

// Mul sets z = x * y.
func (z *P512B) Mul(x, y *P512B) { mulP512B(z, x, y) }

// Sqr sets z = x * x.
func (z *P512B) Sqr(x *P512B) { sqrP512B(z, x) }

// Triple sets z = 3x.
func (z *P512B) Triple(x *P512B) { z.MulSmall(x, 3) }

// MulSmall sets z = x * k for k below 2^32.
func (z *P512B) MulSmall(x *P512B, k uint64) { smallPlus8((*[8]uint64)(z), (*[8]uint64)(x), k, p512bC) }

// SetSmall sets z = k.
func (z *P512B) SetSmall(k uint64) { *z = P512B{k} }

// Invert sets z = 1/x, or z = 0 if x is 0.
func (z *P512B) Invert(x *P512B) {
	l := x.Limbs()
	invert(z[:], l[:], p512bPrime[:], 0x4E6A171024E6A171) // -1/p mod 2^64
}

// SetBytes sets z to 64 little-endian bytes and reports whether they are below
// the prime. If not, z is undefined.
func (z *P512B) SetBytes(b []byte) bool {
	setBytes(z[:], b)
	return less(z[:], p512bPrime[:]) == 1
}

// Limbs returns z as the number below the prime.
func (z *P512B) Limbs() (l [8]uint64) {
	reducePlus8(&l, (*[8]uint64)(z), p512bC)
	return l
}

// IsZero returns 1 if z is 0, else 0.
func (z *P512B) IsZero() uint64 {
	l := z.Limbs()
	return 1 - nonZero(l[:])
}

// PutBytes writes z as 64 little-endian bytes.
func (z *P512B) PutBytes(b []byte) {
	l := z.Limbs()
	putBytes(b, l[:])
}

// Assign sets z = x if mask is all ones and does not change z if mask is 0.
func (z *P512B) Assign(x *P512B, mask uint64) {
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
func (z *P512B) Lookup(table []P512B, index uint64) { lookupP512B(z, table, index) }
