// SPDX-License-Identifier: Apache-2.0

package field

import "math/bits"

// invert sets z = 1/x mod m, or z = 0 if x is 0. x must be below m, and m must be a
// prime of four or eight limbs. n is -1/m mod 2^64. It runs in constant time.
//
// It uses the binary Euclidean algorithm on approximations (T. Pornin, "Optimized
// Binary GCD for Modular Inversion", eprint 2020/972). It begins with a = x, b = m,
// u = 1, v = 0 and keeps a = x*u and b = x*v modulo m. Each step halves a or b (up to
// signs), so after 2*64*len(m)-1 steps a is 0 and b is 1. The steps run 31 at a time
// on approximations of one word: the high 33 bits and the low 31 bits of a and b. A
// comparison of approximations may be wrong, but then only a sign is wrong. The
// factors from the 31 steps are then applied to the full a and b, and those from 62
// steps to u and v. With eight limbs, a power by Fermat's theorem takes five times as
// long.
func invert(z, x, m []uint64, n uint64) {
	size := len(m)
	var bufA, bufB, bufU, bufV [8]uint64
	a, b, u, v := bufA[:size], bufB[:size], bufU[:size], bufV[:size]
	copy(a, x)
	copy(b, m)
	u[0] = 1

	// e has the factors of 31 steps that were not yet applied to u and v, f those of the
	// next 31 steps or of all 62. The last 31 steps have no others to go with them, so
	// their factors are multiplied by 2^31.
	const steps = 31
	var e, f factors
	for done, pending := 0, false; done < 2*64*size-1; done += steps {
		xa, xb := approximate(a, b)
		f = reduce31(xa, xb)
		var na, nb uint64
		if size == 4 {
			na, nb = combine4((*[4]uint64)(a), (*[4]uint64)(b), &f)
		} else {
			na, nb = combine31(a, b, &f)
		}
		// If a or b was negative, its sign was changed. Do the same to its factors.
		f.f0, f.g0 = (f.f0^na)-na, (f.g0^na)-na
		f.f1, f.g1 = (f.f1^nb)-nb, (f.g1^nb)-nb
		switch last := done+steps >= 2*64*size-1; {
		case pending:
			f = f.after(&e)
			pending = false
		case last:
			f = factors{f.f0 << steps, f.g0 << steps, f.f1 << steps, f.g1 << steps}
		default:
			e, pending = f, true
			continue
		}
		if size == 4 {
			combineMod4((*[4]uint64)(u), (*[4]uint64)(v), (*[4]uint64)(m), n, &f)
		} else {
			combineMod62(u, v, m, n, &f)
		}
	}
	copy(z, v)
	clear(bufA[:])
	clear(bufB[:])
	clear(bufU[:])
	clear(bufV[:])
	e, f = factors{}, factors{}
}

// factors are the factors of some number n of steps, in two's complement: the new a is
// (a*f0+b*g0)/2^n, the new b is (a*f1+b*g1)/2^n. |f0|+|g0| and |f1|+|g1| are at most
// 2^n.
type factors struct{ f0, g0, f1, g1 uint64 }

// after returns the factors of the steps of e and then those of f.
func (f *factors) after(e *factors) factors {
	return factors{
		f.f0*e.f0 + f.g0*e.f1, f.f0*e.g0 + f.g0*e.g1,
		f.f1*e.f0 + f.g1*e.f1, f.f1*e.g0 + f.g1*e.g1,
	}
}

// approximate returns approximations of a and b. The upper 33 bits are a window that
// begins at the top bit of the longer number. The lower 31 bits are the low bits. If
// both numbers fit into one limb, it returns them exactly.
func approximate(a, b []uint64) (xa, xb uint64) {
	var aHi, aLo, bHi, bLo uint64
	hi, lo := ^uint64(0), ^uint64(0) // masks: all ones until the top limb, or the limb below it, is found
	for j := len(a) - 1; j >= 0; j-- {
		aw, bw := a[j], b[j]
		aHi ^= (aHi ^ aw) & hi
		aLo ^= (aLo ^ aw) & lo
		bHi ^= (bHi ^ bw) & hi
		bLo ^= (bLo ^ bw) & lo
		lo = hi
		w := aw | bw
		hi &= (w|-w)>>63 - 1
	}
	s := uint(bits.LeadingZeros64(aHi|bHi)) & 63
	aHi = aHi<<s | aLo>>1>>(63-s)
	bHi = bHi<<s | bLo>>1>>(63-s)
	const low = 1<<31 - 1
	xa = aHi&^low | a[0]&low
	xb = bHi&^low | b[0]&low
	xa ^= (xa ^ a[0]) & lo
	xb ^= (xb ^ b[0]) & lo
	return xa, xb
}

