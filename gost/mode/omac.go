// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"crypto/cipher"
	"crypto/subtle"
	"hash"
	"slices"
)

// OMAC returns the message authentication code of GOST R 34.13-2015, section 5.6. It
// has the length of a block of the cipher, 8 or 16 bytes.
func OMAC(b cipher.Block, message []byte) []byte {
	h := newOMAC(b)
	h.Write(message)
	return h.Sum(nil)
}

// NewOMAC returns the computation of OMAC for a message in parts. The cipher must have blocks
// of 8 or 16 bytes. Compare codes with subtle.ConstantTimeCompare.
func NewOMAC(b cipher.Block) hash.Hash { return newOMAC(b) }

func newOMAC(b cipher.Block) *omac {
	size := b.BlockSize()
	return &omac{block: b, state: make([]byte, size), last: make([]byte, 0, size)}
}

type omac struct {
	block cipher.Block
	state []byte
	last  []byte // read and not in state: a whole block may be the last one, which has another key
}

func (o *omac) Size() int      { return o.block.BlockSize() }
func (o *omac) BlockSize() int { return o.block.BlockSize() }

func (o *omac) Reset() {
	clear(o.state)
	o.last = o.last[:0]
}

func (o *omac) Write(p []byte) (int, error) {
	n, size := len(p), len(o.state)
	for len(p) > 0 {
		if len(o.last) == size {
			o.absorb(o.last)
			o.last = o.last[:0]
		}
		if len(o.last) == 0 {
			for len(p) > size {
				o.absorb(p[:size])
				p = p[size:]
			}
		}
		k := min(size-len(o.last), len(p))
		o.last = append(o.last, p[:k]...)
		p = p[k:]
	}
	return n, nil
}

func (o *omac) absorb(block []byte) {
	subtle.XORBytes(o.state, o.state, block)
	o.block.Encrypt(o.state, o.state)
}

func (o *omac) Sum(b []byte) []byte {
	size := len(o.state)
	polynomial := byte(0x1b)
	if size == 16 {
		polynomial = 0x87
	}
	key := make([]byte, size)
	defer clear(key)
	o.block.Encrypt(key, key)
	double(key, polynomial)
	last := make([]byte, size)
	defer clear(last)
	if n := copy(last, o.last); n < size {
		last[n] = 0x80
		double(key, polynomial)
	}
	state := slices.Clone(o.state)
	subtle.XORBytes(state, state, last)
	subtle.XORBytes(state, state, key)
	o.block.Encrypt(state, state)
	return append(b, state...)
}

// double multiplies v by x in the field of the block, in constant time.
func double(v []byte, polynomial byte) {
	carry := byte(0)
	for i := len(v) - 1; i >= 0; i-- {
		next := v[i] >> 7
		v[i] = v[i]<<1 | carry
		carry = next
	}
	v[len(v)-1] ^= polynomial & -carry
}
