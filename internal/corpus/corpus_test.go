// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
)

// TestTables: each explanation is of a row, and the forms of the table are known.
func TestTables(t *testing.T) {
	samples, err := table(expectedText)
	if err != nil || len(samples) < 400 {
		t.Fatal(len(samples), err)
	}
	files := map[string]bool{}
	for _, s := range samples {
		files[s.file] = true
	}
	for file, reason := range explanations(explainedText) {
		if !files[file] || reason == "" {
			t.Errorf("%s: %q", file, reason)
		}
	}
}

// TestJudge compares made samples with what is said of them.
func TestJudge(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Person")
	message := sigtest.Make(t, cades.New(), signer, &sig.Job{Document: sigtest.Document([]byte("text")), Params: sig.Params{"CADESType": "BES", "IsDetached": "True"}})
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(pathOf(dir, "m/a.p7s")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pathOf(dir, "m/a.p7s"), message, 0o600); err != nil {
		t.Fatal(err)
	}
	right := sample{file: "m/a.p7s", detached: []string{"hex:" + hex.EncodeToString([]byte("text"))}, signatures: "1", signaturesAll: "1", levels: "first:CAdES_BASELINE_B",
		valueHolds: "true", scope: "all", stamps: "0", stampsHold: "unknown", indicates: "unknown"}
	for name, c := range map[string]struct {
		change  func(*sample)
		differs int
		danger  bool
	}{
		"right":            {func(*sample) {}, 0, false},
		"another document": {func(s *sample) { s.detached = []string{"hex:00"} }, 1, false},
		"called broken":    {func(s *sample) { s.valueHolds = "false" }, 1, true},
		"called failed":    {func(s *sample) { s.indicates = "TOTAL_FAILED/HASH_FAILURE" }, 1, true},
		"called refused":   {func(s *sample) { s.refused = true }, 1, false},
		"more signatures":  {func(s *sample) { s.signatures = "2" }, 1, false},
		"another level":    {func(s *sample) { s.levels = "first:CAdES_BASELINE_LTA" }, 1, false},
		"more time stamps": {func(s *sample) { s.stamps = "1" }, 1, false},
		"a missing file":   {func(s *sample) { s.file = "m/b" }, 1, false},
	} {
		s := right
		c.change(&s)
		if o := judge(dir, sig.Formats{cades.New()}, &s); len(o.differs) != c.differs || o.danger != c.danger {
			t.Errorf("%s: %q %t", name, o.differs, o.danger)
		}
	}
}
