// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// The products of eight limbs are written out column by column. The sum of a column
// stays in three registers, and the compiler needs no bounds checks. A loop over rows
// would take 1.5 times as long.

// mac returns the three-word number c2:c1:c0 plus x*y.
func mac(c2, c1, c0, x, y uint64) (r2, r1, r0 uint64) {
	h, l := bits.Mul64(x, y)
	r0, k := bits.Add64(c0, l, 0)
	r1, k = bits.Add64(c1, h, k)
	r2, _ = bits.Add64(c2, 0, k) // one instruction, where c2 + k needs three
	return r2, r1, r0
}

// mulWide8 sets z to all 16 limbs of x*y.
func mulWide8(z *[16]uint64, x, y *[8]uint64) {
	var c2, c1, c0 uint64
	c2, c1, c0 = mac(c2, c1, c0, x[0], y[0])
	z[0], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], y[1])
	c2, c1, c0 = mac(c2, c1, c0, x[1], y[0])
	z[1], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], y[2])
	c2, c1, c0 = mac(c2, c1, c0, x[1], y[1])
	c2, c1, c0 = mac(c2, c1, c0, x[2], y[0])
	z[2], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], y[3])
	c2, c1, c0 = mac(c2, c1, c0, x[1], y[2])
	c2, c1, c0 = mac(c2, c1, c0, x[2], y[1])
	c2, c1, c0 = mac(c2, c1, c0, x[3], y[0])
	z[3], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], y[4])
	c2, c1, c0 = mac(c2, c1, c0, x[1], y[3])
	c2, c1, c0 = mac(c2, c1, c0, x[2], y[2])
	c2, c1, c0 = mac(c2, c1, c0, x[3], y[1])
	c2, c1, c0 = mac(c2, c1, c0, x[4], y[0])
	z[4], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], y[5])
	c2, c1, c0 = mac(c2, c1, c0, x[1], y[4])
	c2, c1, c0 = mac(c2, c1, c0, x[2], y[3])
	c2, c1, c0 = mac(c2, c1, c0, x[3], y[2])
	c2, c1, c0 = mac(c2, c1, c0, x[4], y[1])
	c2, c1, c0 = mac(c2, c1, c0, x[5], y[0])
	z[5], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], y[6])
	c2, c1, c0 = mac(c2, c1, c0, x[1], y[5])
	c2, c1, c0 = mac(c2, c1, c0, x[2], y[4])
	c2, c1, c0 = mac(c2, c1, c0, x[3], y[3])
	c2, c1, c0 = mac(c2, c1, c0, x[4], y[2])
	c2, c1, c0 = mac(c2, c1, c0, x[5], y[1])
	c2, c1, c0 = mac(c2, c1, c0, x[6], y[0])
	z[6], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], y[7])
	c2, c1, c0 = mac(c2, c1, c0, x[1], y[6])
	c2, c1, c0 = mac(c2, c1, c0, x[2], y[5])
	c2, c1, c0 = mac(c2, c1, c0, x[3], y[4])
	c2, c1, c0 = mac(c2, c1, c0, x[4], y[3])
	c2, c1, c0 = mac(c2, c1, c0, x[5], y[2])
	c2, c1, c0 = mac(c2, c1, c0, x[6], y[1])
	c2, c1, c0 = mac(c2, c1, c0, x[7], y[0])
	z[7], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[1], y[7])
	c2, c1, c0 = mac(c2, c1, c0, x[2], y[6])
	c2, c1, c0 = mac(c2, c1, c0, x[3], y[5])
	c2, c1, c0 = mac(c2, c1, c0, x[4], y[4])
	c2, c1, c0 = mac(c2, c1, c0, x[5], y[3])
	c2, c1, c0 = mac(c2, c1, c0, x[6], y[2])
	c2, c1, c0 = mac(c2, c1, c0, x[7], y[1])
	z[8], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[2], y[7])
	c2, c1, c0 = mac(c2, c1, c0, x[3], y[6])
	c2, c1, c0 = mac(c2, c1, c0, x[4], y[5])
	c2, c1, c0 = mac(c2, c1, c0, x[5], y[4])
	c2, c1, c0 = mac(c2, c1, c0, x[6], y[3])
	c2, c1, c0 = mac(c2, c1, c0, x[7], y[2])
	z[9], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[3], y[7])
	c2, c1, c0 = mac(c2, c1, c0, x[4], y[6])
	c2, c1, c0 = mac(c2, c1, c0, x[5], y[5])
	c2, c1, c0 = mac(c2, c1, c0, x[6], y[4])
	c2, c1, c0 = mac(c2, c1, c0, x[7], y[3])
	z[10], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[4], y[7])
	c2, c1, c0 = mac(c2, c1, c0, x[5], y[6])
	c2, c1, c0 = mac(c2, c1, c0, x[6], y[5])
	c2, c1, c0 = mac(c2, c1, c0, x[7], y[4])
	z[11], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[5], y[7])
	c2, c1, c0 = mac(c2, c1, c0, x[6], y[6])
	c2, c1, c0 = mac(c2, c1, c0, x[7], y[5])
	z[12], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[6], y[7])
	c2, c1, c0 = mac(c2, c1, c0, x[7], y[6])
	z[13], c0, c1, c2 = c0, c1, c2, 0
	_, c1, c0 = mac(c2, c1, c0, x[7], y[7])
	z[14], z[15] = c0, c1
}

