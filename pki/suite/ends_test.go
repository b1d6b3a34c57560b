// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"strings"
	"testing"
	"time"

	"tamga/pki/suite"
)

// A setting ends an algorithm that has no end by itself, and no other.
func TestEnds(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ends, err := suite.ParseEnds([]string{"gost r 34.10-2001 = 2030-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suite.All() {
		old := s == suite.GOST2001
		if suite.Ends(nil).Scheme(s.Scheme()).At(at.AddDate(100, 0, 0)) {
			t.Errorf("%s ends without a setting", s.Name)
		}
		if w := ends.Scheme(s.Scheme()); w.At(at) != old || w.At(at.Add(-time.Second)) {
			t.Errorf("%s: %+v", s.Name, w)
		}
		if w := ends.Hash(s.Hash); w.At(at) != (s.Hash == suite.GOST94) {
			t.Errorf("%s: %+v", s.Hash.Name, w)
		}
		if w := ends.Key(suite.Key{Suite: s}); w.At(at) != old {
			t.Errorf("a key of %s: %+v", s.Name, w)
		}
	}
	for text, want := range map[string]string{
		"GOST R 34.10-2001":            "want NAME=YYYY-MM-DD",
		"GOST R 34.10-2001=01.01.2030": "want NAME=YYYY-MM-DD",
		"SHA-1=2040-01-01":             "whose end can be set",
		"rot13=2030-01-01":             "SHA-224, RSA-2048, ECDSA-224, GOST R 34.10-2001",
	} {
		if _, err := suite.ParseEnds([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
