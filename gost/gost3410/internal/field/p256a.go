// SPDX-License-Identifier: Apache-2.0

package field

// P256A is a number modulo 2^256 - 617, the prime of
// CryptoPro A, XchA, TC26 256 A and 256 B. Limbs are little-endian. A value is
// represented by any number below 2^256 that is congruent to it.
type P256A [4]uint64

const p256aC = 617

var p256aPrime = [4]uint64{
	0xFFFFFFFFFFFFFD97, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF,
}

// Add sets z = x + y.
func (z *P256A) Add(x, y *P256A) {
	addMinus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256aC)
}

// Sub sets z = x - y.
func (z *P256A) Sub(x, y *P256A) {
	subMinus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256aC)
}

// Mul sets z = x * y.
func (z *P256A) Mul(x, y *P256A) { mulP256A(z, x, y) }

// Sqr sets z = x * x.
func (z *P256A) Sqr(x *P256A) { sqrP256A(z, x) }

// Triple sets z = 3x.
func (z *P256A) Triple(x *P256A) { z.MulSmall(x, 3) }

// MulSmall sets z = x * k for k below 2^32.
func (z *P256A) MulSmall(x *P256A, k uint64) {
	smallMinus4((*[4]uint64)(z), (*[4]uint64)(x), k, p256aC)
}

// SetSmall sets z = k.
func (z *P256A) SetSmall(k uint64) { *z = P256A{k} }

// Invert sets z = 1/x, or z = 0 if x is 0.
func (z *P256A) Invert(x *P256A) {
	l := x.Limbs()
	invert(z[:], l[:], p256aPrime[:], 0x46F3234475D5ADD9) // -1/p mod 2^64
}

// SetBytes sets z to 32 little-endian bytes and reports whether they are below
// the prime. If not, z is undefined.
func (z *P256A) SetBytes(b []byte) bool {
	setBytes(z[:], b)
	return less(z[:], p256aPrime[:]) == 1
}

// Limbs returns z as the number below the prime.
func (z *P256A) Limbs() (l [4]uint64) {
	reduceMinus4(&l, (*[4]uint64)(z), p256aC)
	return l
}

// IsZero returns 1 if z is 0, else 0.
func (z *P256A) IsZero() uint64 {
	l := z.Limbs()
	return 1 - nonZero(l[:])
}

// PutBytes writes z as 32 little-endian bytes.
func (z *P256A) PutBytes(b []byte) {
	l := z.Limbs()
	putBytes(b, l[:])
}

// Assign sets z = x if mask is all ones and does not change z if mask is 0.
func (z *P256A) Assign(x *P256A, mask uint64) {
	z[0] ^= mask & (z[0] ^ x[0])
	z[1] ^= mask & (z[1] ^ x[1])
	z[2] ^= mask & (z[2] ^ x[2])
	z[3] ^= mask & (z[3] ^ x[3])
}

// Lookup sets z = table[index], reading every entry.
func (z *P256A) Lookup(table []P256A, index uint64) { lookupP256A(z, table, index) }
