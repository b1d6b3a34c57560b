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
	if waiting.Load() != nil {
		t.Error("a message still waits")
	}
}

// TestDigestBesideWaiting: a message that waits is hashed with the next one of its algorithm, and
// left alone by others.
func TestDigestBesideWaiting(t *testing.T) {
	first, second := bytes.Repeat([]byte("1"), 3*besideFrom), bytes.Repeat([]byte("2"), besideFrom)
	other := &besideMessage{hash: suite.Streebog256, message: first, done: make(chan struct{})}
	waiting.Store(other)
	for _, c := range []struct {
		hash    *suite.Hash
		message []byte
		takes   bool
	}{
		{suite.Streebog512, second, false},
		{suite.Streebog256, second[1:], false},
		{suite.Streebog256, second, true},
	} {
		if got, want := digestBeside(c.hash, c.message), c.hash.Digest(c.message); !bytes.Equal(got.Sum, want.Sum) {
			t.Errorf("%s: %x, want %x", c.hash.Name, got.Sum, want.Sum)
		}
		if waits := waiting.Load() == other; waits == c.takes {
			t.Errorf("%s, %d bytes: the message waits: %v", c.hash.Name, len(c.message), waits)
		}
	}
	<-other.done
	if want := suite.Streebog256.Digest(first); !bytes.Equal(other.digest.Sum, want.Sum) {
		t.Errorf("the message that waited: %x, want %x", other.digest.Sum, want.Sum)
	}
}
