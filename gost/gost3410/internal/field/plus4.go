// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// Arithmetic modulo 2^255 + c for a small c. Modulo the prime, 2^255 is -c. A value is
// any number below 2^256, so it is below twice the prime. Only reducePlus4 reduces it
// below the prime.

// addPlus4 sets z = x + y. Let lo be the lower 255 bits and t the bit above them. On a
// carry the sum is lo + (2+t)*2^255, which is congruent to 2^255 + lo - (1+t)*c. This
// number is neither negative nor too large.
func addPlus4(z, x, y *[4]uint64, c uint64) {
	r0, k := bits.Add64(x[0], y[0], 0)
	r1, k := bits.Add64(x[1], y[1], k)
	r2, k := bits.Add64(x[2], y[2], k)
	r3, k := bits.Add64(x[3], y[3], k)
	d := (c + c&-(r3>>63)) & -k
	r3 |= k << 63
	r0, k = bits.Sub64(r0, d, 0)
	r1, k = bits.Sub64(r1, 0, k)
	r2, k = bits.Sub64(r2, 0, k)
	r3, _ = bits.Sub64(r3, 0, k)
	z[0], z[1], z[2], z[3] = r0, r1, r2, r3
}

// subPlus4 sets z = x - y. On a borrow, with lo and t as above, the difference is
// lo - (2-t)*2^255, which is congruent to lo + (2-t)*c. This number does not overflow.
func subPlus4(z, x, y *[4]uint64, c uint64) {
	r0, k := bits.Sub64(x[0], y[0], 0)
	r1, k := bits.Sub64(x[1], y[1], k)
	r2, k := bits.Sub64(x[2], y[2], k)
	r3, k := bits.Sub64(x[3], y[3], k)
	d := (2*c - c&-(r3>>63)) & -k
	r3 &^= k << 63
	r0, k = bits.Add64(r0, d, 0)
	r1, k = bits.Add64(r1, 0, k)
	r2, k = bits.Add64(r2, 0, k)
	r3, _ = bits.Add64(r3, 0, k)
	z[0], z[1], z[2], z[3] = r0, r1, r2, r3
}

// smallPlus4 sets z = x * k for k below 2^32.
func smallPlus4(z, x *[4]uint64, k, c uint64) {
	h0, r0 := bits.Mul64(x[0], k)
	h1, r1 := bits.Mul64(x[1], k)
	h2, r2 := bits.Mul64(x[2], k)
	h3, r3 := bits.Mul64(x[3], k)
	r1, v := bits.Add64(r1, h0, 0)
	r2, v = bits.Add64(r2, h1, v)
	r3, v = bits.Add64(r3, h2, v)
	h3 += v
	r0, v = bits.Sub64(r0, 2*c*h3, 0)
	r1, v = bits.Sub64(r1, 0, v)
	r2, v = bits.Sub64(r2, 0, v)
	r3, v = bits.Sub64(r3, 0, v)
	d := (2*c - c&-(r3>>63)) & -v
	r3 &^= v << 63
	r0, v = bits.Add64(r0, d, 0)
	r1, v = bits.Add64(r1, 0, v)
	r2, v = bits.Add64(r2, 0, v)
	r3, _ = bits.Add64(r3, 0, v)
	z[0], z[1], z[2], z[3] = r0, r1, r2, r3
}

// reducePlus4 sets z to x reduced below the prime.
func reducePlus4(z, x *[4]uint64, c uint64) {
	r0, k := bits.Sub64(x[0], c, 0)
	r1, k := bits.Sub64(x[1], 0, k)
	r2, k := bits.Sub64(x[2], 0, k)
	r3, k := bits.Sub64(x[3], 1<<63, k)
	m := k - 1
	z[0] = x[0] ^ m&(x[0]^r0)
	z[1] = x[1] ^ m&(x[1]^r1)
	z[2] = x[2] ^ m&(x[2]^r2)
	z[3] = x[3] ^ m&(x[3]^r3)
}
