// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// The functions of invert.go for four limbs, without loops. They are twice as fast,
// and most signatures need an inversion.

// portableCombine4 is combine31 for four limbs.
func portableCombine4(a, b *[4]uint64, f *factors) (na, nb uint64) {
	u0, u1, u2, u3, u4 := linear4(a, b, f.f0, f.g0)
	v0, v1, v2, v3, v4 := linear4(a, b, f.f1, f.g1)
	na, nb = -(u4 >> 63), -(v4 >> 63)
	abs4(a, u0>>31|u1<<33, u1>>31|u2<<33, u2>>31|u3<<33, u3>>31|u4<<33, na)
	abs4(b, v0>>31|v1<<33, v1>>31|v2<<33, v2>>31|v3<<33, v3>>31|v4<<33, nb)
	return na, nb
}

// abs4 sets z to the limbs r, negated if mask is all ones.
func abs4(z *[4]uint64, r0, r1, r2, r3, mask uint64) {
	r0, k := bits.Add64(r0^mask, mask&1, 0)
	r1, k = bits.Add64(r1^mask, 0, k)
	r2, k = bits.Add64(r2^mask, 0, k)
	r3, _ = bits.Add64(r3^mask, 0, k)
	z[0], z[1], z[2], z[3] = r0, r1, r2, r3
}

// portableCombineMod4 is combineMod62 for four limbs.
func portableCombineMod4(u, v, m *[4]uint64, n uint64, f *factors) {
	u0, u1, u2, u3, u4 := linear4(u, v, f.f0, f.g0)
	v0, v1, v2, v3, v4 := linear4(u, v, f.f1, f.g1)
	divide4(u, u0, u1, u2, u3, u4, m, n)
	divide4(v, v0, v1, v2, v3, v4, m, n)
}

// linear4 is linear for four limbs.
func linear4(a, b *[4]uint64, f, g uint64) (w0, w1, w2, w3, w4 uint64) {
	h0, w0 := bits.Mul64(a[0], f)
	h1, w1 := bits.Mul64(a[1], f)
	h2, w2 := bits.Mul64(a[2], f)
	w4, w3 = bits.Mul64(a[3], f)
	w1, k := bits.Add64(w1, h0, 0)
	w2, k = bits.Add64(w2, h1, k)
	w3, k = bits.Add64(w3, h2, k)
	w4 += k

	h0, l0 := bits.Mul64(b[0], g)
	h1, l1 := bits.Mul64(b[1], g)
	h2, l2 := bits.Mul64(b[2], g)
	h3, l3 := bits.Mul64(b[3], g)
	w0, k = bits.Add64(w0, l0, 0)
	w1, k = bits.Add64(w1, l1, k)
	w2, k = bits.Add64(w2, l2, k)
	w3, k = bits.Add64(w3, l3, k)
	w4 += h3 + k
	w1, k = bits.Add64(w1, h0, 0)
	w2, k = bits.Add64(w2, h1, k)
	w3, k = bits.Add64(w3, h2, k)
	w4 += k

	// A negative factor was used as a number that is 2^64 too large.
	s := -(f >> 63)
	w1, k = bits.Sub64(w1, a[0]&s, 0)
	w2, k = bits.Sub64(w2, a[1]&s, k)
	w3, k = bits.Sub64(w3, a[2]&s, k)
	w4 -= a[3]&s + k
	s = -(g >> 63)
	w1, k = bits.Sub64(w1, b[0]&s, 0)
	w2, k = bits.Sub64(w2, b[1]&s, k)
	w3, k = bits.Sub64(w3, b[2]&s, k)
	w4 -= b[3]&s + k
	return w0, w1, w2, w3, w4
}

// divide4 is divide62 for four limbs.
func divide4(z *[4]uint64, w0, w1, w2, w3, w4 uint64, m *[4]uint64, n uint64) {
	q := w0 * n & (1<<62 - 1)
	h0, l0 := bits.Mul64(q, m[0])
	h1, l1 := bits.Mul64(q, m[1])
	h2, l2 := bits.Mul64(q, m[2])
	h3, l3 := bits.Mul64(q, m[3])
	w0, k := bits.Add64(w0, l0, 0)
	w1, k = bits.Add64(w1, l1, k)
	w2, k = bits.Add64(w2, l2, k)
	w3, k = bits.Add64(w3, l3, k)
	w4 += h3 + k
	w1, k = bits.Add64(w1, h0, 0)
	w2, k = bits.Add64(w2, h1, k)
	w3, k = bits.Add64(w3, h2, k)
	w4 += k
	w0 = w0>>62 | w1<<2
	w1 = w1>>62 | w2<<2
	w2 = w2>>62 | w3<<2
	w3 = w3>>62 | w4<<2
	w4 = uint64(int64(w4) >> 62)

	s := -(w4 >> 63) // adds m if negative
	w0, k = bits.Add64(w0, m[0]&s, 0)
	w1, k = bits.Add64(w1, m[1]&s, k)
	w2, k = bits.Add64(w2, m[2]&s, k)
	w3, k = bits.Add64(w3, m[3]&s, k)
	lessMont4(z, w0, w1, w2, w3, w4+k, m)
}
