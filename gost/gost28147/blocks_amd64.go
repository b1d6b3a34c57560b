// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package gost28147

import "golang.org/x/sys/cpu"

// vectorized reports whether the processor supports the instructions of
// blocks_amd64.s. Only tests change it.
var vectorized = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512VL

// wide is a substitution in the form that blocks_amd64.s looks up. The values for byte
// p of a word begin at index 16p. lower is for the lower four bits of a byte. upper is
// for the upper four bits, with its values shifted left by 4.
type wide struct{ lower, upper [64]byte }

func (w *wide) set(rows *[8][16]byte) {
	for p := range 4 {
		for x := range 16 {
			w.lower[16*p+x] = rows[2*p][x]
			w.upper[16*p+x] = rows[2*p+1][x] << 4
		}
	}
}

const (
	groupSize = 16 * BlockSize // bytes in a pair of registers
	// longest is the maximum number of bytes for one call of the assembly, which cannot
	// be interrupted.
	longest = 1024 * groupSize
	// few is the smallest number of blocks that the assembly enciphers. For fewer
	// blocks, Go is faster than filling up a group.
	few = 4
)

// encryptWide enciphers blocks at the beginning of src with vectors and returns the
// number of enciphered bytes.
func (b *block) encryptWide(dst, src []byte) (done int) {
	if !vectorized {
		return 0
	}
	keys := b.schedule()
	for whole := len(src) / groupSize * groupSize; done < whole; {
		n := min(longest, whole-done)
		encryptGroups(&dst[done], &src[done], n/groupSize, &keys, &b.s.wide)
		done += n
	}
	if rest := len(src) - done; rest >= few*BlockSize {
		var group [groupSize]byte
		copy(group[:], src[done:])
		encryptGroups(&group[0], &group[0], 1, &keys, &b.s.wide)
		done += copy(dst[done:len(src)], group[:])
		clear(group[:])
	}
	clear(keys[:])
	return done
}

// schedule returns the keys of all rounds.
func (b *block) schedule() (keys [32]uint32) {
	for i := range keys {
		if keys[i] = b.k[i%8]; i >= 24 {
			keys[i] = b.k[31-i]
		}
	}
	return keys
}

// encryptFeedback enciphers whole blocks of src in the cipher feedback mode, at most longest bytes, and returns the
// number of enciphered bytes. It replaces iv by the last enciphered block.
func (b *block) encryptFeedback(dst, src []byte, iv *uint64) int {
	n := min(len(src), longest) / BlockSize
	if !vectorized || n == 0 {
		return 0
	}
	keys := b.schedule()
	encryptChain(&dst[0], &src[0], n, &keys, &b.s.wide, iv)
	clear(keys[:])
	return n * BlockSize
}

// encryptChain enciphers n blocks, each of which is the input of the next.
//
//go:noescape
func encryptChain(dst, src *byte, n int, keys *[32]uint32, s *wide, iv *uint64)

// encryptGroups enciphers n groups of sixteen blocks. keys has the keys of all rounds.
//
//go:noescape
func encryptGroups(dst, src *byte, n int, keys *[32]uint32, s *wide)
