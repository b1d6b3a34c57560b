// SPDX-License-Identifier: Apache-2.0

package field

// P256T is a number modulo 2^255 + 1073, the prime of
// the test set of GOST R 34.10-2001. Limbs are little-endian. A value is
// represented by any number below 2^256 that is congruent to it.
type P256T [4]uint64

const p256tC = 1073

var p256tPrime = [4]uint64{
	0x0000000000000431, 0x0000000000000000, 0x0000000000000000, 0x8000000000000000,
}

// Add sets z = x + y.
func (z *P256T) Add(x, y *P256T) { addPlus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256tC) }

// Sub sets z = x - y.
func (z *P256T) Sub(x, y *P256T) { subPlus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256tC) }

// Mul sets z = x * y.
func (z *P256T) Mul(x, y *P256T) { mulPlus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256tC) }

// Sqr sets z = x * x.
func (z *P256T) Sqr(x *P256T) { sqrPlus4((*[4]uint64)(z), (*[4]uint64)(x), p256tC) }

// Triple sets z = 3x.
func (z *P256T) Triple(x *P256T) { z.MulSmall(x, 3) }

// MulSmall sets z = x * k for k below 2^32.
func (z *P256T) MulSmall(x *P256T, k uint64) { smallPlus4((*[4]uint64)(z), (*[4]uint64)(x), k, p256tC) }

// SetSmall sets z = k.
func (z *P256T) SetSmall(k uint64) { *z = P256T{k} }

// Invert sets z = 1/x, or z = 0 if x is 0.
func (z *P256T) Invert(x *P256T) {
	l := x.Limbs()
	invert(z[:], l[:], p256tPrime[:], 0xDBF951D5883B2B2F) // -1/p mod 2^64
}

// SetBytes sets z to 32 little-endian bytes and reports whether they are below
// the prime. If not, z is undefined.
func (z *P256T) SetBytes(b []byte) bool {
	setBytes(z[:], b)
	return less(z[:], p256tPrime[:]) == 1
}

// Limbs returns z as the number below the prime.
func (z *P256T) Limbs() (l [4]uint64) {
	reducePlus4(&l, (*[4]uint64)(z), p256tC)
	return l
}

// IsZero returns 1 if z is 0, else 0.
func (z *P256T) IsZero() uint64 {
	l := z.Limbs()
	return 1 - nonZero(l[:])
}

// PutBytes writes z as 32 little-endian bytes.
func (z *P256T) PutBytes(b []byte) {
	l := z.Limbs()
	putBytes(b, l[:])
}

// Assign sets z = x if mask is all ones and does not change z if mask is 0.
func (z *P256T) Assign(x *P256T, mask uint64) {
	z[0] ^= mask & (z[0] ^ x[0])
	z[1] ^= mask & (z[1] ^ x[1])
	z[2] ^= mask & (z[2] ^ x[2])
	z[3] ^= mask & (z[3] ^ x[3])
}

// Lookup sets z = table[index], reading every entry.
func (z *P256T) Lookup(table []P256T, index uint64) { lookupP256T(z, table, index) }
