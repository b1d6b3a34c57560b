// SPDX-License-Identifier: Apache-2.0

package field

// P512T is a number modulo a prime without a special form, the prime of
// the test set of GOST R 34.10-2012 with 512 bits. Limbs are little-endian. A value is
// kept in Montgomery form, below the prime.
type P512T [8]uint64

// p512tN is -1/p mod 2^64, p512tSquare is 2^1024 mod p.
const p512tN = 0xD6412FF7C29B8645

var (
	p512tPrime = [8]uint64{
		0x1664BBF528BE6373, 0x35B8336FAC224DD8, 0x0458047E80E4546D, 0xF1D852741AF4704A,
		0xD4EB7C09B5D2D15D, 0x922B14B2FFB90F04, 0x550D267B6B2FEE80, 0x4531ACD1FE0023C7,
	}
	p512tSquare = [8]uint64{
		0x001C10BC2D005B65, 0x4B907A71E647EE63, 0xE417D58D200C2AA0, 0x0815B9EB1E7DD300,
		0xCA0BC8AF77C8690A, 0xFCD983CFB7C663D9, 0x01FDE9CA99DE0852, 0x1D887DCD9CD19C10,
	}
)

// Add sets z = x + y.
func (z *P512T) Add(x, y *P512T) {
	addMont8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), &p512tPrime)
}

// Sub sets z = x - y.
func (z *P512T) Sub(x, y *P512T) {
	subMont8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), &p512tPrime)
}

// Mul sets z = x * y.
func (z *P512T) Mul(x, y *P512T) {
	mulMont8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), &p512tPrime, p512tN)
}

// Sqr sets z = x * x.
func (z *P512T) Sqr(x *P512T) { sqrMont8((*[8]uint64)(z), (*[8]uint64)(x), &p512tPrime, p512tN) }

// Triple sets z = 3x.
func (z *P512T) Triple(x *P512T) {
	var t P512T
	t.Add(x, x)
	z.Add(&t, x)
}

// MulSmall sets z = x * k for k below 2^32.
func (z *P512T) MulSmall(x *P512T, k uint64) {
	var s P512T
	s.SetSmall(k)
	z.Mul(x, &s)
}

// SetSmall sets z = k.
func (z *P512T) SetSmall(k uint64) {
	*z = P512T{k}
	mulMont8((*[8]uint64)(z), (*[8]uint64)(z), &p512tSquare, &p512tPrime, p512tN)
}

// Invert sets z = 1/x, or z = 0 if x is 0.
func (z *P512T) Invert(x *P512T) {
	// The inverse of x*2^512 is 1/x / 2^512, so two factors of 2^512 are missing.
	invert(z[:], x[:], p512tPrime[:], p512tN)
	mulMont8((*[8]uint64)(z), (*[8]uint64)(z), &p512tSquare, &p512tPrime, p512tN)
	mulMont8((*[8]uint64)(z), (*[8]uint64)(z), &p512tSquare, &p512tPrime, p512tN)
}

// SetBytes sets z to 64 little-endian bytes and reports whether they are below
// the prime. If not, z is undefined.
func (z *P512T) SetBytes(b []byte) bool {
	setBytes(z[:], b)
	ok := less(z[:], p512tPrime[:]) == 1
	mulMont8((*[8]uint64)(z), (*[8]uint64)(z), &p512tSquare, &p512tPrime, p512tN)
	return ok
}

// Limbs returns z as the number below the prime.
func (z *P512T) Limbs() (l [8]uint64) {
	mulMont8(&l, (*[8]uint64)(z), &[8]uint64{1}, &p512tPrime, p512tN)
	return l
}

// IsZero returns 1 if z is 0, else 0.
func (z *P512T) IsZero() uint64 { return 1 - nonZero(z[:]) }

// PutBytes writes z as 64 little-endian bytes.
func (z *P512T) PutBytes(b []byte) {
	l := z.Limbs()
	putBytes(b, l[:])
}

// Assign sets z = x if mask is all ones and does not change z if mask is 0.
func (z *P512T) Assign(x *P512T, mask uint64) {
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
func (z *P512T) Lookup(table []P512T, index uint64) { lookupP512T(z, table, index) }
