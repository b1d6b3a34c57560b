// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// mulWide4 sets z to all 8 limbs of x*y. It adds a row of products for every limb of x.
func mulWide4(z *[8]uint64, x, y *[4]uint64) {
	var k, h0, h1, h2, h3, t0, t1, t2, t3 uint64
	y0, y1, y2, y3 := y[0], y[1], y[2], y[3]

	h0, t0 = bits.Mul64(x[0], y0)
	h1, t1 = bits.Mul64(x[0], y1)
	h2, t2 = bits.Mul64(x[0], y2)
	h3, t3 = bits.Mul64(x[0], y3)
	r0 := t0
	r1, k := bits.Add64(h0, t1, 0)
	r2, k := bits.Add64(h1, t2, k)
	r3, k := bits.Add64(h2, t3, k)
	r4 := h3 + k

	h0, t0 = bits.Mul64(x[1], y0)
	h1, t1 = bits.Mul64(x[1], y1)
	h2, t2 = bits.Mul64(x[1], y2)
	h3, t3 = bits.Mul64(x[1], y3)
	r1, k = bits.Add64(r1, t0, 0)
	r2, k = bits.Add64(r2, t1, k)
	r3, k = bits.Add64(r3, t2, k)
	r4, k = bits.Add64(r4, t3, k)
	r5 := k
	r2, k = bits.Add64(r2, h0, 0)
	r3, k = bits.Add64(r3, h1, k)
	r4, k = bits.Add64(r4, h2, k)
	r5 += h3 + k

	h0, t0 = bits.Mul64(x[2], y0)
	h1, t1 = bits.Mul64(x[2], y1)
	h2, t2 = bits.Mul64(x[2], y2)
	h3, t3 = bits.Mul64(x[2], y3)
	r2, k = bits.Add64(r2, t0, 0)
	r3, k = bits.Add64(r3, t1, k)
	r4, k = bits.Add64(r4, t2, k)
	r5, k = bits.Add64(r5, t3, k)
	r6 := k
	r3, k = bits.Add64(r3, h0, 0)
	r4, k = bits.Add64(r4, h1, k)
	r5, k = bits.Add64(r5, h2, k)
	r6 += h3 + k

	h0, t0 = bits.Mul64(x[3], y0)
	h1, t1 = bits.Mul64(x[3], y1)
	h2, t2 = bits.Mul64(x[3], y2)
	h3, t3 = bits.Mul64(x[3], y3)
	r3, k = bits.Add64(r3, t0, 0)
	r4, k = bits.Add64(r4, t1, k)
	r5, k = bits.Add64(r5, t2, k)
	r6, k = bits.Add64(r6, t3, k)
	r7 := k
	r4, k = bits.Add64(r4, h0, 0)
	r5, k = bits.Add64(r5, h1, k)
	r6, k = bits.Add64(r6, h2, k)
	r7 += h3 + k

	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0, r1, r2, r3, r4, r5, r6, r7
}

// sqrWide4 sets z to all 8 limbs of x*x. It computes the products of two different
// limbs once and doubles them.
func sqrWide4(z *[8]uint64, x *[4]uint64) {
	h0, r1 := bits.Mul64(x[0], x[1])
	h1, r2 := bits.Mul64(x[0], x[2])
	h2, r3 := bits.Mul64(x[0], x[3])
	r2, k := bits.Add64(r2, h0, 0)
	r3, k = bits.Add64(r3, h1, k)
	r4 := h2 + k

	h0, l0 := bits.Mul64(x[1], x[2])
	h1, l1 := bits.Mul64(x[1], x[3])
	l1, k = bits.Add64(l1, h0, 0)
	h1 += k
	r3, k = bits.Add64(r3, l0, 0)
	r4, k = bits.Add64(r4, l1, k)
	r5, v := bits.Add64(h1, 0, k)

	h2, l2 := bits.Mul64(x[2], x[3])
	r5, k = bits.Add64(r5, l2, 0)
	r6 := h2 + v + k

	r7 := r6 >> 63
	r6 = r6<<1 | r5>>63
	r5 = r5<<1 | r4>>63
	r4 = r4<<1 | r3>>63
	r3 = r3<<1 | r2>>63
	r2 = r2<<1 | r1>>63
	r1 <<= 1

	h0, r0 := bits.Mul64(x[0], x[0])
	h1, l1 = bits.Mul64(x[1], x[1])
	h2, l2 = bits.Mul64(x[2], x[2])
	h3, l3 := bits.Mul64(x[3], x[3])
	r1, k = bits.Add64(r1, h0, 0)
	r2, k = bits.Add64(r2, l1, k)
	r3, k = bits.Add64(r3, h1, k)
	r4, k = bits.Add64(r4, l2, k)
	r5, k = bits.Add64(r5, h2, k)
	r6, k = bits.Add64(r6, l3, k)
	r7, _ = bits.Add64(r7, h3, k)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0, r1, r2, r3, r4, r5, r6, r7
}
