// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// Scalar is a number of up to 512 bits with little-endian limbs, in no special form.
// If the modulus has four limbs, the upper four limbs are zero.
type Scalar [8]uint64

// SetBytes sets z to the number in at most 64 little-endian bytes.
func (z *Scalar) SetBytes(b []byte) {
	var buf [8 * len(z)]byte
	copy(buf[:], b)
	setBytes(z[:], buf[:])
	clear(buf[:])
}

// PutBytes writes the lowest len(b) bytes of z, little-endian.
func (z *Scalar) PutBytes(b []byte) {
	var buf [8 * len(z)]byte
	putBytes(buf[:], z[:])
	copy(b, buf[:])
	clear(buf[:])
}

// IsZero returns 1 if z is 0, else 0.
func (z *Scalar) IsZero() uint64 { return 1 - nonZero(z[:]) }

// Bit returns bit i.
func (z *Scalar) Bit(i int) uint64 { return z[i/64] >> (i % 64) & 1 }

// Assign sets z = x if mask is all ones and does not change z if mask is 0.
func (z *Scalar) Assign(x *Scalar, mask uint64) { assign(z[:], x[:], mask) }

// Modulus is arithmetic on scalars modulo an odd prime of four or eight limbs, such as
// the order of a group. All methods run in constant time.
type Modulus struct {
	n      int    // limbs
	m      Scalar // the modulus
	square Scalar // 2^(128n) mod m
	inv    uint64 // -1/m mod 2^64
}

// NewModulus returns arithmetic modulo m with 4 or 8 limbs. m may be a few bits shorter
// than its limbs.
func NewModulus(m *Scalar, limbs int) *Modulus {
	o := &Modulus{n: limbs, m: *m}
	// Newton's iteration doubles the number of correct bits: 3, 6, 12, 24, 48, 96.
	o.inv = m[0]
	for range 5 {
		o.inv *= 2 - m[0]*o.inv
	}
	o.inv = -o.inv
	o.square[0] = 1
	for range 128 * limbs {
		o.Add(&o.square, &o.square, &o.square)
	}
	return o
}

// Value returns the modulus itself.
func (o *Modulus) Value() Scalar { return o.m }

// BitLen returns the length of the modulus in bits.
func (o *Modulus) BitLen() int {
	for i := o.n - 1; ; i-- {
		if o.m[i] != 0 {
			return 64*i + bits.Len64(o.m[i])
		}
	}
}

// Less returns 1 if x is below the modulus, else 0.
func (o *Modulus) Less(x *Scalar) uint64 { return less(x[:], o.m[:]) }

// Add sets z = x + y mod m for x and y below m.
func (o *Modulus) Add(z, x, y *Scalar) {
	var s, r Scalar
	n := o.n
	carry := addIf(s[:n], x[:n], y[:n], ^uint64(0))
	borrow := subIf(r[:n], s[:n], o.m[:n], ^uint64(0))
	_, borrow = bits.Sub64(carry, 0, borrow)
	assign(r[:n], s[:n], -borrow)
	*z = r
}

// Negate sets z = -x mod m for x below m.
func (o *Modulus) Negate(z, x *Scalar) {
	var r Scalar
	n := o.n
	subIf(r[:n], o.m[:n], x[:n], -nonZero(x[:n]))
	assign(r[:n], x[:n], nonZero(x[:n])-1)
	*z = r
}

// Mul sets z = x * y mod m. x may be any number that fits into the limbs of m. y must
// be below m.
func (o *Modulus) Mul(z, x, y *Scalar) {
	var t Scalar
	o.montgomery(&t, x, &o.square)
	o.montgomery(z, &t, y)
}

// Reduce sets z = x mod m. x may be any number that fits into the limbs of m.
func (o *Modulus) Reduce(z, x *Scalar) { o.Mul(z, x, &Scalar{1}) }

// Invert sets z = 1/x mod m, or z = 0 if x is 0. x must be below m.
func (o *Modulus) Invert(z, x *Scalar) {
	var r Scalar
	invert(r[:o.n], x[:o.n], o.m[:o.n], o.inv)
	*z = r
}

// montgomery sets z = x * y / 2^(64n) mod m. One factor must be below m.
func (o *Modulus) montgomery(z, x, y *Scalar) {
	if o.n == 4 {
		var r Scalar
		montgomery4((*[4]uint64)(r[:4]), (*[4]uint64)(x[:4]), (*[4]uint64)(y[:4]), (*[4]uint64)(o.m[:4]), o.inv)
		*z = r
		return
	}
	mulMont8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), (*[8]uint64)(&o.m), o.inv)
}
