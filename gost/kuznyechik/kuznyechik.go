// SPDX-License-Identifier: Apache-2.0

// Package kuznyechik implements the block cipher "Kuznyechik" of GOST R 34.12-2015
// (RFC 7801). Blocks have 16 bytes and keys 32, in the order in which the RFC prints
// them.
//
// Begin with NewCipher. The cipher alone does not protect messages. Package mode has
// the modes of operation, such as MGM.
//
// The cipher and the key schedule run in constant time. On amd64 processors with
// AVX-512 (F, BW, VL, VBMI) and GFNI, a register holds four blocks, bytes are looked
// up in registers and products are single instructions. On other processors, under
// the build tag purego and for Decrypt, eight words hold four blocks, one word for
// each bit of a byte, and every step is bitwise logic on these words. In both cases
// one block costs as much as four, so use EncryptBlocks for more than one block.
package kuznyechik

import (
	"crypto/cipher"
	"fmt"
)

const (
	// BlockSize is the length of a block in bytes.
	BlockSize = 16
	// KeySize is the length of a key in bytes.
	KeySize = 32
)

// NewCipher returns the cipher with a key of KeySize bytes. Another length is an
// error. It keeps no reference to the key. Encrypt and Decrypt allow any overlap of
// dst and src. They panic if dst or src is shorter than BlockSize. The result also has
// the method
//
//	EncryptBlocks(dst, src []byte)
//
// which enciphers every block of src, each by itself. It panics if the length of src
// is not a multiple of BlockSize or if dst is shorter than src. Dst and src must be
// the same or must not overlap.
func NewCipher(key []byte) (cipher.Block, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("kuznyechik: key of %d bytes, want %d", len(key), KeySize)
	}
	b := new(block)
	b.expand((*[KeySize]byte)(key))
	return b, nil
}

// expandGeneric computes the round keys (RFC 7801, section 4.3). The first two are
// the halves of the key. Each further pair is the result of eight Feistel rounds.
func (b *block) expandGeneric(key *[KeySize]byte) {
	var a1, a0 planes
	a1.spread((*[BlockSize]byte)(key[:BlockSize]))
	a0.spread((*[BlockSize]byte)(key[BlockSize:]))
	b.keys[0], b.keys[1] = a1, a0
	for i := range scheduleConstants {
		x := a1
		x.xor(&scheduleConstants[i])
		substitute(&x)
		x.multiply(forwards)
		x.xor(&a0)
		a1, a0 = x, a1
		if i%8 == 7 {
			b.keys[i/4+1], b.keys[i/4+2] = a1, a0
		}
	}
}

// BlockSize returns BlockSize.
func (b *block) BlockSize() int { return BlockSize }

// Encrypt enciphers one block.
func (b *block) Encrypt(dst, src []byte) {
	checkBlocks(dst, src)
	var group [groupSize]byte
	copy(group[:], src[:BlockSize])
	b.encrypt(&group)
	copy(dst, group[:BlockSize])
}

// Decrypt deciphers one block.
func (b *block) Decrypt(dst, src []byte) {
	checkBlocks(dst, src)
	var group [groupSize]byte
	copy(group[:], src[:BlockSize])
	b.decrypt(&group)
	copy(dst, group[:BlockSize])
}

func checkBlocks(dst, src []byte) {
	if len(src) < BlockSize {
		panic("kuznyechik: input not full block")
	}
	if len(dst) < BlockSize {
		panic("kuznyechik: output not full block")
	}
}

// EncryptBlocks enciphers every block of src; see NewCipher.
func (b *block) EncryptBlocks(dst, src []byte) {
	if len(src)%BlockSize != 0 {
		panic("kuznyechik: input not full blocks")
	}
	if len(dst) < len(src) {
		panic("kuznyechik: output smaller than input")
	}
	done := b.encryptMany(dst, src)
	dst, src = dst[done:], src[done:]
	for len(src) > 0 {
		var group [groupSize]byte
		n := copy(group[:], src)
		b.encrypt(&group)
		copy(dst[:n], group[:])
		dst, src = dst[n:], src[n:]
	}
}

// encryptGeneric enciphers four blocks (RFC 7801, section 4.4.1).
func (b *block) encryptGeneric(group *[groupSize]byte) {
	var x planes
	x.pack(group)
	for i := range 9 {
		x.xor(&b.keys[i])
		substitute(&x)
		x.multiply(forwards)
	}
	x.xor(&b.keys[9])
	x.unpack(group)
}

// decrypt deciphers four blocks (RFC 7801, section 4.4.2).
func (b *block) decrypt(group *[groupSize]byte) {
	var x planes
	x.pack(group)
	for i := 9; i > 0; i-- {
		x.xor(&b.keys[i])
		x.multiply(backwards)
		unsubstitute(&x)
	}
	x.xor(&b.keys[0])
	x.unpack(group)
}
