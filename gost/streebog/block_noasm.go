package streebog

// blocks runs stage 2 of RFC 6986, section 8, over p, whose length is a multiple
// of BlockSize: for each block it compresses, counts 512 bits and adds the block
// to the sum. It takes whole runs so that an implementation in assembly can keep
// its constants in registers. A platform that has one is excluded from this file
// by a build constraint and falls back on blocksGeneric at run time.
func blocks(s *state, p []byte) { blocksGeneric(s, p) }
