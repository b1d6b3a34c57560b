package field

import "math/bits"

// invert sets z = 1/x mod m, and 0 for x = 0, for x < m and m prime of four or
// eight limbs; n is -1/m mod 2^64. It runs in constant time.
//
// It is the binary Euclidean algorithm on approximations (T. Pornin, "Optimized
// Binary GCD for Modular Inversion", eprint 2020/972): with a = x, b = m, u = 1,
// v = 0 it keeps a = x*u and b = x*v modulo m, and halves one of a and b (up to
// signs) a step, so that after 2*len(m)-1 steps a is 0 and b is 1. The steps are
// done 31 at a time on one word holding the low 31 and the high 33 bits of a
// and b, which decide all comparisons except some that cost only a sign. The
// factors gathered there are then applied to the full numbers. A power by
// Fermat costs five times as much with eight limbs.
func invert(z, x, m []uint64, n uint64) {
	size := len(m)
	var bufA, bufB, bufU, bufV [8]uint64
	a, b, u, v := bufA[:size], bufB[:size], bufU[:size], bufV[:size]
	copy(a, x)
	copy(b, m)
	u[0] = 1

	const steps = 31
	for done := 0; done < 2*64*size-1; done += steps {
		xa, xb := approximate(a, b)
		f0, g0, f1, g1 := reduce31(xa, xb)
		var na, nb uint64
		if size == 4 {
			na, nb = combine4((*[4]uint64)(a), (*[4]uint64)(b), f0, g0, f1, g1)
		} else {
			na, nb = combine31(a, b, f0, g0, f1, g1)
		}
		// A negative a or b changes its sign, and its factors with it.
		f0, g0 = (f0^na)-na, (g0^na)-na
		f1, g1 = (f1^nb)-nb, (g1^nb)-nb
		if size == 4 {
			combineMod4((*[4]uint64)(u), (*[4]uint64)(v), (*[4]uint64)(m), n, f0, g0, f1, g1)
		} else {
			combineMod31(u, v, m, n, f0, g0, f1, g1)
		}
	}
	copy(z, v)
	clear(bufA[:])
	clear(bufB[:])
	clear(bufU[:])
	clear(bufV[:])
}

// approximate returns a and b, seen through the window of 33 bits that begins at
// the top bit of the longer one, above their low 31 bits; exactly a and b when
// both fit one limb.
func approximate(a, b []uint64) (xa, xb uint64) {
	var aHi, aLo, bHi, bLo uint64
	hi, lo := ^uint64(0), ^uint64(0) // masks: is the top, the second limb still to be found?
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

// reduce31 does 31 steps and returns the factors: the new a is (a*f0+b*g0)/2^31,
// the new b (a*f1+b*g1)/2^31. They lie between -2^31 and 2^31.
func reduce31(a, b uint64) (f0, g0, f1, g1 uint64) {
	// Both factors of a number share a word, f + g*2^32, while the steps run.
	p, q := steps31(a, b)
	const bias, word = 1<<31 - 1, 1<<32 - 1
	p += bias<<32 | bias
	q += bias<<32 | bias
	return p&word - bias, p>>32 - bias, q&word - bias, q>>32 - bias
}

// portableSteps31 does the steps: where a is odd, the smaller of a and b is taken
// off the larger, which becomes a; then a, even now, is halved.
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

// combine31 sets a = |a*f0+b*g0|/2^31, b = |a*f1+b*g1|/2^31 and returns the masks
// of the signs lost.
func combine31(a, b []uint64, f0, g0, f1, g1 uint64) (na, nb uint64) {
	var bufA, bufB [9]uint64
	wa, wb := bufA[:len(a)+1], bufB[:len(a)+1]
	linear(wa, a, b, f0, g0)
	linear(wb, a, b, f1, g1)
	for i := range a {
		a[i] = wa[i]>>31 | wa[i+1]<<33
		b[i] = wb[i]>>31 | wb[i+1]<<33
	}
	na, nb = -(wa[len(a)] >> 63), -(wb[len(a)] >> 63)
	negateIf(a, na)
	negateIf(b, nb)
	return na, nb
}

// linear sets w = a*f + b*g, a number in two's complement one limb longer, for factors
// in two's complement of at most 2^31 in magnitude.
func linear(w, a, b []uint64, f, g uint64) {
	sf, sg := -(f >> 63), -(g >> 63)
	var top, k uint64 // what is carried, in two's complement as well
	w = w[:len(a)+1]
	b = b[:len(a)]
	for i := range a {
		h0, l0 := bits.Mul64(a[i], f)
		h1, l1 := bits.Mul64(b[i], g)
		l0, k = bits.Add64(l0, l1, 0)
		// A negative factor was taken 2^64 too large.
		h0 += h1 + k - a[i]&sf - b[i]&sg
		w[i], k = bits.Add64(l0, top, 0)
		top = h0 + k - top>>63
	}
	w[len(a)] = top
}

// negateIf sets x = -x where mask is all ones.
func negateIf(x []uint64, mask uint64) {
	k := mask & 1
	for i := range x {
		x[i], k = bits.Add64(x[i]^mask, k, 0)
	}
}

// combineMod31 sets u = (u*f0+v*g0)/2^31 and v = (u*f1+v*g1)/2^31 modulo m.
func combineMod31(u, v, m []uint64, n, f0, g0, f1, g1 uint64) {
	var bufU, bufV [9]uint64
	wu, wv := bufU[:len(m)+1], bufV[:len(m)+1]
	linear(wu, u, v, f0, g0)
	linear(wv, u, v, f1, g1)
	divide31(u, wu, m, n)
	divide31(v, wv, m, n)
}

// divide31 sets z = w/2^31 mod m for -m*2^31 <= w <= m*2^31: the multiple of m
// that clears the low 31 bits is added, which leaves a number between -m and 2m.
func divide31(z, w, m []uint64, n uint64) {
	q := w[0] * n & (1<<31 - 1)
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
		z[i] = w[i]>>31 | w[i+1]<<33
	}
	top = uint64(int64(w[len(m)]) >> 31)
	top += addIf(z, z, m, -(top >> 63)) // negative: m more
	w = w[:len(m)]
	borrow := subIf(w, z, m, ^uint64(0))
	_, borrow = bits.Sub64(top, 0, borrow)
	assign(z, w, borrow-1)
}
