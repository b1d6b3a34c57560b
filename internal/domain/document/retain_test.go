// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tamga/internal/adapter/blob"
	"tamga/internal/domain/document"
	"tamga/internal/domain/vault"
)

// TestReplacePrivate replaces documents while the storage has them as they are: a private one stays sealed, before and
// after it was renewed once, and no other one becomes sealed.
func TestReplacePrivate(t *testing.T) {
	s := open(t)
	s.Retention = s.Store.(document.RetentionStore)
	storage, err := blob.NewDir(s.dir)
	ring, failed := vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)}, s.Rand)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	s.Bytes = blob.NewDocuments(blob.Options{Storage: storage, Ring: ring, Plain: true})
	for _, private := range []bool{true, false} {
		b := s.NewBatch(anna)
		id, err := b.Save(t.Context(), document.Description{Name: "a", Private: private}, bytes.NewReader(content(1000)))
		if err := errors.Join(err, b.Record(t.Context())); err != nil {
			t.Fatal(err)
		}
		for n := range 2 {
			size := 2000 + 200_000*n // in memory at first, and while it is received
			r, err := s.Replace(t.Context(), anna, id, bytes.NewReader(content(size)), n == 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(r.Record(t.Context()), r.Close()); err != nil {
				t.Fatal(err)
			}
			if got := s.read(t, id); !bytes.Equal(got, content(size)) {
				t.Errorf("private %t: %d bytes", private, len(got))
			}
		}
		clear := 0
		for _, name := range s.files(t) {
			stored, err := os.ReadFile(filepath.Join(s.dir, "documents", name))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(stored, content(1000)) {
				clear++
			}
		}
		if want := map[bool]int{true: 0, false: 3}[private]; clear != want {
			t.Errorf("private %t: %d objects in the clear, want %d", private, clear, want)
		}
	}
}
