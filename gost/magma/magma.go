// SPDX-License-Identifier: Apache-2.0

// Package magma implements the block cipher Magma of GOST R 34.12-2015 (RFC 8891):
// GOST 28147-89 with the substitution SBoxZ and big-endian numbers.
//
// Begin with NewCipher. The cipher alone does not protect messages. Package mode has
// the modes of operation, such as CTR.
package magma

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"

	"tamga/gost/gost28147"
)

const (
	// BlockSize is the length of a block in bytes.
	BlockSize = 8
	// KeySize is the length of a key in bytes.
	KeySize = 32
)

type block struct{ gost many }

// many is the type of the ciphers that gost28147.NewCipher returns.
type many interface {
	cipher.Block
	EncryptBlocks(dst, src []byte)
}

// NewCipher returns the cipher with a key of KeySize bytes. Another length is an
// error. It keeps no reference to the key. The cipher runs in constant time. Encrypt
// and Decrypt allow any overlap of dst and src. They panic if dst or src is shorter
// than BlockSize. The result also has the method
//
//	EncryptBlocks(dst, src []byte)
//
// which enciphers every block of src, each by itself. It panics if the length of src
// is not a multiple of BlockSize or if dst is shorter than src. Dst and src must be
// the same or must not overlap.
func NewCipher(key []byte) (cipher.Block, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("magma: key of %d bytes, want %d", len(key), KeySize)
	}
	var words [KeySize]byte
	for i := 0; i < KeySize; i += 4 {
		binary.LittleEndian.PutUint32(words[i:], binary.BigEndian.Uint32(key[i:]))
	}
	defer clear(words[:])
	b, err := gost28147.NewCipher(words[:], gost28147.SBoxZ)
	if err != nil {
		return nil, fmt.Errorf("magma: %w", err)
	}
	return &block{b.(many)}, nil
}

// BlockSize returns BlockSize.
func (b *block) BlockSize() int { return BlockSize }

// Encrypt enciphers one block (RFC 8891, section 4.4).
func (b *block) Encrypt(dst, src []byte) {
	checkBlocks(dst, src)
	reverse(dst[:BlockSize], src)
	b.gost.Encrypt(dst, dst)
	reverse(dst[:BlockSize], dst)
}

// Decrypt deciphers one block (RFC 8891, section 4.5).
func (b *block) Decrypt(dst, src []byte) {
	checkBlocks(dst, src)
	reverse(dst[:BlockSize], src)
	b.gost.Decrypt(dst, dst)
	reverse(dst[:BlockSize], dst)
}

// EncryptBlocks enciphers every block of src; see NewCipher.
func (b *block) EncryptBlocks(dst, src []byte) {
	if len(src)%BlockSize != 0 {
		panic("magma: input not full blocks")
	}
	if len(dst) < len(src) {
		panic("magma: output smaller than input")
	}
	dst = dst[:len(src)]
	reverse(dst, src)
	b.gost.EncryptBlocks(dst, dst)
	reverse(dst, dst)
}

func checkBlocks(dst, src []byte) {
	if len(src) < BlockSize {
		panic("magma: input not full block")
	}
	if len(dst) < BlockSize {
		panic("magma: output not full block")
	}
}

// reverse fills dst with the blocks of src, each with its bytes in the opposite order.
func reverse(dst, src []byte) {
	for ; len(dst) > 0; dst, src = dst[BlockSize:], src[BlockSize:] {
		binary.LittleEndian.PutUint64(dst, binary.BigEndian.Uint64(src))
	}
}
