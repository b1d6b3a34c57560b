// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// mulMont4 sets z = x * y / 2^256.
func mulMont4(z, x, y, m *[4]uint64, n uint64) {
	var t [8]uint64
	mulWide4(&t, x, y)
	redc4(z, &t, m, n)
}

// sqrMont4 sets z = x * x / 2^256.
func sqrMont4(z, x, m *[4]uint64, n uint64) {
	var t [8]uint64
	sqrWide4(&t, x)
	redc4(z, &t, m, n)
}

// redc4 sets z = t / 2^256 mod m for t below 2^256 * m. Every step adds the multiple of
// m that clears the lowest limb and drops that limb.
func redc4(z *[4]uint64, t *[8]uint64, m *[4]uint64, n uint64) {
	r0, r1, r2, r3 := t[0], t[1], t[2], t[3]
	var q, k, top, h0, h1, h2, h3, l0, l1, l2, l3 uint64

	q = r0 * n
	h0, l0 = bits.Mul64(q, m[0])
	h1, l1 = bits.Mul64(q, m[1])
	h2, l2 = bits.Mul64(q, m[2])
	h3, l3 = bits.Mul64(q, m[3])
	_, k = bits.Add64(r0, l0, 0)
	r0, k = bits.Add64(r1, l1, k)
	r1, k = bits.Add64(r2, l2, k)
	r2, k = bits.Add64(r3, l3, k)
	r3, top = bits.Add64(t[4], top, k)
	r0, k = bits.Add64(r0, h0, 0)
	r1, k = bits.Add64(r1, h1, k)
	r2, k = bits.Add64(r2, h2, k)
	r3, k = bits.Add64(r3, h3, k)
	top += k

	q = r0 * n
	h0, l0 = bits.Mul64(q, m[0])
	h1, l1 = bits.Mul64(q, m[1])
	h2, l2 = bits.Mul64(q, m[2])
	h3, l3 = bits.Mul64(q, m[3])
	_, k = bits.Add64(r0, l0, 0)
	r0, k = bits.Add64(r1, l1, k)
	r1, k = bits.Add64(r2, l2, k)
	r2, k = bits.Add64(r3, l3, k)
	r3, top = bits.Add64(t[5], top, k)
	r0, k = bits.Add64(r0, h0, 0)
	r1, k = bits.Add64(r1, h1, k)
	r2, k = bits.Add64(r2, h2, k)
	r3, k = bits.Add64(r3, h3, k)
	top += k

	q = r0 * n
	h0, l0 = bits.Mul64(q, m[0])
	h1, l1 = bits.Mul64(q, m[1])
	h2, l2 = bits.Mul64(q, m[2])
	h3, l3 = bits.Mul64(q, m[3])
	_, k = bits.Add64(r0, l0, 0)
	r0, k = bits.Add64(r1, l1, k)
	r1, k = bits.Add64(r2, l2, k)
	r2, k = bits.Add64(r3, l3, k)
	r3, top = bits.Add64(t[6], top, k)
	r0, k = bits.Add64(r0, h0, 0)
	r1, k = bits.Add64(r1, h1, k)
	r2, k = bits.Add64(r2, h2, k)
	r3, k = bits.Add64(r3, h3, k)
	top += k

	q = r0 * n
	h0, l0 = bits.Mul64(q, m[0])
	h1, l1 = bits.Mul64(q, m[1])
	h2, l2 = bits.Mul64(q, m[2])
	h3, l3 = bits.Mul64(q, m[3])
	_, k = bits.Add64(r0, l0, 0)
	r0, k = bits.Add64(r1, l1, k)
	r1, k = bits.Add64(r2, l2, k)
	r2, k = bits.Add64(r3, l3, k)
	r3, top = bits.Add64(t[7], top, k)
	r0, k = bits.Add64(r0, h0, 0)
	r1, k = bits.Add64(r1, h1, k)
	r2, k = bits.Add64(r2, h2, k)
	r3, k = bits.Add64(r3, h3, k)
	top += k
	lessMont4(z, r0, r1, r2, r3, top, m)
}
