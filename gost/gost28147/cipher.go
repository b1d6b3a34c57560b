// SPDX-License-Identifier: Apache-2.0

package gost28147

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

const (
	// BlockSize is the length of a block in bytes.
	BlockSize = 8
	// KeySize is the length of a key in bytes.
	KeySize = 32
)

// block is the cipher.Block: the key as eight words and the substitution.
type block struct {
	k [8]uint32
	s *SBox
}

// NewCipher returns the cipher with a key of KeySize bytes and a parameter set.
// Another length or a nil set is an error. It keeps a copy of the key. Encrypt and
// Decrypt run in constant time and allow any overlap of dst and src. They panic if dst
// or src is shorter than BlockSize. The result also has the method
//
//	EncryptBlocks(dst, src []byte)
//
// which enciphers every block of src, each by itself, many times as fast. It panics
// if the length of src is not a multiple of BlockSize or if dst is shorter than src.
// Dst and src must be the same or must not overlap.
func NewCipher(key []byte, s *SBox) (cipher.Block, error) {
	b, err := newBlock(key, s)
	if err != nil {
		return nil, err // not b: an interface that holds a nil *block is not nil
	}
	return b, nil
}

func newBlock(key []byte, s *SBox) (*block, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("gost28147: key of %d bytes, want %d", len(key), KeySize)
	}
	if s == nil {
		return nil, errors.New("gost28147: the parameter set is nil, want one of the SBox variables")
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

// encrypt enciphers a block given as a little-endian number. It uses the keys three
// times in ascending order, then once in descending order.
func (b *block) encrypt(x uint64) uint64 {
	lo, hi := uint32(x), uint32(x>>32)
	for range 3 {
		lo, hi = b.forwards(lo, hi)
	}
	lo, hi = b.backwards(lo, hi)
	return uint64(hi) | uint64(lo)<<32 // the last round does not exchange the halves
}

// decrypt is the inverse of encrypt. It uses the keys once in ascending order, then
// three times in descending order.
func (b *block) decrypt(x uint64) uint64 {
	lo, hi := uint32(x), uint32(x>>32)
	lo, hi = b.forwards(lo, hi)
	for range 3 {
		lo, hi = b.backwards(lo, hi)
	}
	return uint64(hi) | uint64(lo)<<32
}

// mac enciphers a block with the sixteen rounds of the message authentication code
// (RFC 5830, section 8).
func (b *block) mac(x uint64) uint64 {
	lo, hi := uint32(x), uint32(x>>32)
	lo, hi = b.forwards(lo, hi)
	lo, hi = b.forwards(lo, hi)
	return uint64(lo) | uint64(hi)<<32
}

// forwards runs eight rounds, each with the exchange of the halves, with the keys in
// ascending order.
func (b *block) forwards(lo, hi uint32) (uint32, uint32) {
	for i := 0; i < 8; i += 2 {
		hi ^= b.round(lo + b.k[i])
		lo ^= b.round(hi + b.k[i+1])
	}
	return lo, hi
}

// backwards is forwards with the keys in descending order.
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
