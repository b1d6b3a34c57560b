//go:build !amd64 || purego

package streebog

// blocks runs stage 2 of RFC 6986, section 8, over p, whose length is a multiple
// of BlockSize: for each block it compresses, counts 512 bits and adds the block
// to the sum.
func blocks(s *state, p []byte) { blocksGeneric(s, p) }

// blocksTwo is blocks for two different states and as many octets for each.
func blocksTwo(s, t *state, p, q []byte) {
	blocksGeneric(s, p)
	blocksGeneric(t, q)
}
