// SPDX-License-Identifier: Apache-2.0

package x509gost

import "testing"

func TestCertificateSet(t *testing.T) {
	var s certificateSet
	often := &Certificate{}
	s.put(0, often)
	for id := range uint64(10 * sharedCertificates) {
		s.put(id+1, &Certificate{})
		if s.get(0) != often {
			t.Fatalf("what is used again is gone after %d others", id+1)
		}
		if n := len(s.young) + len(s.old); n > 2*sharedCertificates {
			t.Fatalf("%d certificates are kept", n)
		}
	}
	if s.get(1) != nil {
		t.Error("what was not used again is kept")
	}
}
