// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// Arithmetic modulo 2^512 - c for a small c: minus4.go with eight limbs.

// addMinus8 sets z = x + y. After a second carry the number is below c, so the second
// correction cannot carry.
func addMinus8(z, x, y *[8]uint64, c uint64) {
	r0, k := bits.Add64(x[0], y[0], 0)
	r1, k := bits.Add64(x[1], y[1], k)
	r2, k := bits.Add64(x[2], y[2], k)
	r3, k := bits.Add64(x[3], y[3], k)
	r4, k := bits.Add64(x[4], y[4], k)
	r5, k := bits.Add64(x[5], y[5], k)
	r6, k := bits.Add64(x[6], y[6], k)
	r7, k := bits.Add64(x[7], y[7], k)
	r0, k = bits.Add64(r0, c&-k, 0)
	r1, k = bits.Add64(r1, 0, k)
	r2, k = bits.Add64(r2, 0, k)
	r3, k = bits.Add64(r3, 0, k)
	r4, k = bits.Add64(r4, 0, k)
	r5, k = bits.Add64(r5, 0, k)
	r6, k = bits.Add64(r6, 0, k)
	r7, k = bits.Add64(r7, 0, k)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0+c&-k, r1, r2, r3, r4, r5, r6, r7
}

// subMinus8 sets z = x - y. After a second borrow the number is above 2^512 - c, so
// the second correction cannot borrow.
func subMinus8(z, x, y *[8]uint64, c uint64) {
	r0, k := bits.Sub64(x[0], y[0], 0)
	r1, k := bits.Sub64(x[1], y[1], k)
	r2, k := bits.Sub64(x[2], y[2], k)
	r3, k := bits.Sub64(x[3], y[3], k)
	r4, k := bits.Sub64(x[4], y[4], k)
	r5, k := bits.Sub64(x[5], y[5], k)
	r6, k := bits.Sub64(x[6], y[6], k)
	r7, k := bits.Sub64(x[7], y[7], k)
	r0, k = bits.Sub64(r0, c&-k, 0)
	r1, k = bits.Sub64(r1, 0, k)
	r2, k = bits.Sub64(r2, 0, k)
	r3, k = bits.Sub64(r3, 0, k)
	r4, k = bits.Sub64(r4, 0, k)
	r5, k = bits.Sub64(r5, 0, k)
	r6, k = bits.Sub64(r6, 0, k)
	r7, k = bits.Sub64(r7, 0, k)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0-c&-k, r1, r2, r3, r4, r5, r6, r7
}

// smallMinus8 sets z = x * k for k below 2^32.
func smallMinus8(z, x *[8]uint64, k, c uint64) {
	h0, r0 := bits.Mul64(x[0], k)
	h1, r1 := bits.Mul64(x[1], k)
	h2, r2 := bits.Mul64(x[2], k)
	h3, r3 := bits.Mul64(x[3], k)
	h4, r4 := bits.Mul64(x[4], k)
	h5, r5 := bits.Mul64(x[5], k)
	h6, r6 := bits.Mul64(x[6], k)
	h7, r7 := bits.Mul64(x[7], k)
	r1, v := bits.Add64(r1, h0, 0)
	r2, v = bits.Add64(r2, h1, v)
	r3, v = bits.Add64(r3, h2, v)
	r4, v = bits.Add64(r4, h3, v)
	r5, v = bits.Add64(r5, h4, v)
	r6, v = bits.Add64(r6, h5, v)
	r7, v = bits.Add64(r7, h6, v)
	h7 += v
	r0, v = bits.Add64(r0, h7*c, 0)
	r1, v = bits.Add64(r1, 0, v)
	r2, v = bits.Add64(r2, 0, v)
	r3, v = bits.Add64(r3, 0, v)
	r4, v = bits.Add64(r4, 0, v)
	r5, v = bits.Add64(r5, 0, v)
	r6, v = bits.Add64(r6, 0, v)
	r7, v = bits.Add64(r7, 0, v)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0+c&-v, r1, r2, r3, r4, r5, r6, r7
}

// reduceMinus8 sets z to x reduced below the prime. x + c carries exactly if x is not
// below the prime.
func reduceMinus8(z, x *[8]uint64, c uint64) {
	r0, k := bits.Add64(x[0], c, 0)
	r1, k := bits.Add64(x[1], 0, k)
	r2, k := bits.Add64(x[2], 0, k)
	r3, k := bits.Add64(x[3], 0, k)
	r4, k := bits.Add64(x[4], 0, k)
	r5, k := bits.Add64(x[5], 0, k)
	r6, k := bits.Add64(x[6], 0, k)
	r7, k := bits.Add64(x[7], 0, k)
	m := -k
	z[0] = x[0] ^ m&(x[0]^r0)
	z[1] = x[1] ^ m&(x[1]^r1)
	z[2] = x[2] ^ m&(x[2]^r2)
	z[3] = x[3] ^ m&(x[3]^r3)
	z[4] = x[4] ^ m&(x[4]^r4)
	z[5] = x[5] ^ m&(x[5]^r5)
	z[6] = x[6] ^ m&(x[6]^r6)
	z[7] = x[7] ^ m&(x[7]^r7)
}
