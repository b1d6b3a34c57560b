// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// mulPlus4 sets z = x * y.
func mulPlus4(z, x, y *[4]uint64, c uint64) {
	var t [8]uint64
	mulWide4(&t, x, y)
	foldPlus4(z, &t, c)
}

// sqrPlus4 sets z = x * x.
func sqrPlus4(z, x *[4]uint64, c uint64) {
	var t [8]uint64
	sqrWide4(&t, x)
	foldPlus4(z, &t, c)
}

// foldPlus4 sets z = r. Modulo the prime, 2^256 is -2c, so 2c times the upper half is
// subtracted from the lower half. The top word of this difference, below 2^26, times
// 2c is added again. If that carries, the number left is below 2^26, and the carry is
// congruent to 2^255 - c.
func foldPlus4(z *[4]uint64, r *[8]uint64, c uint64) {
	d := 2 * c
	h0, t0 := bits.Mul64(r[4], d)
	h1, t1 := bits.Mul64(r[5], d)
	h2, t2 := bits.Mul64(r[6], d)
	h3, t3 := bits.Mul64(r[7], d)
	t1, k := bits.Add64(t1, h0, 0)
	t2, k = bits.Add64(t2, h1, k)
	t3, k = bits.Add64(t3, h2, k)
	h3 += k
	r0, k := bits.Sub64(r[0], t0, 0)
	r1, k := bits.Sub64(r[1], t1, k)
	r2, k := bits.Sub64(r[2], t2, k)
	r3, k := bits.Sub64(r[3], t3, k)
	h3 += k
	r0, k = bits.Add64(r0, h3*d, 0)
	r1, k = bits.Add64(r1, 0, k)
	r2, k = bits.Add64(r2, 0, k)
	r3, k = bits.Add64(r3, 0, k)
	r3 |= k << 63
	r0, k = bits.Sub64(r0, c&-k, 0)
	r1, k = bits.Sub64(r1, 0, k)
	r2, k = bits.Sub64(r2, 0, k)
	r3, _ = bits.Sub64(r3, 0, k)
	z[0], z[1], z[2], z[3] = r0, r1, r2, r3
}
