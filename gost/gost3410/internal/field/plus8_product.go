// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// mulPlus8 sets z = x * y.
func mulPlus8(z, x, y *[8]uint64, c uint64) {
	var t [16]uint64
	mulWide8(&t, x, y)
	foldPlus8(z, &t, c)
}

// sqrPlus8 sets z = x * x.
func sqrPlus8(z, x *[8]uint64, c uint64) {
	var t [16]uint64
	sqrWide8(&t, x)
	foldPlus8(z, &t, c)
}

// foldPlus8 sets z = r. Modulo the prime, 2^512 is -2c, so 2c times the upper half is
// subtracted from the lower half. The top word of this difference, below 2^26, times
// 2c is added again. If that carries, the number left is below 2^26, and the carry is
// congruent to 2^511 - c.
func foldPlus8(z *[8]uint64, r *[16]uint64, c uint64) {
	d := 2 * c
	h0, t0 := bits.Mul64(r[8], d)
	h1, t1 := bits.Mul64(r[9], d)
	h2, t2 := bits.Mul64(r[10], d)
	h3, t3 := bits.Mul64(r[11], d)
	h4, t4 := bits.Mul64(r[12], d)
	h5, t5 := bits.Mul64(r[13], d)
	h6, t6 := bits.Mul64(r[14], d)
	h7, t7 := bits.Mul64(r[15], d)
	t1, k := bits.Add64(t1, h0, 0)
	t2, k = bits.Add64(t2, h1, k)
	t3, k = bits.Add64(t3, h2, k)
	t4, k = bits.Add64(t4, h3, k)
	t5, k = bits.Add64(t5, h4, k)
	t6, k = bits.Add64(t6, h5, k)
	t7, k = bits.Add64(t7, h6, k)
	h7 += k
	r0, k := bits.Sub64(r[0], t0, 0)
	r1, k := bits.Sub64(r[1], t1, k)
	r2, k := bits.Sub64(r[2], t2, k)
	r3, k := bits.Sub64(r[3], t3, k)
	r4, k := bits.Sub64(r[4], t4, k)
	r5, k := bits.Sub64(r[5], t5, k)
	r6, k := bits.Sub64(r[6], t6, k)
	r7, k := bits.Sub64(r[7], t7, k)
	h7 += k
	r0, k = bits.Add64(r0, h7*d, 0)
	r1, k = bits.Add64(r1, 0, k)
	r2, k = bits.Add64(r2, 0, k)
	r3, k = bits.Add64(r3, 0, k)
	r4, k = bits.Add64(r4, 0, k)
	r5, k = bits.Add64(r5, 0, k)
	r6, k = bits.Add64(r6, 0, k)
	r7, k = bits.Add64(r7, 0, k)
	r7 |= k << 63
	r0, k = bits.Sub64(r0, c&-k, 0)
	r1, k = bits.Sub64(r1, 0, k)
	r2, k = bits.Sub64(r2, 0, k)
	r3, k = bits.Sub64(r3, 0, k)
	r4, k = bits.Sub64(r4, 0, k)
	r5, k = bits.Sub64(r5, 0, k)
	r6, k = bits.Sub64(r6, 0, k)
	r7, _ = bits.Sub64(r7, 0, k)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0, r1, r2, r3, r4, r5, r6, r7
}
