//go:build !purego

package streebog

import (
	"math"

	"golang.org/x/sys/cpu"
)

// vectorized says whether the processor and the system have the instructions of
// block_amd64.s. Only tests change it.
var vectorized = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL &&
	cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512GFNI

// constants are what both functions in assembly take as v.
var constants = func() *vectors {
	if !vectorized {
		return nil
	}
	return makeVectors()
}()

// compress is blocksGeneric for n blocks at p, at least one. It changes the low word
// of the bit count only, which must not overflow.
//
// The round function has two forms, ROWS and COLUMNS, used by turns. The map P of
// RFC 6986 transposes a block, and L multiplies each of its words by a matrix, so
// that word r of the result is made of the octets r of all words. ROWS multiplies
// whole words, whose octets r then meet in octet r: it leaves the result transposed.
// COLUMNS starts from there, finds what belongs together within a word and leaves
// the result in order. So no transposition is ever carried out.
//
//go:noescape
func compress(s *state, p *byte, n int, v *vectors)

// compressTwo is compress for n blocks at p with the state s and n blocks at q with
// the state t. One state waits for its own results half of the time; the other one
// fills that in.
//
//go:noescape
func compressTwo(s, t *state, p, q *byte, n int, v *vectors)

// longest is the most octets that go into one call: the scheduler and the garbage
// collector cannot interrupt assembly, and must not wait more than microseconds.
const longest = 32 << 10

// blocks runs stage 2 of RFC 6986, section 8, over p, whose length is a multiple
// of BlockSize: for each block it compresses, counts 512 bits and adds the block
// to the sum.
func blocks(s *state, p []byte) {
	for len(p) > 0 {
		n := min(len(p), longest)
		if vectorized && counts(s, n) {
			compress(s, &p[0], n/BlockSize, constants)
		} else {
			blocksGeneric(s, p[:n])
		}
		p = p[n:]
	}
}

// blocksTwo is blocks for two different states and as many octets for each.
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

// counts reports whether n more octets leave the higher words of the bit count as
// they are.
func counts(s *state, n int) bool { return s.n[0] <= math.MaxUint64-8*uint64(n) }
