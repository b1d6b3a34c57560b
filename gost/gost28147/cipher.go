package gost28147

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

const (
	// BlockSize is the length of a block in octets.
	BlockSize = 8
	// KeySize is the length of a key in octets.
	KeySize = 32
)

// block is the cipher.Block: the key as eight words and the substitution.
type block struct {
	k [8]uint32
	s *SBox
}

// NewCipher returns the cipher with a key of KeySize octets and a parameter set.
// It keeps a copy of the key. Its Encrypt and Decrypt run in constant time, allow
// any overlap of dst and src, and panic when one is shorter than BlockSize. Besides
// it has EncryptBlocks(dst, src []byte), which enciphers whole blocks, each by itself,
// many times as fast: dst and src must be the same or must not overlap, src must
// consist of whole blocks and dst must be no shorter, or it panics.
func NewCipher(key []byte, s *SBox) (cipher.Block, error) {
	b, err := newBlock(key, s)
	if err != nil {
		return nil, err // not b: a nil *block would make an interface that is not nil
	}
	return b, nil
}

func newBlock(key []byte, s *SBox) (*block, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("gost28147: key of %d octets, want %d", len(key), KeySize)
	}
	if s == nil {
		return nil, errors.New("gost28147: no parameter set")
	}
	b := &block{s: s}
	for i := range b.k {
		b.k[i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	return b, nil
}

// BlockSize returns BlockSize.
func (b *block) BlockSize() int { return BlockSize }

// Encrypt enciphers one block (RFC 5830, section 5.1).
func (b *block) Encrypt(dst, src []byte) {
	checkBlocks(dst, src)
	binary.LittleEndian.PutUint64(dst, b.encrypt(binary.LittleEndian.Uint64(src)))
}

// Decrypt deciphers one block (RFC 5830, section 5.2).
func (b *block) Decrypt(dst, src []byte) {
	checkBlocks(dst, src)
	binary.LittleEndian.PutUint64(dst, b.decrypt(binary.LittleEndian.Uint64(src)))
}

func checkBlocks(dst, src []byte) {
	if len(src) < BlockSize {
		panic("gost28147: input not full block")
	}
	if len(dst) < BlockSize {
		panic("gost28147: output not full block")
	}
}

// encrypt enciphers a block given as a little-endian number: the keys three times
// forwards, then once backwards.
func (b *block) encrypt(x uint64) uint64 {
	lo, hi := uint32(x), uint32(x>>32)
	for range 3 {
		lo, hi = b.forwards(lo, hi)
	}
	lo, hi = b.backwards(lo, hi)
	return uint64(hi) | uint64(lo)<<32 // the last round does not exchange the halves
}

// decrypt is the inverse of encrypt: the keys once forwards, then three times
// backwards.
func (b *block) decrypt(x uint64) uint64 {
	lo, hi := uint32(x), uint32(x>>32)
	lo, hi = b.forwards(lo, hi)
	for range 3 {
		lo, hi = b.backwards(lo, hi)
	}
	return uint64(hi) | uint64(lo)<<32
}

// mac enciphers a block with the sixteen rounds of the authentication code (RFC
// 5830, section 8).
func (b *block) mac(x uint64) uint64 {
	lo, hi := uint32(x), uint32(x>>32)
	lo, hi = b.forwards(lo, hi)
	lo, hi = b.forwards(lo, hi)
	return uint64(lo) | uint64(hi)<<32
}

// forwards runs eight rounds, each with the exchange of the halves.
func (b *block) forwards(lo, hi uint32) (uint32, uint32) {
	for i := 0; i < 8; i += 2 {
		hi ^= b.round(lo + b.k[i])
		lo ^= b.round(hi + b.k[i+1])
	}
	return lo, hi
}

// backwards is forwards with the keys in the opposite order.
func (b *block) backwards(lo, hi uint32) (uint32, uint32) {
	for i := 7; i > 0; i -= 2 {
		hi ^= b.round(lo + b.k[i])
		lo ^= b.round(hi + b.k[i-1])
	}
	return lo, hi
}

func (b *block) round(x uint32) uint32 {
	return bits.RotateLeft32(substitute(b.s, x), 11)
}
