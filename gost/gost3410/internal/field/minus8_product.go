// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// mulMinus8 sets z = x * y.
func mulMinus8(z, x, y *[8]uint64, c uint64) {
	var t [16]uint64
	mulWide8(&t, x, y)
	foldMinus8(z, &t, c)
}

// sqrMinus8 sets z = x * x.
func sqrMinus8(z, x *[8]uint64, c uint64) {
	var t [16]uint64
	sqrWide8(&t, x)
	foldMinus8(z, &t, c)
}

// foldMinus8 sets z = r. It adds c times the upper half to the lower half, and c times
// the carry of that.
func foldMinus8(z *[8]uint64, r *[16]uint64, c uint64) {
	h0, t0 := bits.Mul64(r[8], c)
	h1, t1 := bits.Mul64(r[9], c)
	h2, t2 := bits.Mul64(r[10], c)
	h3, t3 := bits.Mul64(r[11], c)
	h4, t4 := bits.Mul64(r[12], c)
	h5, t5 := bits.Mul64(r[13], c)
	h6, t6 := bits.Mul64(r[14], c)
	h7, t7 := bits.Mul64(r[15], c)
	r0, k := bits.Add64(r[0], t0, 0)
	r1, k := bits.Add64(r[1], t1, k)
	r2, k := bits.Add64(r[2], t2, k)
	r3, k := bits.Add64(r[3], t3, k)
	r4, k := bits.Add64(r[4], t4, k)
	r5, k := bits.Add64(r[5], t5, k)
	r6, k := bits.Add64(r[6], t6, k)
	r7, k := bits.Add64(r[7], t7, k)
	h7 += k
	r1, k = bits.Add64(r1, h0, 0)
	r2, k = bits.Add64(r2, h1, k)
	r3, k = bits.Add64(r3, h2, k)
	r4, k = bits.Add64(r4, h3, k)
	r5, k = bits.Add64(r5, h4, k)
	r6, k = bits.Add64(r6, h5, k)
	r7, k = bits.Add64(r7, h6, k)
	h7 += k
	r0, k = bits.Add64(r0, h7*c, 0)
	r1, k = bits.Add64(r1, 0, k)
	r2, k = bits.Add64(r2, 0, k)
	r3, k = bits.Add64(r3, 0, k)
	r4, k = bits.Add64(r4, 0, k)
	r5, k = bits.Add64(r5, 0, k)
	r6, k = bits.Add64(r6, 0, k)
	r7, k = bits.Add64(r7, 0, k)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0+c&-k, r1, r2, r3, r4, r5, r6, r7
}
