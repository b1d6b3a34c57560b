// SPDX-License-Identifier: Apache-2.0

package field

// P256B is a number modulo 2^255 + 3225, the prime of
// CryptoPro B and TC26 256 C. Limbs are little-endian. A value is
// represented by any number below 2^256 that is congruent to it.
type P256B [4]uint64

const p256bC = 3225

var p256bPrime = [4]uint64{
	0x0000000000000C99, 0x0000000000000000, 0x0000000000000000, 0x8000000000000000,
}

// Add sets z = x + y.
func (z *P256B) Add(x, y *P256B) { addPlus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256bC) }

// Sub sets z = x - y.
func (z *P256B) Sub(x, y *P256B) { subPlus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256bC) }

// Mul sets z = x * y.
func (z *P256B) Mul(x, y *P256B) { mulP256B(z, x, y) }

// Sqr sets z = x * x.
func (z *P256B) Sqr(x *P256B) { sqrP256B(z, x) }

// Triple sets z = 3x.
func (z *P256B) Triple(x *P256B) { z.MulSmall(x, 3) }

// MulSmall sets z = x * k for k below 2^32.
func (z *P256B) MulSmall(x *P256B, k uint64) { smallPlus4((*[4]uint64)(z), (*[4]uint64)(x), k, p256bC) }

// SetSmall sets z = k.
func (z *P256B) SetSmall(k uint64) { *z = P256B{k} }

// Invert sets z = 1/x, or z = 0 if x is 0.
func (z *P256B) Invert(x *P256B) {
	l := x.Limbs()
	invert(z[:], l[:], p256bPrime[:], 0xBD667AB8A3347857) // -1/p mod 2^64
}

// SetBytes sets z to 32 little-endian bytes and reports whether they are below
// the prime. If not, z is undefined.
func (z *P256B) SetBytes(b []byte) bool {
	setBytes(z[:], b)
	return less(z[:], p256bPrime[:]) == 1
}

// Limbs returns z as the number below the prime.
func (z *P256B) Limbs() (l [4]uint64) {
	reducePlus4(&l, (*[4]uint64)(z), p256bC)
	return l
}

// IsZero returns 1 if z is 0, else 0.
func (z *P256B) IsZero() uint64 {
	l := z.Limbs()
	return 1 - nonZero(l[:])
}

// PutBytes writes z as 32 little-endian bytes.
func (z *P256B) PutBytes(b []byte) {
	l := z.Limbs()
	putBytes(b, l[:])
}

// Assign sets z = x if mask is all ones and does not change z if mask is 0.
func (z *P256B) Assign(x *P256B, mask uint64) {
	z[0] ^= mask & (z[0] ^ x[0])
	z[1] ^= mask & (z[1] ^ x[1])
	z[2] ^= mask & (z[2] ^ x[2])
	z[3] ^= mask & (z[3] ^ x[3])
}

// Lookup sets z = table[index], reading every entry.
func (z *P256B) Lookup(table []P256B, index uint64) { lookupP256B(z, table, index) }
