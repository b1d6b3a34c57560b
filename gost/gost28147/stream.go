// SPDX-License-Identifier: Apache-2.0

package gost28147

import (
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
)

// Meshing selects whether the key of a stream changes after every 1024 bytes.
type Meshing int

const (
	// NoMeshing keeps one key (RFC 4357, section 2.3.1).
	NoMeshing Meshing = iota
	// CryptoProMeshing replaces the key and the initialization vector after every 1024
	// bytes (RFC 4357, section 2.3.2). CMS uses it with the sets SBoxA to SBoxD and
	// SBoxZ.
	CryptoProMeshing
)

// meshingInterval is the number of bytes that one key enciphers.
const meshingInterval = 1024

// meshingConstant is the constant C of RFC 4357, section 2.3.2, as four
// little-endian words.
var meshingConstant = [4]uint64{0x2304c96422720069, 0xc42ae94696db3a8d, 0x1207ed0094acfe18, 0x2ba94cefc2dc86c0}

// mesh replaces the key and returns the new initialization vector, made from iv.
func (b *block) mesh(iv uint64) uint64 {
	var k [8]uint32
	for i, c := range meshingConstant {
		x := b.decrypt(c)
		k[2*i], k[2*i+1] = uint32(x), uint32(x>>32)
	}
	b.k = k
	return b.encrypt(iv)
}

// stream is the part that the modes share: the gamma of the current block and the
// position in it.
type stream struct {
	block   *block
	meshing Meshing
	iv      uint64 // the input of the next gamma
	gamma   [BlockSize]byte
	used    int // bytes of gamma used; BlockSize if a new gamma is needed
	since   int // bytes since the key was last replaced
}

func newStream(key, iv []byte, s *SBox, m Meshing) (stream, error) {
	b, err := newBlock(key, s)
	if err != nil {
		return stream{}, err
	}
	if len(iv) != BlockSize {
		return stream{}, fmt.Errorf("gost28147: initialization vector of %d bytes, want %d", len(iv), BlockSize)
	}
	if m != NoMeshing && m != CryptoProMeshing {
		return stream{}, fmt.Errorf("gost28147: meshing %d, want NoMeshing or CryptoProMeshing", m)
	}
	return stream{block: b, meshing: m, iv: binary.LittleEndian.Uint64(iv), used: BlockSize}, nil
}

// beforeBlock prepares the next block. It replaces the key after each interval.
func (s *stream) beforeBlock() {
	if s.meshing == CryptoProMeshing && s.since == meshingInterval {
		s.iv = s.block.mesh(s.iv)
		s.since = 0
	}
	s.since += BlockSize
	s.used = 0
}

type cnt struct {
	stream
	// ahead is unused gamma at the end of made. Making the gamma of many blocks together
	// is faster.
	made  [ahead]byte
	ahead []byte
}

// ahead is the maximum number of bytes of gamma made at once: the interval of one key.
const ahead = meshingInterval

// NewCNT returns the counter mode ("gamma") of RFC 5830, section 6, with a key of
// KeySize bytes and an initialization vector of BlockSize bytes. Never use a vector
// twice with the same key. Enciphering and deciphering are the same operation. Dst and
// src of XORKeyStream must be the same or must not overlap. XORKeyStream panics if dst
// is shorter than src. Wrong lengths, a nil set and an unknown Meshing are errors.
func NewCNT(key, iv []byte, s *SBox, m Meshing) (cipher.Stream, error) {
	st, err := newStream(key, iv, s, m)
	if err != nil {
		return nil, err
	}
	st.iv = st.block.encrypt(st.iv)
	return &cnt{stream: st}, nil
}

func (c *cnt) XORKeyStream(dst, src []byte) {
	checkLength(dst, src)
	for len(src) > 0 {
		if len(c.ahead) == 0 {
			c.fill(len(src))
		}
		n := subtle.XORBytes(dst, src, c.ahead)
		dst, src, c.ahead = dst[n:], src[n:], c.ahead[n:]
	}
}

// fill makes gamma for the given number of bytes, but not beyond the interval of the
// key.
func (c *cnt) fill(want int) {
	if c.meshing == CryptoProMeshing && c.since == meshingInterval {
		c.iv = c.block.mesh(c.iv)
		c.since = 0
	}
	room := ahead
	if c.meshing == CryptoProMeshing {
		room -= c.since
	}
	n := min((want+BlockSize-1)/BlockSize*BlockSize, room)
	c.since += n
	c.ahead = c.made[:n]
	for b := c.ahead; len(b) > 0; b = b[BlockSize:] {
		c.iv = count(c.iv)
		binary.LittleEndian.PutUint64(b, c.iv)
	}
	c.block.EncryptBlocks(c.ahead, c.ahead)
}

