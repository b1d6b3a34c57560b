// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

// TestSideBySide: parts run together, and neither an error nor a panic of one is lost.
func TestSideBySide(t *testing.T) {
	var together sync.WaitGroup
	together.Add(partsAtOnce)
	meet := func() error {
		together.Done()
		together.Wait() // for ever, unless all run at the same time
		return nil
	}
	parts := make([]func() error, partsAtOnce)
	for i := range parts {
		parts[i] = meet
	}
	if err := Concurrently(parts...); err != nil {
		t.Error(err)
	}
	failed := errors.New("no answer")
	if err := Concurrently(func() error { return nil }, func() error { return failed }, func() error { return nil }); !errors.Is(err, failed) {
		t.Errorf("a part failed: %v", err)
	}
	if err := Concurrently(func() error { panic("a fault") }); err == nil || !strings.Contains(err.Error(), "a fault") {
		t.Errorf("a part panicked: %v", err)
	}
}

// TestBaseName: the name of a file is that on the disk of the person, as far as a form has it.
func TestBaseName(t *testing.T) {
	for sent, want := range map[string]string{
		"a.pdf": "a.pdf", `C:\dir\a.pdf`: "a.pdf", "dir/a.pdf": "a.pdf", "%22a%22 %0D%0Ab.pdf": `"a" b.pdf`, "100%25 %2522 %0d%20.txt": "100%25 %2522 %0d%20.txt",
	} {
		if got := baseName(sent); got != want {
			t.Errorf("%q: %q, want %q", sent, got, want)
		}
	}
}
