// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"sync"
	"testing"

	"tamga/pki/suite"
)

// Digests of a certificate are right for every algorithm when several goroutines ask at
// once, and each is computed once.
func TestCertificateDigest(t *testing.T) {
	c := &Certificate{Raw: []byte("a certificate")}
	hashes := []*suite.Hash{suite.GOST94, suite.Streebog256, suite.Streebog512, suite.SHA1, suite.SHA256, suite.SHA384, suite.SHA512}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, h := range hashes {
				if !bytes.Equal(c.Digest(h), h.Digest(c.Raw).Sum) {
					t.Errorf("%s: another digest than that of the bytes", h.Name)
				}
			}
		})
	}
	wg.Wait()
	for _, h := range hashes {
		if a, b := c.Digest(h), c.Digest(h); &a[0] != &b[0] {
			t.Errorf("%s is computed anew", h.Name)
		}
	}
	if n := len(*c.digests.Load()); n != len(hashes) {
		t.Errorf("%d digests are kept, want %d", n, len(hashes))
	}
}
