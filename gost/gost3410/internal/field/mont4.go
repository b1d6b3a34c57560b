// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// Arithmetic modulo any odd m of four limbs, in Montgomery form: a value x is kept as
// x * 2^256 mod m, always below m. n is -1/m mod 2^64.

// addMont4 sets z = x + y.
func addMont4(z, x, y, m *[4]uint64) {
	r0, k := bits.Add64(x[0], y[0], 0)
	r1, k := bits.Add64(x[1], y[1], k)
	r2, k := bits.Add64(x[2], y[2], k)
	r3, k := bits.Add64(x[3], y[3], k)
	lessMont4(z, r0, r1, r2, r3, k, m)
}

// subMont4 sets z = x - y.
func subMont4(z, x, y, m *[4]uint64) {
	r0, k := bits.Sub64(x[0], y[0], 0)
	r1, k := bits.Sub64(x[1], y[1], k)
	r2, k := bits.Sub64(x[2], y[2], k)
	r3, k := bits.Sub64(x[3], y[3], k)
	w := -k
	r0, k = bits.Add64(r0, m[0]&w, 0)
	r1, k = bits.Add64(r1, m[1]&w, k)
	r2, k = bits.Add64(r2, m[2]&w, k)
	r3, _ = bits.Add64(r3, m[3]&w, k)
	z[0], z[1], z[2], z[3] = r0, r1, r2, r3
}

// lessMont4 reduces the number with the limbs r and the top limb k below m and sets z
// to the result. The number must be below 2m.
func lessMont4(z *[4]uint64, r0, r1, r2, r3, k uint64, m *[4]uint64) {
	s0, w := bits.Sub64(r0, m[0], 0)
	s1, w := bits.Sub64(r1, m[1], w)
	s2, w := bits.Sub64(r2, m[2], w)
	s3, w := bits.Sub64(r3, m[3], w)
	_, w = bits.Sub64(k, 0, w)
	w = -w
	z[0] = s0 ^ w&(s0^r0)
	z[1] = s1 ^ w&(s1^r1)
	z[2] = s2 ^ w&(s2^r2)
	z[3] = s3 ^ w&(s3^r3)
}
