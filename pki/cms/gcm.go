// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost28147"
)

const (
	gcmNonce = 12 // bytes of a nonce
	gcmCode  = 16 // bytes of the code that is written; 12 or more are read
	// gcmMost is the largest number of bytes that one key and nonce encrypt (NIST SP 800-38D, 5.2.1.1).
	gcmMost = 1<<36 - 32
)

// gcm is GCMParameters (RFC 5084, section 3.2). The standard library has GCM for messages in
// memory only, so this package computes its code.
type gcm struct {
	nonce []byte
	code  int // bytes
}

func newGCM(rand io.Reader, _ *gost28147.SBox) (contentState, error) {
	nonce, err := draw(rand, gcmNonce)
	return gcm{nonce, gcmCode}, err
}

func readGCM(params []byte) (contentState, error) {
	in := cryptobyte.String(params)
	var seq, nonce cryptobyte.String
	g := gcm{code: 12}
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() || !seq.ReadASN1(&nonce, cbasn1.OCTET_STRING) ||
		seq.PeekASN1Tag(cbasn1.INTEGER) && !seq.ReadASN1Integer(&g.code) || !seq.Empty() || g.code < 12 || g.code > 16 {
		return nil, errors.New("cms: the parameters of AES-GCM are malformed")
	}
	if len(nonce) != gcmNonce {
		return nil, errors.New("cms: a nonce of AES-GCM that has not 12 bytes is not supported")
	}
	g.nonce = nonce
	return g, nil
}

func (g gcm) write(w *writer) {
	mark := w.len()
	w.number(byte(g.code))
	w.wrap(tagOctetString, g.nonce)
	w.close(tagSequence, mark)
}

func (g gcm) macSize(bool) int        { return g.code }
func (g gcm) padded(size int64) int64 { return size }

func (g gcm) decrypter(key, aad, code []byte, _ bool) (decrypter, error) {
	s, err := g.start(key, aad)
	if err != nil {
		return nil, err
	}
	s.want = code
	return s, nil
}

func (g gcm) encrypter(key, aad []byte, _ bool) (encrypter, error) { return g.start(key, aad) }

// start returns the state after the additional data.
func (g gcm) start(key, aad []byte) (*gcmState, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	s := &gcmState{size: g.code, aad: uint64(len(aad))}
	var zero, counter [aes.BlockSize]byte
	b.Encrypt(zero[:], zero[:])
	s.hash.init(&zero)
	copy(counter[:], g.nonce)
	counter[15] = 1
	// The first block of the gamma hides the code. The counter of a content within gcmMost never
	// carries out of its last 32 bits.
	s.gamma = cipher.NewCTR(b, counter[:])
	s.gamma.XORKeyStream(s.hidden[:], s.hidden[:])
	s.hash.write(aad)
	s.hash.align()
	return s, nil
}

// gcmState encrypts or decrypts one content.
type gcmState struct {
	gamma     cipher.Stream
	hash      ghash
	hidden    [aes.BlockSize]byte
	aad, text uint64 // bytes
	size      int    // of the code
	want      []byte
}

func (s *gcmState) decrypt(part []byte, _ bool) []byte {
	s.text += uint64(len(part))
	s.hash.write(part)
	s.gamma.XORKeyStream(part, part)
	return part
}

func (s *gcmState) encrypt(part []byte, _ bool) []byte {
	s.text += uint64(len(part))
	s.gamma.XORKeyStream(part, part)
	s.hash.write(part)
	return part
}

func (s *gcmState) right() bool { return subtle.ConstantTimeCompare(s.code(), s.want) == 1 }

func (s *gcmState) code() []byte {
	s.hash.align()
	var lengths, sum [aes.BlockSize]byte
	binary.BigEndian.PutUint64(lengths[:], 8*s.aad)
	binary.BigEndian.PutUint64(lengths[8:], 8*s.text)
	s.hash.write(lengths[:])
	binary.BigEndian.PutUint64(sum[:], s.hash.y1)
	binary.BigEndian.PutUint64(sum[8:], s.hash.y0)
	subtle.XORBytes(sum[:], sum[:], s.hidden[:])
	return sum[:s.size]
}

