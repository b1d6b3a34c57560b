// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"crypto/cipher"
	"errors"
	"fmt"
)

// NewCTRACPKM returns the counter mode with key meshing of RFC 8645, section 6.2.1
// (R 1323565.1.017). It works as NewCTR, but after every section bytes it replaces the
// key by the bytes 80 81 82 ... 9f enciphered under the old key. The counter
// continues. section must be a positive multiple of the block size, the key must have
// 32 bytes and iv half a block; other lengths are errors. The caller wipes its copy of
// the key.
func NewCTRACPKM(newCipher func(key []byte) (cipher.Block, error), key, iv []byte, section int) (cipher.Stream, error) {
	if len(key) != 32 {
		return nil, fmt.Errorf("mode: key of %d bytes, want 32", len(key))
	}
	b, err := newCipher(key)
	if err != nil {
		return nil, err
	}
	s, err := NewCTR(b, iv)
	if err != nil {
		return nil, err
	}
	size := b.BlockSize()
	if section <= 0 || section%size != 0 {
		return nil, errors.New("mode: the length of a section must be a positive multiple of the block size")
	}
	return &acpkm{newCipher: newCipher, block: b, ctr: s.(*ctr), section: section, left: section}, nil
}

type acpkm struct {
	newCipher     func(key []byte) (cipher.Block, error)
	block         cipher.Block
	ctr           *ctr
	section, left int // bytes of a section, and bytes left in the current one
}

func (a *acpkm) XORKeyStream(dst, src []byte) {
	if len(dst) < len(src) {
		panic("mode: output smaller than input")
	}
	for len(src) > 0 {
		if a.left == 0 {
			a.mesh()
		}
		// Gamma is made in whole blocks and only up to the end of the section, so none
		// of the old gamma is left when the key changes.
		n := min(a.left, len(src))
		a.ctr.XORKeyStream(dst[:n], src[:n])
		dst, src, a.left = dst[n:], src[n:], a.left-n
	}
}

// mesh replaces the key.
func (a *acpkm) mesh() {
	var key [32]byte
	for i := range key {
		key[i] = byte(0x80 + i)
	}
	for part := key[:]; len(part) > 0; part = part[a.block.BlockSize():] {
		a.block.Encrypt(part, part)
	}
	b, err := a.newCipher(key[:])
	clear(key[:])
	if err != nil { // cannot happen: it accepted a key of this length before
		panic("mode: " + err.Error())
	}
	a.block, a.left = b, a.section
	a.ctr.encrypt = encrypter(b)
}
