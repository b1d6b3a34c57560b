// SPDX-License-Identifier: Apache-2.0

package gost341194

import (
	"encoding/binary"
	"math/bits"
)

// blocks hashes p, whose length is a multiple of BlockSize, and adds its blocks to
// the sum (RFC 5831, section 6). t is the result of PublicTable of the parameter set.
func blocks(s *state, t *[4][256]uint32, p []byte) {
	for len(p) >= BlockSize {
		b := (*[BlockSize]byte)(p)
		p = p[BlockSize:]
		var m [4]uint64
		var carry uint64
		for i := range m {
			m[i] = binary.LittleEndian.Uint64(b[8*i:])
			s.sigma[i], carry = bits.Add64(s.sigma[i], m[i], carry)
		}
		step(&s.h, &m, t)
	}
}

// c3 is the constant C[3] of RFC 5831, section 5.1.
var c3 = [4]uint64{0xff00ff00ff00ff00, 0x00ff00ff00ff00ff, 0xff0000ff00ffff00, 0xff00ffff000000ff}

// step is the step hash function of RFC 5831, section 5.
func step(h, m *[4]uint64, t *[4][256]uint32) {
	// Section 5.1: four keys, each from a permutation of the bytes of u^v.
	var keys [8][4]uint32
	u0, u1, u2, u3 := h[0], h[1], h[2], h[3]
	v0, v1, v2, v3 := m[0], m[1], m[2], m[3]
	for i := range 4 {
		permute(&keys, i, u0^v0, u1^v1, u2^v2, u3^v3)
		u0, u1, u2, u3 = u1, u2, u3, u0^u1 // A
		if i == 1 {
			u0, u1, u2, u3 = u0^c3[0], u1^c3[1], u2^c3[2], u3^c3[3]
		}
		v0, v1, v2, v3 = v2, v3, v0^v1, v1^v2 // A twice
	}

	// Section 5.2.
	s := *h
	encrypt(&s, &keys, t)

	// Section 5.3: psi 12 times, once and 61 times.
	y0, y1, y2, y3 := s[0], s[1], s[2], s[3]
	y4 := four(y0, y1, y3)
	y5 := four(y1, y2, y4)
	y6 := four(y2, y3, y5)
	y0, y1, y2, y3 = psi(y3^m[0], y4^m[1], y5^m[2], y6^m[3])
	*h = psi61(y0^h[0], y1^h[1], y2^h[2], y3^h[3])
}

// permute is the map P: word k of key i takes byte k of each of the four words. That
// is a transposition of 2 x 2 and then of 4 x 4 bytes, in both halves of the words.
func permute(keys *[8][4]uint32, i int, w0, w1, w2, w3 uint64) {
	w0, w1 = exchange(w0, w1, 8, 0x00ff00ff00ff00ff)
	w2, w3 = exchange(w2, w3, 8, 0x00ff00ff00ff00ff)
	w0, w2 = exchange(w0, w2, 16, 0x0000ffff0000ffff)
	w1, w3 = exchange(w1, w3, 16, 0x0000ffff0000ffff)
	keys[0][i], keys[4][i] = uint32(w0), uint32(w0>>32)
	keys[1][i], keys[5][i] = uint32(w1), uint32(w1>>32)
	keys[2][i], keys[6][i] = uint32(w2), uint32(w2>>32)
	keys[3][i], keys[7][i] = uint32(w3), uint32(w3>>32)
}

// exchange swaps the bits of a under mask<<n with those of b under mask.
func exchange(a, b uint64, n int, mask uint64) (uint64, uint64) {
	t := (a>>n ^ b) & mask
	return a ^ t<<n, b ^ t
}

// encrypt enciphers each word of s with its own key. The four words are enciphered
// side by side, because one alone would wait for its table look-ups.
func encrypt(s *[4]uint64, keys *[8][4]uint32, t *[4][256]uint32) {
	a0, b0 := uint32(s[0]), uint32(s[0]>>32)
	a1, b1 := uint32(s[1]), uint32(s[1]>>32)
	a2, b2 := uint32(s[2]), uint32(s[2]>>32)
	a3, b3 := uint32(s[3]), uint32(s[3]>>32)
	for range 3 {
		for j := 0; j < 8; j += 2 {
			k := &keys[j]
			b0 = round(b0, a0+k[0], t)
			b1 = round(b1, a1+k[1], t)
			b2 = round(b2, a2+k[2], t)
			b3 = round(b3, a3+k[3], t)
			k = &keys[j+1]
			a0 = round(a0, b0+k[0], t)
			a1 = round(a1, b1+k[1], t)
			a2 = round(a2, b2+k[2], t)
			a3 = round(a3, b3+k[3], t)
		}
	}
	for j := 7; j > 0; j -= 2 { // the last eight rounds take the keys in descending order
		k := &keys[j]
		b0 = round(b0, a0+k[0], t)
		b1 = round(b1, a1+k[1], t)
		b2 = round(b2, a2+k[2], t)
		b3 = round(b3, a3+k[3], t)
		k = &keys[j-1]
		a0 = round(a0, b0+k[0], t)
		a1 = round(a1, b1+k[1], t)
		a2 = round(a2, b2+k[2], t)
		a3 = round(a3, b3+k[3], t)
	}
	// The last round does not exchange the halves.
	s[0] = uint64(b0) | uint64(a0)<<32
	s[1] = uint64(b1) | uint64(a1)<<32
	s[2] = uint64(b2) | uint64(a2)<<32
	s[3] = uint64(b3) | uint64(a3)<<32
}

