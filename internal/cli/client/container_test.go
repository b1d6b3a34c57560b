// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"archive/zip"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"tamga/internal/tamgatest"
)

// Several files become one container, which gets one more signature. tamga verify names its files.
func TestSignContainer(t *testing.T) {
	s := tamgatest.Start(t)
	dir := t.TempDir()
	t.Chdir(dir)
	for name, content := range map[string]string{"a.txt": "first", "б в.txt": "second", "sub/a.txt": "other"} {
		tamgatest.WriteFile(t, filepath.Join(dir, name), content)
	}
	ca := s.Path(s.Dev.CAPEM)
	verified := func(file string, signatures int, want ...string) {
		t.Helper()
		r := tamgatest.Run(t.Context(), "", "verify", file, "--json", "--strict", "--ca", ca)
		var report struct {
			Verdict    string
			Signatures []struct{}
			Files      []struct {
				Name       string
				Signatures []int
			}
		}
		if err := json.Unmarshal([]byte(r.Out), &report); err != nil || report.Verdict != "passed" || len(report.Signatures) != signatures {
			t.Fatalf("%s: %v %v\n%s", file, r.Failure, err, r.Out)
		}
		var names []string
		for _, f := range report.Files {
			if len(f.Signatures) == signatures {
				names = append(names, f.Name)
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %v, want %v", file, names, want)
		}
	}
	s.MustRun("sign", "--type", "asic", "a.txt", "б в.txt", "--data", s.Dir)
	verified("a.txt.asice", 1, "a.txt", "б в.txt")
	s.MustRun("sign", "--type", "ASiC", "a.txt.asice", "--cms-signature-type", "Cosign", "--data", s.Dir)
	verified("a.txt.signed.asice", 2, "a.txt", "б в.txt")
	s.MustRun("sign", "--type", "asic", "б в.txt", "--param", "ASiCType=S", "--param", "ASiCFormat=XAdES", "--data", s.Dir)
	verified("б в.txt.asics", 1, "б в.txt")
	s.MustRun("sign", "--type", "asic", "a.txt", "б в.txt", "-o", "named.asice", "--data", s.Dir)
	if r, err := zip.OpenReader("named.asice"); err != nil || len(r.File) != 5 {
		t.Errorf("%v", err)
	} else {
		r.Close()
	}
	for name, args := range map[string][]string{
		"two files of a name": {"a.txt", "sub/a.txt"}, "standard input beside a file": {"a.txt", "-"}, "an existing container": {"a.txt", "б в.txt"},
		"a folder": {"a.txt", "sub", "-o", "x"}, "a missing file": {"a.txt", "none", "-o", "x"},
	} {
		if r := tamgatest.Run(t.Context(), "", append([]string{"sign", "--type", "asic", "--data", s.Dir}, args...)...); r.Failure == nil {
			t.Errorf("%s: %s", name, r.Out)
		}
	}
}
