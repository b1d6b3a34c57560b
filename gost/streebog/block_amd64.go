// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package streebog

import (
	"math"

	"golang.org/x/sys/cpu"
)

// vectorized reports whether the processor and the operating system support the
// instructions of block_amd64.s. Only tests change it.
var vectorized = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL &&
	cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512GFNI

// constants is the argument v of both functions in assembly.
var constants = func() *vectors {
	if !vectorized {
		return nil
	}
	return makeVectors()
}()

// compress does what blocksGeneric does for n blocks at p, n > 0. It changes only the
// low word of the bit count, which must not overflow.
//
// The round function has two forms, ROWS and COLUMNS, which take turns. The map P of
// RFC 6986 transposes a block, and L multiplies each of its words by a matrix. So word
// r of the result depends on byte r of every word. ROWS combines whole words, byte by
// byte, and leaves the result transposed. COLUMNS starts from the transposed form,
// where the bytes to combine are in one word, and leaves the result in order. So no
// code carries out a transposition.
//
//go:noescape
func compress(s *state, p *byte, n int, v *vectors)

// compressTwo runs compress for n blocks at p with the state s and for n blocks at q
// with the state t. One state alone would wait for its own results half of the time.
// The other state uses that time.
//
//go:noescape
func compressTwo(s, t *state, p, q *byte, n int, v *vectors)

// longest is the maximum number of bytes for one call of the assembly. The scheduler
// and the garbage collector cannot interrupt assembly, so a call must take only
// microseconds.
const longest = 32 << 10

// blocks runs stage 2 of RFC 6986, section 8, over p, whose length is a multiple
// of BlockSize. For each block it compresses, adds 512 to the bit count and adds the
// block to the sum.
func blocks(s *state, p []byte) {
	for len(p) > 0 {
		n := min(len(p), longest)
		switch {
		case vectorized && counts(s, n):
			compress(s, &p[0], n/BlockSize, constants)
		case halved && counts(s, n):
			compressNibbles(s, &p[0], n/BlockSize, nibbleConstants())
		default:
			blocksGeneric(s, p[:n])
		}
		p = p[n:]
	}
}

// blocksTwo runs blocks for two different states. p and q must have the same length.
func blocksTwo(s, t *state, p, q []byte) {
	for len(p) > 0 {
		n := min(len(p), longest)
		if vectorized && counts(s, n) && counts(t, n) {
			compressTwo(s, t, &p[0], &q[0], n/BlockSize, constants)
		} else {
			blocks(s, p[:n])
			blocks(t, q[:n])
		}
		p, q = p[n:], q[n:]
	}
}

// counts reports whether n more bytes change only the low word of the bit count.
func counts(s *state, n int) bool { return s.n[0] <= math.MaxUint64-8*uint64(n) }