// count adds C2 to the low half modulo 2^32 and C1 to the high half modulo 2^32-1
// (RFC 5830, section 6.1). The high half may be 2^32-1, the other form of zero.
func count(x uint64) uint64 {
	const c1, c2 = 0x01010104, 0x01010101
	high := x>>32 + c1
	return uint64(uint32(x)+c2) | (high+high>>32)<<32
}

type cfb struct {
	stream
	decrypt bool
	ahead   []byte // to decipher: the gamma of many blocks together
}

// NewCFBEncrypter returns the cipher feedback mode of RFC 5830, section 7, with a key
// of KeySize bytes and an initialization vector of BlockSize bytes. Dst and src of
// XORKeyStream must be the same or must not overlap. XORKeyStream panics if dst is
// shorter than src. Wrong lengths, a nil set and an unknown Meshing are errors.
func NewCFBEncrypter(key, iv []byte, s *SBox, m Meshing) (cipher.Stream, error) {
	return newCFB(key, iv, s, m, false)
}

// NewCFBDecrypter returns the inverse of NewCFBEncrypter, with the same arguments.
func NewCFBDecrypter(key, iv []byte, s *SBox, m Meshing) (cipher.Stream, error) {
	return newCFB(key, iv, s, m, true)
}

func newCFB(key, iv []byte, s *SBox, m Meshing, decrypt bool) (cipher.Stream, error) {
	st, err := newStream(key, iv, s, m)
	if err != nil {
		return nil, err
	}
	c := &cfb{stream: st, decrypt: decrypt}
	if decrypt {
		c.ahead = make([]byte, ahead)
	}
	return c, nil
}

func (c *cfb) XORKeyStream(dst, src []byte) {
	checkLength(dst, src)
	for c.decrypt && c.used == BlockSize && len(src) >= 2*BlockSize {
		n := c.decryptMany(dst, src)
		dst, src = dst[n:], src[n:]
	}
	for !c.decrypt && c.used == BlockSize && len(src) >= BlockSize {
		n := c.encryptMany(dst, src)
		if n == 0 {
			break
		}
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		if c.used == BlockSize {
			c.beforeBlock()
			binary.LittleEndian.PutUint64(c.gamma[:], c.block.encrypt(c.iv))
			c.iv = 0
		}
		y := x ^ c.gamma[c.used]
		sealed := y
		if c.decrypt {
			sealed = x
		}
		c.iv |= uint64(sealed) << (8 * c.used)
		dst[i] = y
		c.used++
	}
}

// encryptMany enciphers whole blocks, up to the interval of the key, and returns their number of bytes, 0 where the
// blocks are to be enciphered one by one.
func (c *cfb) encryptMany(dst, src []byte) int {
	if c.meshing == CryptoProMeshing {
		if c.since == meshingInterval {
			c.iv = c.block.mesh(c.iv)
			c.since = 0
		}
		src = src[:min(len(src), meshingInterval-c.since)]
	}
	n := c.block.encryptFeedback(dst, src, &c.iv)
	c.since += n
	return n
}

// decryptMany deciphers whole blocks, up to the interval of the key, and returns their number of bytes.
// The gamma of a block is the sealed block before it, enciphered, so all gammas are made at once.
func (c *cfb) decryptMany(dst, src []byte) int {
	if c.meshing == CryptoProMeshing && c.since == meshingInterval {
		c.iv = c.block.mesh(c.iv)
		c.since = 0
	}
	n := min(len(src)/BlockSize*BlockSize, len(c.ahead))
	if c.meshing == CryptoProMeshing {
		n = min(n, meshingInterval-c.since)
	}
	gamma := c.ahead[:n]
	binary.LittleEndian.PutUint64(gamma, c.iv)
	copy(gamma[BlockSize:], src)
	c.iv = binary.LittleEndian.Uint64(src[n-BlockSize:])
	c.block.EncryptBlocks(gamma, gamma)
	subtle.XORBytes(dst, src[:n], gamma)
	c.since += n
	return n
}

func checkLength(dst, src []byte) {
	if len(dst) < len(src) {
		panic("gost28147: output smaller than input")
	}
}
