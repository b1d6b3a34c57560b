// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// Arithmetic modulo 2^256 - c for a small c. Modulo the prime, 2^256 is c. A value is
// any number below 2^256, so it may exceed the prime by less than c. Only reduceMinus4
// reduces it below the prime. c is an argument, not a constant, because the compiler
// does not inline functions of this size anyway.

// addMinus4 sets z = x + y. After a second carry the number is below c, so the second
// correction cannot carry.
func addMinus4(z, x, y *[4]uint64, c uint64) {
	r0, k := bits.Add64(x[0], y[0], 0)
	r1, k := bits.Add64(x[1], y[1], k)
	r2, k := bits.Add64(x[2], y[2], k)
	r3, k := bits.Add64(x[3], y[3], k)
	r0, k = bits.Add64(r0, c&-k, 0)
	r1, k = bits.Add64(r1, 0, k)
	r2, k = bits.Add64(r2, 0, k)
	r3, k = bits.Add64(r3, 0, k)
	z[0], z[1], z[2], z[3] = r0+c&-k, r1, r2, r3
}

// subMinus4 sets z = x - y. After a second borrow the number is above 2^256 - c, so
// the second correction cannot borrow.
func subMinus4(z, x, y *[4]uint64, c uint64) {
	r0, k := bits.Sub64(x[0], y[0], 0)
	r1, k := bits.Sub64(x[1], y[1], k)
	r2, k := bits.Sub64(x[2], y[2], k)
	r3, k := bits.Sub64(x[3], y[3], k)
	r0, k = bits.Sub64(r0, c&-k, 0)
	r1, k = bits.Sub64(r1, 0, k)
	r2, k = bits.Sub64(r2, 0, k)
	r3, k = bits.Sub64(r3, 0, k)
	z[0], z[1], z[2], z[3] = r0-c&-k, r1, r2, r3
}

// smallMinus4 sets z = x * k for k below 2^32.
func smallMinus4(z, x *[4]uint64, k, c uint64) {
	h0, r0 := bits.Mul64(x[0], k)
	h1, r1 := bits.Mul64(x[1], k)
	h2, r2 := bits.Mul64(x[2], k)
	h3, r3 := bits.Mul64(x[3], k)
	r1, v := bits.Add64(r1, h0, 0)
	r2, v = bits.Add64(r2, h1, v)
	r3, v = bits.Add64(r3, h2, v)
	h3 += v
	r0, v = bits.Add64(r0, h3*c, 0)
	r1, v = bits.Add64(r1, 0, v)
	r2, v = bits.Add64(r2, 0, v)
	r3, v = bits.Add64(r3, 0, v)
	z[0], z[1], z[2], z[3] = r0+c&-v, r1, r2, r3
}

// reduceMinus4 sets z to x reduced below the prime. x + c carries exactly if x is not
// below the prime.
func reduceMinus4(z, x *[4]uint64, c uint64) {
	r0, k := bits.Add64(x[0], c, 0)
	r1, k := bits.Add64(x[1], 0, k)
	r2, k := bits.Add64(x[2], 0, k)
	r3, k := bits.Add64(x[3], 0, k)
	m := -k
	z[0] = x[0] ^ m&(x[0]^r0)
	z[1] = x[1] ^ m&(x[1]^r1)
	z[2] = x[2] ^ m&(x[2]^r2)
	z[3] = x[3] ^ m&(x[3]^r3)
}