// ghash is the hash of GCM (NIST SP 800-38D, section 6.4), in constant time: products of
// polynomials are made of products of numbers with room for carries between their bits.
type ghash struct {
	h0, h1, h2    uint64 // halves of the key and their sum; the bits of GCM are in reverse order
	h0r, h1r, h2r uint64 // the same with reversed bits, for the high halves of products
	y0, y1        uint64
	part          [aes.BlockSize]byte
	have          int // bytes of part
}

func (g *ghash) init(key *[aes.BlockSize]byte) {
	g.h1, g.h0 = binary.BigEndian.Uint64(key[:]), binary.BigEndian.Uint64(key[8:])
	g.h0r, g.h1r = bits.Reverse64(g.h0), bits.Reverse64(g.h1)
	g.h2, g.h2r = g.h0^g.h1, g.h0r^g.h1r
}

func (g *ghash) write(p []byte) {
	if g.have > 0 {
		n := copy(g.part[g.have:], p)
		g.have, p = g.have+n, p[n:]
		if g.have < len(g.part) {
			return
		}
		g.block(g.part[:])
		g.have = 0
	}
	for ; len(p) >= aes.BlockSize; p = p[aes.BlockSize:] {
		g.block(p)
	}
	g.have = copy(g.part[:], p)
}

// align adds zeros up to a whole block.
func (g *ghash) align() {
	if g.have > 0 {
		clear(g.part[g.have:])
		g.block(g.part[:])
		g.have = 0
	}
}

func (g *ghash) block(p []byte) {
	y1, y0 := g.y1^binary.BigEndian.Uint64(p), g.y0^binary.BigEndian.Uint64(p[8:])
	y0r, y1r := bits.Reverse64(y0), bits.Reverse64(y1)
	// Three products of 64 bits make one of 128 (Karatsuba): low and high halves.
	a, b, c := product(y0, g.h0), product(y1, g.h1), product(y0^y1, g.h2)
	d, e, f := product(y0r, g.h0r), product(y1r, g.h1r), product(y0r^y1r, g.h2r)
	c, f = c^a^b, f^d^e
	d, e, f = bits.Reverse64(d)>>1, bits.Reverse64(e)>>1, bits.Reverse64(f)>>1
	v0, v1, v2, v3 := a, d^c, b^f, e
	// In reverse order the product is shifted by one bit.
	v3, v2, v1, v0 = v3<<1|v2>>63, v2<<1|v1>>63, v1<<1|v0>>63, v0<<1
	// Reduce modulo x^128 + x^7 + x^2 + x + 1.
	v2 ^= v0 ^ v0>>1 ^ v0>>2 ^ v0>>7
	v1 ^= v0<<63 ^ v0<<62 ^ v0<<57
	v3 ^= v1 ^ v1>>1 ^ v1>>2 ^ v1>>7
	v2 ^= v1<<63 ^ v1<<62 ^ v1<<57
	g.y0, g.y1 = v2, v3
}

// product returns the low 64 bits of the product of polynomials over GF(2). Each of the four parts has
// every fourth bit, so a sum of up to 15 ones does not reach the next bit of the part. Only the last
// sum can be 16, and its carry is above the 64 bits.
func product(x, y uint64) uint64 {
	const m0, m1, m2, m3 = 0x1111111111111111, 0x2222222222222222, 0x4444444444444444, 0x8888888888888888
	x0, x1, x2, x3 := x&m0, x&m1, x&m2, x&m3
	y0, y1, y2, y3 := y&m0, y&m1, y&m2, y&m3
	return (x0*y0^x1*y3^x2*y2^x3*y1)&m0 |
		(x0*y1^x1*y0^x2*y3^x3*y2)&m1 |
		(x0*y2^x1*y1^x2*y0^x3*y3)&m2 |
		(x0*y3^x1*y2^x2*y1^x3*y0)&m3
}
