// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"tamga/internal/domain/vault"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newRing returns a ring with one master key.
func newRing(t testing.TB) *vault.Ring {
	t.Helper()
	ring, err := vault.NewRing("a", map[string][]byte{"a": bytes.Repeat([]byte{7}, vault.MasterKeySize)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// sample returns size bytes whose values depend on their position.
func sample(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i ^ i>>9 ^ i>>17)
	}
	return b
}

// sizes are lengths at which the sealed form may have faults.
var sizes = []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 2 * chunkSize, 5*chunkSize + 77}
