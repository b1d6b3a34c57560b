// Package magma owns the block cipher Magma of GOST R 34.12-2015 (RFC 8891): GOST
// 28147-89 with the substitution SBoxZ and numbers written the other way round,
// big-endian.
package magma

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"

	"tamga/gost/gost28147"
)

const (
	// BlockSize is the length of a block in octets.
	BlockSize = 8
	// KeySize is the length of a key in octets.
	KeySize = 32
)

type block struct{ gost many }

// many is what gost28147.NewCipher returns.
type many interface {
	cipher.Block
	EncryptBlocks(dst, src []byte)
}

// NewCipher returns the cipher with a key of KeySize octets, of which it keeps no
// reference. It runs in constant time. Encrypt and Decrypt allow any overlap of dst
// and src and panic when one is shorter than BlockSize. The result also has
//
//	EncryptBlocks(dst, src []byte)
//
// which enciphers every block of src, whose length must be a multiple of BlockSize
// and not above that of dst, or it panics. Dst and src must be the same or must not
// overlap.
func NewCipher(key []byte) (cipher.Block, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("magma: key of %d octets, want %d", len(key), KeySize)
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

// reverse writes the blocks of src with their octets in the opposite order to dst,
// as many as there are in dst.
func reverse(dst, src []byte) {
	for ; len(dst) > 0; dst, src = dst[BlockSize:], src[BlockSize:] {
		binary.LittleEndian.PutUint64(dst, binary.BigEndian.Uint64(src))
	}
}
