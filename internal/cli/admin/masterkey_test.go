// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestKeyStatusOfOldKey replaces the key of an installation without servers. Nothing is under the old key, so it
// may be removed at once.
func TestKeyStatusOfOldKey(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "tamga.yaml")
	s := &tamgatest.Server{T: t}
	s.MustRun("init", "--yes", "--public-url", "https://sign.example.org", "--config", config)
	s.MustRun("key", "rotate", "--config", config)
	notes := map[string]string{}
	for line := range strings.Lines(s.MustRun("key", "status", "--config", config)) {
		if words := strings.Fields(line); len(words) > 3 && (words[0] == "1" || words[0] == "2") {
			notes[words[0]] = strings.Join(words[3:], " ")
		}
	}
	if notes["1"] != "may be removed" || notes["2"] != "active" {
		t.Errorf("notes %q", notes)
	}
}
