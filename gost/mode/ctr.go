// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
)

// NewCTR returns the counter mode of GOST R 34.13-2015, section 5.2, with whole blocks
// of gamma. The cipher must have blocks of 8 or 16 bytes: Magma or Kuznyechik. The
// initialization vector must have half the length of a block. Never use it twice with
// the same key. Other lengths are errors. The first counter is the vector followed by
// zeros. It is incremented as one big-endian number, modulo 2 to the power of the bits
// of a block. NewCTR uses the cipher's method EncryptBlocks(dst, src []byte) if it has
// one.
//
// Enciphering and deciphering are the same operation. Dst and src of XORKeyStream must
// be the same or must not overlap. XORKeyStream panics if dst is shorter than src.
func NewCTR(b cipher.Block, iv []byte) (cipher.Stream, error) {
	size := b.BlockSize()
	if size != 8 && size != 16 {
		return nil, fmt.Errorf("mode: cipher with blocks of %d bytes, want 8 or 16", size)
	}
	if len(iv) != size/2 {
		return nil, fmt.Errorf("mode: initialization vector of %d bytes, want %d", len(iv), size/2)
	}
	c := &ctr{size: size, encrypt: encrypter(b)}
	if size == 8 {
		c.lo = uint64(binary.BigEndian.Uint32(iv)) << 32
	} else {
		c.hi = binary.BigEndian.Uint64(iv)
	}
	return c, nil
}

type ctr struct {
	size    int
	encrypt func(blocks []byte)
	hi, lo  uint64 // the counter of the next block; blocks of 8 bytes use lo only
	ready   []byte // unused gamma
	buf     [ahead]byte
}

// ahead is the maximum number of bytes of gamma made at once. Ciphers are faster with
// many blocks.
const ahead = 2048

func (c *ctr) XORKeyStream(dst, src []byte) {
	if len(dst) < len(src) {
		panic("mode: output smaller than input")
	}
	for len(src) > 0 {
		if len(c.ready) == 0 {
			c.fill(len(src))
		}
		n := subtle.XORBytes(dst, src, c.ready)
		dst, src, c.ready = dst[n:], src[n:], c.ready[n:]
	}
}

// fill makes gamma for the given number of bytes, rounded up to blocks, but not more
// than fits into buf.
func (c *ctr) fill(want int) {
	n := min(want, len(c.buf))
	n = (n + c.size - 1) / c.size * c.size
	c.ready = c.buf[:n]
	for b := c.ready; len(b) > 0; b = b[c.size:] {
		if c.size == 16 {
			binary.BigEndian.PutUint64(b, c.hi)
		}
		binary.BigEndian.PutUint64(b[c.size-8:], c.lo)
		if c.lo++; c.lo == 0 { // the counter is not secret
			c.hi++
		}
	}
	c.encrypt(c.ready)
}
