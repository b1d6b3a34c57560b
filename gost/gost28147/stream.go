package gost28147

import (
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
)

// Meshing tells whether the key of a stream changes on the way.
type Meshing int

const (
	// NoMeshing keeps one key (RFC 4357, section 2.3.1).
	NoMeshing Meshing = iota
	// CryptoProMeshing replaces key and initialization vector after every 1024
	// octets (RFC 4357, section 2.3.2). The sets SBoxA to SBoxD and SBoxZ are used
	// with it in CMS.
	CryptoProMeshing
)

// meshingInterval is how many octets one key enciphers.
const meshingInterval = 1024

// meshingConstant is the constant C of RFC 4357, section 2.3.2, as four
// little-endian words.
var meshingConstant = [4]uint64{0x2304c96422720069, 0xc42ae94696db3a8d, 0x1207ed0094acfe18, 0x2ba94cefc2dc86c0}

// mesh replaces the key and returns the vector that follows iv.
func (b *block) mesh(iv uint64) uint64 {
	var k [8]uint32
	for i, c := range meshingConstant {
		x := b.decrypt(c)
		k[2*i], k[2*i+1] = uint32(x), uint32(x>>32)
	}
	b.k = k
	return b.encrypt(iv)
}

// stream is the part that the modes share: the gamma of the current block and
// where it stands.
type stream struct {
	block   *block
	meshing Meshing
	iv      uint64 // what the next gamma is made from
	gamma   [BlockSize]byte
	used    int // octets of gamma used; BlockSize when the next one is due
	since   int // octets since the key was last replaced
}

func newStream(key, iv []byte, s *SBox, m Meshing) (stream, error) {
	b, err := newBlock(key, s)
	if err != nil {
		return stream{}, err
	}
	if len(iv) != BlockSize {
		return stream{}, fmt.Errorf("gost28147: initialization vector of %d octets, want %d", len(iv), BlockSize)
	}
	if m != NoMeshing && m != CryptoProMeshing {
		return stream{}, fmt.Errorf("gost28147: meshing %d, want NoMeshing or CryptoProMeshing", m)
	}
	return stream{block: b, meshing: m, iv: binary.LittleEndian.Uint64(iv), used: BlockSize}, nil
}

// beforeBlock replaces the key where it is due.
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
	// ahead are gammas not used yet, at the end of made: with one key many blocks
	// are enciphered faster together.
	made  [ahead]byte
	ahead []byte
}

// ahead is how many octets of gamma are made at most, the interval of one key.
const ahead = meshingInterval

// NewCNT returns the counter mode, "gamma", of RFC 5830, section 6, with a key of
// KeySize octets and a synchronization vector of BlockSize octets. Enciphering and
// deciphering are the same. Dst and src of XORKeyStream must be the same or must
// not overlap; it panics when dst is shorter than src. A vector must not be used
// twice with a key.
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

// fill makes gammas for as many octets, but no more than one key enciphers.
func (c *cnt) fill(octets int) {
	if c.meshing == CryptoProMeshing && c.since == meshingInterval {
		c.iv = c.block.mesh(c.iv)
		c.since = 0
	}
	room := ahead
	if c.meshing == CryptoProMeshing {
		room -= c.since
	}
	n := min((octets+BlockSize-1)/BlockSize*BlockSize, room)
	c.since += n
	c.ahead = c.made[:n]
	for b := c.ahead; len(b) > 0; b = b[BlockSize:] {
		c.iv = count(c.iv)
		binary.LittleEndian.PutUint64(b, c.iv)
	}
	c.block.EncryptBlocks(c.ahead, c.ahead)
}

// count adds C2 to the low half modulo 2^32 and C1 to the high half modulo 2^32-1,
// whose zero has two forms (RFC 5830, section 6.1).
func count(x uint64) uint64 {
	const c1, c2 = 0x01010104, 0x01010101
	high := x>>32 + c1
	return uint64(uint32(x)+c2) | (high+high>>32)<<32
}

type cfb struct {
	stream
	decrypt bool
}

// NewCFBEncrypter returns the feedback mode of RFC 5830, section 7, with a key of
// KeySize octets and a synchronization vector of BlockSize octets. Dst and src of
// XORKeyStream must be the same or must not overlap; it panics when dst is shorter
// than src.
func NewCFBEncrypter(key, iv []byte, s *SBox, m Meshing) (cipher.Stream, error) {
	return newCFB(key, iv, s, m, false)
}

// NewCFBDecrypter returns the inverse of NewCFBEncrypter.
func NewCFBDecrypter(key, iv []byte, s *SBox, m Meshing) (cipher.Stream, error) {
	return newCFB(key, iv, s, m, true)
}

func newCFB(key, iv []byte, s *SBox, m Meshing, decrypt bool) (cipher.Stream, error) {
	st, err := newStream(key, iv, s, m)
	if err != nil {
		return nil, err
	}
	return &cfb{st, decrypt}, nil
}

func (c *cfb) XORKeyStream(dst, src []byte) {
	checkLength(dst, src)
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

func checkLength(dst, src []byte) {
	if len(dst) < len(src) {
		panic("gost28147: output smaller than input")
	}
}
