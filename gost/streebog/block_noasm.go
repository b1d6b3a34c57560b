// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package streebog

// blocks runs stage 2 of RFC 6986, section 8, over p, whose length is a multiple
// of BlockSize. For each block it compresses, adds 512 to the bit count and adds the
// block to the sum.
func blocks(s *state, p []byte) { blocksGeneric(s, p) }

// blocksTwo runs blocks for two different states. p and q must have the same length.
func blocksTwo(s, t *state, p, q []byte) {
	blocksGeneric(s, p)
	blocksGeneric(t, q)
}