// reduce31 does 31 steps and returns their factors.
func reduce31(a, b uint64) factors {
	// During the steps, one word holds both factors of a number: f + g*2^32.
	p, q := steps31(a, b)
	const bias, word = 1<<31 - 1, 1<<32 - 1
	p += bias<<32 | bias
	q += bias<<32 | bias
	return factors{p&word - bias, p>>32 - bias, q&word - bias, q>>32 - bias}
}

// portableSteps31 does 31 steps. In each step, if a is odd, a becomes the difference
// of the larger and the smaller number and b the smaller number. Then a is even, and
// it is halved.
func portableSteps31(a, b uint64) (p, q uint64) {
	p, q = 1, 1<<32
	for range 31 {
		odd := -(a & 1)
		_, smaller := bits.Sub64(a, b, 0)
		swap := odd & -smaller
		t := (a ^ b) & swap
		a ^= t
		b ^= t
		t = (p ^ q) & swap
		p ^= t
		q ^= t
		a = (a - b&odd) >> 1
		p -= q & odd
		q <<= 1
	}
	return p, q
}

// combine31 sets a = |a*f0+b*g0|/2^31 and b = |a*f1+b*g1|/2^31. It returns the masks
// na and nb, all ones if the number was negative.
func combine31(a, b []uint64, f *factors) (na, nb uint64) {
	var bufA, bufB [9]uint64
	wa, wb := bufA[:len(a)+1], bufB[:len(a)+1]
	linear(wa, a, b, f.f0, f.g0)
	linear(wb, a, b, f.f1, f.g1)
	for i := range a {
		a[i] = wa[i]>>31 | wa[i+1]<<33
		b[i] = wb[i]>>31 | wb[i+1]<<33
	}
	na, nb = -(wa[len(a)] >> 63), -(wb[len(a)] >> 63)
	negateIf(a, na)
	negateIf(b, nb)
	return na, nb
}

// linear sets w = a*f + b*g, in two's complement and one limb longer than a and b. The
// factors are in two's complement and at most 2^62 in magnitude.
func linear(w, a, b []uint64, f, g uint64) {
	sf, sg := -(f >> 63), -(g >> 63)
	var top, k uint64 // the carry, also in two's complement
	w = w[:len(a)+1]
	b = b[:len(a)]
	for i := range a {
		h0, l0 := bits.Mul64(a[i], f)
		h1, l1 := bits.Mul64(b[i], g)
		l0, k = bits.Add64(l0, l1, 0)
		// A negative factor was used as a number that is 2^64 too large.
		h0 += h1 + k - a[i]&sf - b[i]&sg
		w[i], k = bits.Add64(l0, top, 0)
		top = h0 + k - top>>63
	}
	w[len(a)] = top
}

// negateIf sets x = -x if mask is all ones and does not change x if mask is 0.
func negateIf(x []uint64, mask uint64) {
	k := mask & 1
	for i := range x {
		x[i], k = bits.Add64(x[i]^mask, k, 0)
	}
}

// combineMod62 sets u = (u*f0+v*g0)/2^62 and v = (u*f1+v*g1)/2^62 modulo m.
func combineMod62(u, v, m []uint64, n uint64, f *factors) {
	var bufU, bufV [9]uint64
	wu, wv := bufU[:len(m)+1], bufV[:len(m)+1]
	linear(wu, u, v, f.f0, f.g0)
	linear(wv, u, v, f.f1, f.g1)
	divide62(u, wu, m, n)
	divide62(v, wv, m, n)
}

// divide62 sets z = w/2^62 mod m for -m*2^62 <= w <= m*2^62. It adds the multiple of m
// that clears the low 62 bits. The quotient is then between -m and 2m.
func divide62(z, w, m []uint64, n uint64) {
	q := w[0] * n & (1<<62 - 1)
	var top, k uint64
	w = w[:len(m)+1]
	z = z[:len(m)]
	for i := range m {
		h, l := bits.Mul64(q, m[i])
		l, k = bits.Add64(l, top, 0)
		h += k
		w[i], k = bits.Add64(w[i], l, 0)
		top = h + k
	}
	w[len(m)] += top
	for i := range m {
		z[i] = w[i]>>62 | w[i+1]<<2
	}
	top = uint64(int64(w[len(m)]) >> 62)
	top += addIf(z, z, m, -(top >> 63)) // adds m if negative
	w = w[:len(m)]
	borrow := subIf(w, z, m, ^uint64(0))
	_, borrow = bits.Sub64(top, 0, borrow)
	assign(z, w, borrow-1)
}