// sqrWide8 sets z to all 16 limbs of x*x. It first sums the products of two different
// limbs, each once, column by column. Then it doubles this sum and adds the squares of
// the limbs.
func sqrWide8(z *[16]uint64, x *[8]uint64) {
	var c2, c1, c0 uint64
	c2, c1, c0 = mac(c2, c1, c0, x[0], x[1])
	z[1], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], x[2])
	z[2], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], x[3])
	c2, c1, c0 = mac(c2, c1, c0, x[1], x[2])
	z[3], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], x[4])
	c2, c1, c0 = mac(c2, c1, c0, x[1], x[3])
	z[4], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], x[5])
	c2, c1, c0 = mac(c2, c1, c0, x[1], x[4])
	c2, c1, c0 = mac(c2, c1, c0, x[2], x[3])
	z[5], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], x[6])
	c2, c1, c0 = mac(c2, c1, c0, x[1], x[5])
	c2, c1, c0 = mac(c2, c1, c0, x[2], x[4])
	z[6], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[0], x[7])
	c2, c1, c0 = mac(c2, c1, c0, x[1], x[6])
	c2, c1, c0 = mac(c2, c1, c0, x[2], x[5])
	c2, c1, c0 = mac(c2, c1, c0, x[3], x[4])
	z[7], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[1], x[7])
	c2, c1, c0 = mac(c2, c1, c0, x[2], x[6])
	c2, c1, c0 = mac(c2, c1, c0, x[3], x[5])
	z[8], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[2], x[7])
	c2, c1, c0 = mac(c2, c1, c0, x[3], x[6])
	c2, c1, c0 = mac(c2, c1, c0, x[4], x[5])
	z[9], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[3], x[7])
	c2, c1, c0 = mac(c2, c1, c0, x[4], x[6])
	z[10], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[4], x[7])
	c2, c1, c0 = mac(c2, c1, c0, x[5], x[6])
	z[11], c0, c1, c2 = c0, c1, c2, 0
	c2, c1, c0 = mac(c2, c1, c0, x[5], x[7])
	z[12], c0, c1, c2 = c0, c1, c2, 0
	_, c1, c0 = mac(c2, c1, c0, x[6], x[7])
	z[13], z[14] = c0, c1

	// The compiler handles only one chain of carries at a time.
	var k uint64
	z[1], k = bits.Add64(z[1], z[1], 0)
	z[2], k = bits.Add64(z[2], z[2], k)
	z[3], k = bits.Add64(z[3], z[3], k)
	z[4], k = bits.Add64(z[4], z[4], k)
	z[5], k = bits.Add64(z[5], z[5], k)
	z[6], k = bits.Add64(z[6], z[6], k)
	z[7], k = bits.Add64(z[7], z[7], k)
	z[8], k = bits.Add64(z[8], z[8], k)
	z[9], k = bits.Add64(z[9], z[9], k)
	z[10], k = bits.Add64(z[10], z[10], k)
	z[11], k = bits.Add64(z[11], z[11], k)
	z[12], k = bits.Add64(z[12], z[12], k)
	z[13], k = bits.Add64(z[13], z[13], k)
	z[14], k = bits.Add64(z[14], z[14], k)
	z[15] = k
	h0, l0 := bits.Mul64(x[0], x[0])
	h1, l1 := bits.Mul64(x[1], x[1])
	h2, l2 := bits.Mul64(x[2], x[2])
	h3, l3 := bits.Mul64(x[3], x[3])
	h4, l4 := bits.Mul64(x[4], x[4])
	h5, l5 := bits.Mul64(x[5], x[5])
	h6, l6 := bits.Mul64(x[6], x[6])
	h7, l7 := bits.Mul64(x[7], x[7])
	z[0] = l0
	z[1], k = bits.Add64(z[1], h0, 0)
	z[2], k = bits.Add64(z[2], l1, k)
	z[3], k = bits.Add64(z[3], h1, k)
	z[4], k = bits.Add64(z[4], l2, k)
	z[5], k = bits.Add64(z[5], h2, k)
	z[6], k = bits.Add64(z[6], l3, k)
	z[7], k = bits.Add64(z[7], h3, k)
	z[8], k = bits.Add64(z[8], l4, k)
	z[9], k = bits.Add64(z[9], h4, k)
	z[10], k = bits.Add64(z[10], l5, k)
	z[11], k = bits.Add64(z[11], h5, k)
	z[12], k = bits.Add64(z[12], l6, k)
	z[13], k = bits.Add64(z[13], h6, k)
	z[14], k = bits.Add64(z[14], l7, k)
	z[15], _ = bits.Add64(z[15], h7, k)
}
