// SPDX-License-Identifier: Apache-2.0

package field

// P256C is a number modulo a prime without a special form, the prime of
// CryptoPro C, XchB and TC26 256 D. Limbs are little-endian. A value is
// kept in Montgomery form, below the prime.
type P256C [4]uint64

// p256cN is -1/p mod 2^64, p256cSquare is 2^512 mod p.
const p256cN = 0xDF6E6C2C727C176D

var (
	p256cPrime = [4]uint64{
		0x7998F7B9022D759B, 0xCF846E86789051D3, 0xAB1EC85E6B41C8AA, 0x9B9F605F5A858107,
	}
	p256cSquare = [4]uint64{
		0x409973B4C427FCEA, 0x1017BB39C2D346C5, 0x186304212849C07B, 0x807A394EDE097652,
	}
)

// Add sets z = x + y.
func (z *P256C) Add(x, y *P256C) {
	addMont4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), &p256cPrime)
}

// Sub sets z = x - y.
func (z *P256C) Sub(x, y *P256C) {
	subMont4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), &p256cPrime)
}

// Mul sets z = x * y.
func (z *P256C) Mul(x, y *P256C) { mulP256C(z, x, y) }

// Sqr sets z = x * x.
func (z *P256C) Sqr(x *P256C) { sqrP256C(z, x) }

// Triple sets z = 3x.
func (z *P256C) Triple(x *P256C) {
	var t P256C
	t.Add(x, x)
	z.Add(&t, x)
}

// MulSmall sets z = x * k for k below 2^32.
func (z *P256C) MulSmall(x *P256C, k uint64) {
	var s P256C
	s.SetSmall(k)
	z.Mul(x, &s)
}

// SetSmall sets z = k.
func (z *P256C) SetSmall(k uint64) {
	*z = P256C{k}
	mulMont4((*[4]uint64)(z), (*[4]uint64)(z), &p256cSquare, &p256cPrime, p256cN)
}

// Invert sets z = 1/x, or z = 0 if x is 0.
func (z *P256C) Invert(x *P256C) {
	// The inverse of x*2^256 is 1/x / 2^256, so two factors of 2^256 are missing.
	invert(z[:], x[:], p256cPrime[:], p256cN)
	mulMont4((*[4]uint64)(z), (*[4]uint64)(z), &p256cSquare, &p256cPrime, p256cN)
	mulMont4((*[4]uint64)(z), (*[4]uint64)(z), &p256cSquare, &p256cPrime, p256cN)
}

// SetBytes sets z to 32 little-endian bytes and reports whether they are below
// the prime. If not, z is undefined.
func (z *P256C) SetBytes(b []byte) bool {
	setBytes(z[:], b)
	ok := less(z[:], p256cPrime[:]) == 1
	mulMont4((*[4]uint64)(z), (*[4]uint64)(z), &p256cSquare, &p256cPrime, p256cN)
	return ok
}

// Limbs returns z as the number below the prime.
func (z *P256C) Limbs() (l [4]uint64) {
	mulMont4(&l, (*[4]uint64)(z), &[4]uint64{1}, &p256cPrime, p256cN)
	return l
}

// IsZero returns 1 if z is 0, else 0.
func (z *P256C) IsZero() uint64 { return 1 - nonZero(z[:]) }

// PutBytes writes z as 32 little-endian bytes.
func (z *P256C) PutBytes(b []byte) {
	l := z.Limbs()
	putBytes(b, l[:])
}

// Assign sets z = x if mask is all ones and does not change z if mask is 0.
func (z *P256C) Assign(x *P256C, mask uint64) {
	z[0] ^= mask & (z[0] ^ x[0])
	z[1] ^= mask & (z[1] ^ x[1])
	z[2] ^= mask & (z[2] ^ x[2])
	z[3] ^= mask & (z[3] ^ x[3])
}

// Lookup sets z = table[index], reading every entry.
func (z *P256C) Lookup(table []P256C, index uint64) { lookupP256C(z, table, index) }
