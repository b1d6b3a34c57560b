// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"testing"

	"tamga/internal/domain/document"
)

// TestBecame compares an intake with documents that differ in one thing from what it became.
func TestBecame(t *testing.T) {
	s := open(t)
	kept := s.intake(t, anna, 1000, 1000, 1<<20)
	in := kept[0].Content
	if in.Became(&document.Info{}) {
		t.Error("an intake became the empty document")
	}
	infos, err := s.Keep(t.Context(), anna, kept)
	if err != nil {
		t.Fatal(err)
	}
	for i := range infos {
		read, err := s.Info(t.Context(), anna, infos[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		for n, d := range kept {
			if got := d.Content.Became(&read); got != (n == i) {
				t.Errorf("intake %d became document %d: %v", n, i, got)
			}
		}
	}
	for name, change := range map[string]func(i *document.Info){
		"identifier": func(i *document.Info) { i.ID = infos[1].ID },
		"owner":      func(i *document.Info) { i.UserID = boris.UserID },
		"size":       func(i *document.Info) { i.Size++ },
		"hash":       func(i *document.Info) { i.Hash = infos[2].Hash },
		"algorithm":  func(i *document.Info) { i.HashName = "SHA-384" },
	} {
		other := infos[0]
		change(&other)
		if in.Became(&other) {
			t.Errorf("another %s is not noticed", name)
		}
	}
}
