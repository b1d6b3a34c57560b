package gost341194

import (
	"encoding/binary"
	"math/bits"
)

// blocks hashes p, whose length is a multiple of BlockSize, and adds its blocks to
// the sum (RFC 5831, section 6). t is the table of the parameter set.
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
	// Section 5.1: four keys, each from a permutation of the octets of u^v.
	var keys [8][4]uint32
	u, v := *h, *m
	for i := range 4 {
		permute(&keys, i, u[0]^v[0], u[1]^v[1], u[2]^v[2], u[3]^v[3])
		u = [4]uint64{u[1], u[2], u[3], u[0] ^ u[1]} // A
		if i == 1 {
			for j := range u {
				u[j] ^= c3[j]
			}
		}
		v = [4]uint64{v[2], v[3], v[0] ^ v[1], v[1] ^ v[2]} // A twice
	}

	// Section 5.2 and 5.3.
	s := *h
	encrypt(&s, &keys, t)
	for range 3 {
		psi4(&s)
	}
	for i := range s {
		s[i] ^= m[i]
	}
	psi(&s)
	for i := range s {
		s[i] ^= h[i]
	}
	for range 15 {
		psi4(&s)
	}
	psi(&s)
	*h = s
}

// permute is P: word k of key i takes octet k of each of the four words.
func permute(keys *[8][4]uint32, i int, w0, w1, w2, w3 uint64) {
	for k := range keys {
		keys[k][i] = uint32(w0&0xff) | uint32(w1&0xff)<<8 | uint32(w2&0xff)<<16 | uint32(w3)<<24
		w0, w1, w2, w3 = w0>>8, w1>>8, w2>>8, w3>>8
	}
}

// encrypt enciphers each word of s with its own key. The four run side by side,
// because one alone would wait for its table look-ups.
func encrypt(s *[4]uint64, keys *[8][4]uint32, t *[4][256]uint32) {
	a0, b0 := uint32(s[0]), uint32(s[0]>>32)
	a1, b1 := uint32(s[1]), uint32(s[1]>>32)
	a2, b2 := uint32(s[2]), uint32(s[2]>>32)
	a3, b3 := uint32(s[3]), uint32(s[3]>>32)
	for i := 0; i < 32; i += 2 {
		j, next := i&7, 1
		if i >= 24 {
			j, next = 31-i, -1 // the last eight rounds take the keys backwards
		}
		k := &keys[j&7]
		b0 ^= round(a0+k[0], t)
		b1 ^= round(a1+k[1], t)
		b2 ^= round(a2+k[2], t)
		b3 ^= round(a3+k[3], t)
		k = &keys[(j+next)&7]
		a0 ^= round(b0+k[0], t)
		a1 ^= round(b1+k[1], t)
		a2 ^= round(b2+k[2], t)
		a3 ^= round(b3+k[3], t)
	}
	// The last round does not exchange the halves.
	s[0] = uint64(b0) | uint64(a0)<<32
	s[1] = uint64(b1) | uint64(a1)<<32
	s[2] = uint64(b2) | uint64(a2)<<32
	s[3] = uint64(b3) | uint64(a3)<<32
}

func round(x uint32, t *[4][256]uint32) uint32 {
	return t[0][x&255] ^ t[1][x>>8&255] ^ t[2][x>>16&255] ^ t[3][x>>24]
}

// psi is the mixing map of section 5.3: a shift register of sixteen 16-bit words,
// y1 to y16, that takes y1^y2^y3^y4^y13^y16 in.
func psi(y *[4]uint64) {
	in := y[0] ^ y[0]>>16 ^ y[0]>>32 ^ y[0]>>48 ^ y[3] ^ y[3]>>48
	y[0] = y[0]>>16 | y[1]<<48
	y[1] = y[1]>>16 | y[2]<<48
	y[2] = y[2]>>16 | y[3]<<48
	y[3] = y[3]>>16 | in<<48
}

// psi4 is psi four times. All terms of the four new words but y16, the word before
// each, are known at the start; a running sum over the four words brings it in.
func psi4(y *[4]uint64) {
	pair := y[0] ^ (y[0]>>16 | y[1]<<48) // y1^y2, y2^y3, ...
	next := y[1] ^ y[1]>>16              // y5^y6, y6^y7, ...
	in := pair ^ (pair>>32 | next<<32) ^ y[3]
	in ^= in << 16
	in ^= in << 32
	in ^= y[3] >> 48 * 0x0001000100010001
	y[0], y[1], y[2], y[3] = y[1], y[2], y[3], in
}
