// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"bytes"
	"sync"
	"testing"

	"tamga/pki/suite"
)

// TestDigestBeside: many goroutines that hash messages of all sizes, by two algorithms, get the
// digests of their own messages.
func TestDigestBeside(t *testing.T) {
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			h := suite.Streebog256
			if i%4 == 3 {
				h = suite.Streebog512
			}
			for round := range 50 {
				message := bytes.Repeat([]byte{byte(i), byte(round), 7}, (i*131+round*977)%9000)
				if got, want := digestBeside(h, message), h.Digest(message); got.Hash != h || !bytes.Equal(got.Sum, want.Sum) {
					t.Errorf("%d bytes: %x, want %x", len(message), got.Sum, want.Sum)
				}
			}
		})
	}
	all.Wait()
}

// TestDigestsBeside: two messages of one algorithm or of two have the digests that each has alone.
func TestDigestsBeside(t *testing.T) {
	first, second := bytes.Repeat([]byte("1"), 3*besideFrom), bytes.Repeat([]byte("2"), besideFrom)
	for _, hashes := range [][2]*suite.Hash{
		{suite.Streebog256, suite.Streebog256}, {suite.Streebog512, suite.Streebog512}, {suite.Streebog256, suite.Streebog512},
	} {
		asked := []*besideMessage{{hash: hashes[0], message: first}, {hash: hashes[1], message: second}}
		hashBeside(asked)
		for _, m := range asked {
			if want := m.hash.Digest(m.message); m.digest.Hash != m.hash || !bytes.Equal(m.digest.Sum, want.Sum) {
				t.Errorf("%s: %x, want %x", m.hash.Name, m.digest.Sum, want.Sum)
			}
		}
	}
}
