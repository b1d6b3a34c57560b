// SPDX-License-Identifier: Apache-2.0

package pdfjs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestScriptsOfOthers compares pdf.js with the checksums that renew.sh wrote.
func TestScriptsOfOthers(t *testing.T) {
	sums, err := os.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		text, err := os.ReadFile(name)
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(text)) != sum {
			t.Errorf("%s is not what renew.sh wrote: %v", name, err)
		}
		if name != "LICENSE" && !strings.Contains(string(text), version) {
			t.Errorf("%s is not version %s", name, version)
		}
	}
	if len(lines) != 4 {
		t.Errorf("%d files", len(lines))
	}
}
