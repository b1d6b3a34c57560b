package field

import "math/bits"

// The 8-limb products are written out column by column: a column's sum stays in
// three registers, and the compiler needs no bounds checks. A loop over rows
// takes half as long again.

// mac returns the three-word number c2:c1:c0 plus x*y.
func mac(c2, c1, c0, x, y uint64) (r2, r1, r0 uint64) {
	h, l := bits.Mul64(x, y)
	r0, k := bits.Add64(c0, l, 0)
	r1, k = bits.Add64(c1, h, k)
	return c2 + k, r1, r0
}

// twice returns c2:c1:c0 plus two times a2:a1:a0.
func twice(c2, c1, c0, a2, a1, a0 uint64) (r2, r1, r0 uint64) {
	r0, k := bits.Add64(c0, a0<<1, 0)
	r1, k = bits.Add64(c1, a1<<1|a0>>63, k)
	return c2 + (a2<<1 | a1>>63) + k, r1, r0
}

// mulWide8 sets z = x*y, all 16 limbs of it.
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

// sqrWide8 sets z = x*x: products of two different limbs are taken once and doubled.
func sqrWide8(z *[16]uint64, x *[8]uint64) {
	var c2, c1, c0, a2, a1, a0 uint64
	c2, c1, c0 = mac(c2, c1, c0, x[0], x[0])
	z[0], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[0], x[1])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	z[1], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[0], x[2])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	c2, c1, c0 = mac(c2, c1, c0, x[1], x[1])
	z[2], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[0], x[3])
	a2, a1, a0 = mac(a2, a1, a0, x[1], x[2])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	z[3], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[0], x[4])
	a2, a1, a0 = mac(a2, a1, a0, x[1], x[3])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	c2, c1, c0 = mac(c2, c1, c0, x[2], x[2])
	z[4], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[0], x[5])
	a2, a1, a0 = mac(a2, a1, a0, x[1], x[4])
	a2, a1, a0 = mac(a2, a1, a0, x[2], x[3])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	z[5], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[0], x[6])
	a2, a1, a0 = mac(a2, a1, a0, x[1], x[5])
	a2, a1, a0 = mac(a2, a1, a0, x[2], x[4])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	c2, c1, c0 = mac(c2, c1, c0, x[3], x[3])
	z[6], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[0], x[7])
	a2, a1, a0 = mac(a2, a1, a0, x[1], x[6])
	a2, a1, a0 = mac(a2, a1, a0, x[2], x[5])
	a2, a1, a0 = mac(a2, a1, a0, x[3], x[4])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	z[7], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[1], x[7])
	a2, a1, a0 = mac(a2, a1, a0, x[2], x[6])
	a2, a1, a0 = mac(a2, a1, a0, x[3], x[5])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	c2, c1, c0 = mac(c2, c1, c0, x[4], x[4])
	z[8], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[2], x[7])
	a2, a1, a0 = mac(a2, a1, a0, x[3], x[6])
	a2, a1, a0 = mac(a2, a1, a0, x[4], x[5])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	z[9], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[3], x[7])
	a2, a1, a0 = mac(a2, a1, a0, x[4], x[6])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	c2, c1, c0 = mac(c2, c1, c0, x[5], x[5])
	z[10], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[4], x[7])
	a2, a1, a0 = mac(a2, a1, a0, x[5], x[6])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	z[11], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[5], x[7])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	c2, c1, c0 = mac(c2, c1, c0, x[6], x[6])
	z[12], c0, c1, c2 = c0, c1, c2, 0
	a2, a1, a0 = mac(0, 0, 0, x[6], x[7])
	c2, c1, c0 = twice(c2, c1, c0, a2, a1, a0)
	z[13], c0, c1, c2 = c0, c1, c2, 0
	_, c1, c0 = mac(c2, c1, c0, x[7], x[7])
	z[14], z[15] = c0, c1
}