// round returns y plus the round function of x. It looks up the outer bytes of x
// first, because they are available first.
func round(y, x uint32, t *[4][256]uint32) uint32 {
	return y ^ t[0][x&255] ^ t[3][x>>24] ^ t[1][x>>8&255] ^ t[2][x>>16&255]
}

// psi is the mixing map of section 5.3: a shift register of sixteen 16-bit words, y(0)
// to y(15), four in each argument. It drops y(0) and appends y(16) by the rule
//
//	y(n+16) = y(n) + y(n+1) + y(n+2) + y(n+3) + y(n+12) + y(n+15)
func psi(q0, q1, q2, q3 uint64) (uint64, uint64, uint64, uint64) {
	in := q0 ^ q0>>16 ^ q0>>32 ^ q0>>48 ^ q3 ^ q3>>48
	return q0>>16 | q1<<48, q1>>16 | q2<<48, q2>>16 | q3<<48, q3>>16 | in<<48
}

// four returns the next four words, y(16) to y(19). q0, q1 and q3 hold four words each,
// from y(0), y(4) and y(12) on. All terms are known at the start except y(n+15), the
// word before each new word. A running sum over the four words adds it.
func four(q0, q1, q3 uint64) uint64 {
	pair := q0 ^ (q0>>16 | q1<<48) // y(0)+y(1), y(1)+y(2), ...
	next := q1 ^ q1>>16            // y(4)+y(5), ...
	in := pair ^ (pair>>32 | next<<32) ^ q3>>48 ^ q3
	in ^= in << 16
	return in ^ in<<32
}

// psi61 applies psi 61 times and returns y(61) to y(76). In characteristic 2, the
// square of the polynomial of the rule above has the same terms at twice the
// distances, and the same is true of the square of the square. With larger distances,
// more words can be computed at once. So psi61 first uses the rule itself, then its
// square, then its fourth power.
func psi61(q0, q1, q2, q3 uint64) [4]uint64 {
	q4 := four(q0, q1, q3)
	q5 := four(q1, q2, q4)
	q6 := four(q2, q3, q5)
	q7 := four(q3, q4, q6)
	q8 := fourByTwo(q0, q1, q2, q6, q7)
	q9 := fourByTwo(q1, q2, q3, q7, q8)
	q10 := fourByTwo(q2, q3, q4, q8, q9)
	q11 := fourByTwo(q3, q4, q5, q9, q10)
	q12 := fourByTwo(q4, q5, q6, q10, q11)
	q13 := fourByTwo(q5, q6, q7, q11, q12)
	q14 := fourByTwo(q6, q7, q8, q12, q13)
	q15 := fourByTwo(q7, q8, q9, q13, q14)
	q16 := q0 ^ q1 ^ q2 ^ q3 ^ q12 ^ q15 // the rule with the distances 0, 4, 8, 12, 48 and 60
	q17 := q1 ^ q2 ^ q3 ^ q4 ^ q13 ^ q16
	q18 := q2 ^ q3 ^ q4 ^ q5 ^ q14 ^ q17
	q19 := q3 ^ q4 ^ q5 ^ q6 ^ q15 ^ q18
	return [4]uint64{q15>>16 | q16<<48, q16>>16 | q17<<48, q17>>16 | q18<<48, q18>>16 | q19<<48}
}

// fourByTwo is four for the rule with the distances 0, 2, 4, 6, 24 and 30. It returns
// y(32) to y(35).
func fourByTwo(q0, q1, q2, q6, q7 uint64) uint64 {
	in := (q0 ^ q1 ^ q6 ^ (q0^q1)>>32 ^ (q1^q2)<<32) ^ q7>>32
	return in ^ in<<32
}
