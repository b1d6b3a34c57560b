// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// Arithmetic modulo 2^511 + c for a small c: plus4.go with eight limbs.

// addPlus8 sets z = x + y. Let lo be the lower 511 bits and t the bit above them. On a
// carry the sum is lo + (2+t)*2^511, which is congruent to 2^511 + lo - (1+t)*c. This
// number is neither negative nor too large.
func addPlus8(z, x, y *[8]uint64, c uint64) {
	r0, k := bits.Add64(x[0], y[0], 0)
	r1, k := bits.Add64(x[1], y[1], k)
	r2, k := bits.Add64(x[2], y[2], k)
	r3, k := bits.Add64(x[3], y[3], k)
	r4, k := bits.Add64(x[4], y[4], k)
	r5, k := bits.Add64(x[5], y[5], k)
	r6, k := bits.Add64(x[6], y[6], k)
	r7, k := bits.Add64(x[7], y[7], k)
	d := (c + c&-(r7>>63)) & -k
	r7 |= k << 63
	r0, k = bits.Sub64(r0, d, 0)
	r1, k = bits.Sub64(r1, 0, k)
	r2, k = bits.Sub64(r2, 0, k)
	r3, k = bits.Sub64(r3, 0, k)
	r4, k = bits.Sub64(r4, 0, k)
	r5, k = bits.Sub64(r5, 0, k)
	r6, k = bits.Sub64(r6, 0, k)
	r7, _ = bits.Sub64(r7, 0, k)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0, r1, r2, r3, r4, r5, r6, r7
}

// subPlus8 sets z = x - y. On a borrow, with lo and t as above, the difference is
// lo - (2-t)*2^511, which is congruent to lo + (2-t)*c. This number does not overflow.
func subPlus8(z, x, y *[8]uint64, c uint64) {
	r0, k := bits.Sub64(x[0], y[0], 0)
	r1, k := bits.Sub64(x[1], y[1], k)
	r2, k := bits.Sub64(x[2], y[2], k)
	r3, k := bits.Sub64(x[3], y[3], k)
	r4, k := bits.Sub64(x[4], y[4], k)
	r5, k := bits.Sub64(x[5], y[5], k)
	r6, k := bits.Sub64(x[6], y[6], k)
	r7, k := bits.Sub64(x[7], y[7], k)
	d := (2*c - c&-(r7>>63)) & -k
	r7 &^= k << 63
	r0, k = bits.Add64(r0, d, 0)
	r1, k = bits.Add64(r1, 0, k)
	r2, k = bits.Add64(r2, 0, k)
	r3, k = bits.Add64(r3, 0, k)
	r4, k = bits.Add64(r4, 0, k)
	r5, k = bits.Add64(r5, 0, k)
	r6, k = bits.Add64(r6, 0, k)
	r7, _ = bits.Add64(r7, 0, k)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0, r1, r2, r3, r4, r5, r6, r7
}

// smallPlus8 sets z = x * k for k below 2^32.
func smallPlus8(z, x *[8]uint64, k, c uint64) {
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
	r0, v = bits.Sub64(r0, 2*c*h7, 0)
	r1, v = bits.Sub64(r1, 0, v)
	r2, v = bits.Sub64(r2, 0, v)
	r3, v = bits.Sub64(r3, 0, v)
	r4, v = bits.Sub64(r4, 0, v)
	r5, v = bits.Sub64(r5, 0, v)
	r6, v = bits.Sub64(r6, 0, v)
	r7, v = bits.Sub64(r7, 0, v)
	d := (2*c - c&-(r7>>63)) & -v
	r7 &^= v << 63
	r0, v = bits.Add64(r0, d, 0)
	r1, v = bits.Add64(r1, 0, v)
	r2, v = bits.Add64(r2, 0, v)
	r3, v = bits.Add64(r3, 0, v)
	r4, v = bits.Add64(r4, 0, v)
	r5, v = bits.Add64(r5, 0, v)
	r6, v = bits.Add64(r6, 0, v)
	r7, _ = bits.Add64(r7, 0, v)
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = r0, r1, r2, r3, r4, r5, r6, r7
}

// reducePlus8 sets z to x reduced below the prime.
func reducePlus8(z, x *[8]uint64, c uint64) {
	r0, k := bits.Sub64(x[0], c, 0)
	r1, k := bits.Sub64(x[1], 0, k)
	r2, k := bits.Sub64(x[2], 0, k)
	r3, k := bits.Sub64(x[3], 0, k)
	r4, k := bits.Sub64(x[4], 0, k)
	r5, k := bits.Sub64(x[5], 0, k)
	r6, k := bits.Sub64(x[6], 0, k)
	r7, k := bits.Sub64(x[7], 1<<63, k)
	m := k - 1
	z[0] = x[0] ^ m&(x[0]^r0)
	z[1] = x[1] ^ m&(x[1]^r1)
	z[2] = x[2] ^ m&(x[2]^r2)
	z[3] = x[3] ^ m&(x[3]^r3)
	z[4] = x[4] ^ m&(x[4]^r4)
	z[5] = x[5] ^ m&(x[5]^r5)
	z[6] = x[6] ^ m&(x[6]^r6)
	z[7] = x[7] ^ m&(x[7]^r7)
}
