// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// selfSigned makes a certificate with serial number n.
func selfSigned(t testing.TB, n byte) []byte {
	t.Helper()
	s := suite.GOST2012x256
	source := rand.NewChaCha8([32]byte{n})
	key, err := s.Generate(source)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: subject, SerialNumber: []byte{n}, NotBefore: from, NotAfter: from.AddDate(1, 0, 0),
	}, nil, key.Public(), s, s, x509gost.SignWith(source, key, s))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestCacheIsBounded(t *testing.T) {
	var c cache
	der := selfSigned(t, 1)
	for id := range int64(cacheSize + 100) {
		e, err := c.entry(id, der)
		if err != nil {
			t.Fatal(err)
		}
		if c.find(id, e.x509) != e {
			t.Fatalf("certificate %d is not kept", id)
		}
	}
	if n := len(c.entries); n != cacheSize {
		t.Errorf("%d certificates are kept, want %d", n, cacheSize)
	}
}

func TestCacheBelievesTheBytes(t *testing.T) {
	var c cache
	one, two := selfSigned(t, 1), selfSigned(t, 2)
	a, err := c.entry(7, one)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := c.entry(7, bytes.Clone(one)); again != a {
		t.Error("the same certificate was parsed twice")
	}
	b, err := c.entry(7, two)
	if err != nil || !bytes.Equal(b.x509.Raw, two) {
		t.Errorf("another certificate of this number: %v", err)
	}
	if c.find(7, a.x509) != nil {
		t.Error("the result on the earlier certificate could be taken for the later one")
	}
	if _, err := c.entry(8, []byte{1, 2, 3}); err == nil {
		t.Error("three bytes were accepted as a certificate")
	}
	// The caller may reuse its bytes.
	mine := bytes.Clone(one)
	if _, err := c.entry(9, mine); err != nil {
		t.Fatal(err)
	}
	clear(mine)
	if e, err := c.entry(9, one); err != nil || !bytes.Equal(e.x509.Raw, one) {
		t.Errorf("the cache shares memory with its caller: %v", err)
	}
}

func TestGates(t *testing.T) {
	var g gates
	inside, most := 0, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			leave, err := g.enter(t.Context(), string(rune('a'+i%2)))
			if err != nil {
				t.Error(err)
				return
			}
			defer leave()
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			mu.Lock()
			inside--
			mu.Unlock()
		})
	}
	all.Wait()
	if most > 2 {
		t.Errorf("%d were inside two gates at once", most)
	}
	leave, err := g.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("went in or waits although it gave up: %v", err)
	}
	leave()
	if len(g.named) != 0 {
		t.Errorf("%d gates are left", len(g.named))
	}
}
