// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// Arithmetic modulo any odd m of eight limbs, in Montgomery form: mont4.go with eight
// limbs.

// addMont8 sets z = x + y.
func addMont8(z, x, y, m *[8]uint64) {
	r0, k := bits.Add64(x[0], y[0], 0)
	r1, k := bits.Add64(x[1], y[1], k)
	r2, k := bits.Add64(x[2], y[2], k)
	r3, k := bits.Add64(x[3], y[3], k)
	r4, k := bits.Add64(x[4], y[4], k)
	r5, k := bits.Add64(x[5], y[5], k)
	r6, k := bits.Add64(x[6], y[6], k)
	r7, k := bits.Add64(x[7], y[7], k)
	lessMont8(z, r0, r1, r2, r3, r4, r5, r6, r7, k, m)
}

// subMont8 sets z = x - y.
func subMont8(z, x, y, m *[8]uint64) {
	r0, k := bits.Sub64(x[0], y[0], 0)
	r1, k := bits.Sub64(x[1], y[1], k)
	r2, k := bits.Sub64(x[2], y[2], k)
	r3, k := bits.Sub64(x[3], y[3], k)
	r4, k := bits.Sub64(x[4], y[4], k)
	r5, k := bits.Sub64(x[5], y[5], k)
	r6, k := bits.Sub64(x[6], y[6], k)
	r7, k := bits.Sub64(x[7], y[7], k)
	w := -k
	r0, k = bits.Add64(r0, m[0]&w, 0)
	r1, k = bits.Add64(r1, m[1]&w, k)
	r2, k = bits.Add64(r2, m[2]&w, k)
	r3, k = bits.Add64(r3, m[3]&w, k)
	r4, k = bits.Add64(r4, m[4]&w, k)
	r5, k = bits.Add64(r5, m[5]&w, k)
	r6, k = bits.Add64(r6, m[6]&w, k)
	r7, _ = bits.Add64(r7, m[7]&w, k)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0, r1, r2, r3, r4, r5, r6, r7
}

// lessMont8 reduces the number with the limbs r and the top limb k below m and sets z
// to the result. The number must be below 2m.
func lessMont8(z *[8]uint64, r0, r1, r2, r3, r4, r5, r6, r7, k uint64, m *[8]uint64) {
	s0, w := bits.Sub64(r0, m[0], 0)
	s1, w := bits.Sub64(r1, m[1], w)
	s2, w := bits.Sub64(r2, m[2], w)
	s3, w := bits.Sub64(r3, m[3], w)
	s4, w := bits.Sub64(r4, m[4], w)
	s5, w := bits.Sub64(r5, m[5], w)
	s6, w := bits.Sub64(r6, m[6], w)
	s7, w := bits.Sub64(r7, m[7], w)
	_, w = bits.Sub64(k, 0, w)
	w = -w
	z[0] = s0 ^ w&(s0^r0)
	z[1] = s1 ^ w&(s1^r1)
	z[2] = s2 ^ w&(s2^r2)
	z[3] = s3 ^ w&(s3^r3)
	z[4] = s4 ^ w&(s4^r4)
	z[5] = s5 ^ w&(s5^r5)
	z[6] = s6 ^ w&(s6^r6)
	z[7] = s7 ^ w&(s7^r7)
}
