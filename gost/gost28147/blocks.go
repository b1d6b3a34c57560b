// SPDX-License-Identifier: Apache-2.0

package gost28147

import "encoding/binary"

// EncryptBlocks enciphers every block of src, each by itself; see NewCipher.
func (b *block) EncryptBlocks(dst, src []byte) {
	if len(src)%BlockSize != 0 {
		panic("gost28147: input not full blocks")
	}
	if len(dst) < len(src) {
		panic("gost28147: output smaller than input")
	}
	done := b.encryptWide(dst, src)
	b.encryptPairs(dst[done:], src[done:])
}

// encryptPairs enciphers two blocks at a time. One word holds the lower halves of both
// blocks, another word the higher halves.
func (b *block) encryptPairs(dst, src []byte) {
	for ; len(src) >= 2*BlockSize; dst, src = dst[2*BlockSize:], src[2*BlockSize:] {
		x, y := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[BlockSize:])
		lo, hi := x&low|y<<32, x>>32|y&^low
		for range 3 {
			for i := 0; i < 8; i += 2 {
				hi ^= b.rounds(lo, b.k[i])
				lo ^= b.rounds(hi, b.k[i+1])
			}
		}
		for i := 7; i > 0; i -= 2 {
			hi ^= b.rounds(lo, b.k[i])
			lo ^= b.rounds(hi, b.k[i-1])
		}
		binary.LittleEndian.PutUint64(dst, hi&low|lo<<32)
		binary.LittleEndian.PutUint64(dst[BlockSize:], hi>>32|lo&^low)
	}
	if len(src) > 0 {
		b.Encrypt(dst, src)
	}
}

const low = 1<<32 - 1

// rounds computes the round function for both halves of x with one key.
func (b *block) rounds(x uint64, key uint32) uint64 {
	// Two separate additions, so that the carry of the lower half does not reach the
	// upper half.
	k := uint64(key)
	sum := (x+k)&low | (x+k<<32)&^low
	y := substitute(b.s, sum)
	const left = 1<<11 - 1 | (1<<11-1)<<32 // the bits that wrap around
	return y<<11&^left | y>>21&left
}
