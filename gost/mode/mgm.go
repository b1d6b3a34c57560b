// SPDX-License-Identifier: Apache-2.0

// Package mode implements modes of operation for the block ciphers of GOST R
// 34.12-2015, which packages kuznyechik and magma implement.
//
// Begin with NewMGM, the authenticated encryption for stored keys. NewCTR is the
// counter mode. NewCTRACPKM and NewOMAC protect encrypted messages and PKCS #12 files, KExp15
// exports a key. The package does not implement the other modes of the standards.
package mode

import (
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

const (
	blockSize = 16
	// MGMNonceSize is the length of a nonce in bytes. Its first bit is ignored.
	MGMNonceSize = 16
	// MGMTagSize is the length of a tag in bytes.
	MGMTagSize = 16
)

// maxMGMLength bounds plaintext and additional data together: RFC 9058, section 4,
// counts their bits in 64. It is far above what a process can hold.
const maxMGMLength = 1<<61 - 1

// ErrOpen means that a message is not authentic under this key, nonce and additional
// data.
var ErrOpen = errors.New("mode: message does not authenticate: wrong key, nonce or additional data, or changed bytes")

// manyBlocks is a cipher.Block that enciphers many blocks at once, faster than one at
// a time.
type manyBlocks interface {
	cipher.Block
	EncryptBlocks(dst, src []byte)
}

type mgm struct {
	block   cipher.Block
	encrypt func(blocks []byte) // enciphers every block of a slice in place
}

// NewMGM returns the authenticated encryption mode MGM (RFC 9058) with the full tag of
// 16 bytes. The cipher must have blocks of 16 bytes. NewMGM uses the cipher's method
// EncryptBlocks(dst, src []byte) if it has one. MGM runs in constant time if the
// cipher does, because the products in the field use no table.
//
// Nonces have MGMNonceSize bytes and must not repeat under the same key. In the RFC a
// nonce has 127 bits. MGM ignores the first bit of the 16 bytes, so nonces that differ
// only in this bit are the same nonce. Random nonces are safe for 2^32 messages under
// the same key.
//
// Like every cipher.AEAD, Seal and Open panic on a nonce of another length and on
// buffers that overlap in part. Seal also panics if plaintext and additional data are
// both empty: the RFC forbids that, since the tag would be the same for all nonces.
// And it panics if they have 2^61 bytes or more together. Open returns ErrOpen for
// such messages. Open checks the tag before it deciphers anything.
func NewMGM(b cipher.Block) (cipher.AEAD, error) {
	if n := b.BlockSize(); n != blockSize {
		return nil, fmt.Errorf("mode: cipher with blocks of %d bytes, want %d", n, blockSize)
	}
	return &mgm{block: b, encrypt: encrypter(b)}, nil
}

// encrypter returns a function that enciphers every block of a slice in place.
func encrypter(b cipher.Block) func(blocks []byte) {
	if many, ok := b.(manyBlocks); ok {
		return func(p []byte) { many.EncryptBlocks(p, p) }
	}
	size := b.BlockSize()
	return func(p []byte) {
		for ; len(p) > 0; p = p[size:] {
			b.Encrypt(p, p)
		}
	}
}

// NonceSize returns MGMNonceSize.
func (m *mgm) NonceSize() int { return MGMNonceSize }

// Overhead returns MGMTagSize.
func (m *mgm) Overhead() int { return MGMTagSize }

// Seal enciphers plaintext and appends it and the tag to dst. Dst may be
// plaintext[:0].
func (m *mgm) Seal(dst, nonce, plaintext, additionalData []byte) []byte {
	checkNonce(nonce)
	if !lengthsAllowed(len(plaintext), len(additionalData)) {
		panic("mode: MGM needs 1 to 2^61-1 bytes of plaintext and additional data together")
	}
	head, out := grow(dst, len(plaintext)+MGMTagSize)
	if overlapInexactly(out, plaintext) || overlap(out, additionalData) {
		panic("mode: invalid buffer overlap")
	}
	ciphertext := out[:len(plaintext)]
	m.xorKeyStream(ciphertext, plaintext, nonce)
	tag := m.tag(nonce, ciphertext, additionalData)
	copy(out[len(plaintext):], tag[:])
	return head
}

// Open checks the tag at the end of ciphertext, deciphers the rest and appends it
// to dst. Dst may be ciphertext[:0]. If the tag is wrong, it returns ErrOpen and does
// not change dst.
func (m *mgm) Open(dst, nonce, ciphertext, additionalData []byte) ([]byte, error) {
	checkNonce(nonce)
	n := len(ciphertext) - MGMTagSize
	if n < 0 || !lengthsAllowed(n, len(additionalData)) {
		return nil, ErrOpen
	}
	ciphertext, tag := ciphertext[:n], ciphertext[n:]
	head, out := grow(dst, n)
	if overlapInexactly(out, ciphertext) || overlap(out, additionalData) {
		panic("mode: invalid buffer overlap")
	}
	want := m.tag(nonce, ciphertext, additionalData)
	if subtle.ConstantTimeCompare(want[:], tag) != 1 {
		return nil, ErrOpen
	}
	m.xorKeyStream(out, ciphertext, nonce)
	return head, nil
}

func checkNonce(nonce []byte) {
	if len(nonce) != MGMNonceSize {
		panic("mode: incorrect nonce length given to MGM")
	}
}

func lengthsAllowed(text, data int) bool {
	sum, carry := bits.Add64(uint64(text), uint64(data), 0)
	return carry == 0 && sum > 0 && sum <= maxMGMLength
}

// A sequence is one of the two sequences of enciphered counters of MGM: Y for the key
// stream or Z for the factors of the tag. It makes some blocks in advance.
type sequence struct {
	m     *mgm
	hi    uint64 // the counter of the next block
	lo    uint64
	right bool // count in the right half, not in the left half
	ready []byte
	buf   [ahead]byte
}

// start sets the first counter of a sequence (RFC 9058, section 4.1): the enciphered
// nonce, whose first bit is 0 for Y and 1 for Z.
func (s *sequence) start(m *mgm, nonce []byte, right bool) {
	s.m, s.right = m, right
	first := s.buf[:blockSize]
	copy(first, nonce)
	first[0] &= 0x7f
	if !right {
		first[0] |= 0x80
	}
	m.block.Encrypt(first, first)
	s.hi, s.lo = binary.BigEndian.Uint64(first), binary.BigEndian.Uint64(first[8:])
}

// next returns the next blocks of the sequence: at least one, at most most. left is
// the number of blocks that the caller still needs, including these.
func (s *sequence) next(most, left int) []byte {
	if len(s.ready) == 0 {
		s.ready = s.buf[:min(len(s.buf)/blockSize, left)*blockSize]
		for b := s.ready; len(b) > 0; b = b[blockSize:] {
			binary.BigEndian.PutUint64(b, s.hi)
			binary.BigEndian.PutUint64(b[8:], s.lo)
			if s.right {
				s.lo++
			} else {
				s.hi++
			}
		}
		s.m.encrypt(s.ready)
	}
	n := min(most*blockSize, len(s.ready))
	b := s.ready[:n]
	s.ready = s.ready[n:]
	return b
}

// blocksOf returns the number of blocks that n bytes need.
func blocksOf(n int) int { return n/blockSize + (n%blockSize+blockSize-1)/blockSize }

// xorKeyStream enciphers or deciphers src (RFC 9058, section 4.1, step 2).
func (m *mgm) xorKeyStream(dst, src, nonce []byte) {
	var y sequence
	y.start(m, nonce, true)
	for len(src) > 0 {
		left := blocksOf(len(src))
		n := subtle.XORBytes(dst, src, y.next(left, left))
		dst, src = dst[n:], src[n:]
	}
}

// tag returns the tag (RFC 9058, section 4.1, steps 3 to 5): the enciphered sum of
// blocks, each times a factor of its own. The blocks are those of data and of
// ciphertext, each padded with zeros, and the block of their lengths in bits.
func (m *mgm) tag(nonce, ciphertext, data []byte) (tag [MGMTagSize]byte) {
	var z sequence
	z.start(m, nonce, false)
	left := blocksOf(len(data)) + blocksOf(len(ciphertext)) + 1
	var sum element
	var last [blockSize]byte
	for _, p := range [][]byte{data, ciphertext} {
		for whole := len(p) / blockSize; whole > 0; whole = len(p) / blockSize {
			factors := z.next(whole, left)
			sum.addProducts(factors, p[:len(factors)])
			p = p[len(factors):]
			left -= len(factors) / blockSize
		}
		if len(p) > 0 {
			last = [blockSize]byte{}
			copy(last[:], p)
			sum.addProducts(z.next(1, left), last[:])
			left--
		}
	}
	binary.BigEndian.PutUint64(last[:], uint64(len(data))*8)
	binary.BigEndian.PutUint64(last[8:], uint64(len(ciphertext))*8)
	sum.addProducts(z.next(1, left), last[:])
	binary.BigEndian.PutUint64(tag[:], sum.hi)
	binary.BigEndian.PutUint64(tag[8:], sum.lo)
	m.block.Encrypt(tag[:], tag[:])
	return tag
}
