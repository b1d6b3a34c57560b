// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/sig"
	"tamga/sig/ooxml"
)

var samples = flag.String("samples", "", "a directory of documents signed by Office, such as test-data/xmldsign of Apache POI")

// TestSamples recomputes the digests of documents that Office and other programs signed.
// Those of POI use SHA-1, which is refused, and their authorities no longer exist. But
// the signed data must be unchanged and complete.
func TestSamples(t *testing.T) {
	if *samples == "" {
		t.Skip("no -samples given")
	}
	refused := []string{"algorithm-unknown", "digest-algorithm-weak", "signed-properties", "certificate-no-path", "certificate-missing"}
	files, err := filepath.Glob(filepath.Join(*samples, "*.*x"))
	if err != nil {
		t.Fatal(err)
	}
	signatures := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ooxml.New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(data), At: sigtest.Time})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, s := range r.Signatures {
			signatures++
			if !strings.Contains(s.Covers, " parts: /") || strings.Contains(s.Covers, "changed since") {
				t.Errorf("%s: covers %s", file, s.Covers)
			}
			for _, f := range s.Findings {
				if f.Indication != "" && !slices.Contains(refused, f.Code) {
					t.Errorf("%s: %+v", file, f)
				}
			}
		}
	}
	t.Logf("%d signatures in %d documents", signatures, len(files))
}
