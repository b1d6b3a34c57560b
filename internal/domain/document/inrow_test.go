// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
)

// read returns the content of a document of anna.
func (s *shelf) read(t *testing.T, id string) []byte {
	t.Helper()
	d, err := s.Open(t.Context(), anna, id)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var got bytes.Buffer
	if _, err := d.WriteTo(&got); err != nil {
		t.Fatal(err)
	}
	return got.Bytes()
}

// TestInRow: documents of up to Rules.InRow bytes are in their rows, and everything works as for others,
// whatever the limit is by then.
func TestInRow(t *testing.T) {
	const limit = 1000
	s := open(t)
	s.Rules.InRow = limit
	sizes := []int{1, limit - 1, limit, limit + 1, 300_000}
	kept, err := s.Keep(t.Context(), anna, s.intake(t, anna, sizes...))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.files(t)); n != 2 {
		t.Errorf("%d files, want one for each of the two larger documents", n)
	}
	for _, later := range []int64{0, limit, 128 << 10} {
		s.Rules.InRow = later
		for i, k := range kept {
			if got := s.read(t, k.ID); !bytes.Equal(got, content(sizes[i])) {
				t.Errorf("limit %d: the document of %d bytes has %d", later, sizes[i], len(got))
			}
			found, err := s.Find(t.Context(), anna, []string{k.ID, kept[0].ID})
			if err != nil {
				t.Fatal(err)
			}
			d, err := found.Open(t.Context(), k.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got := make([]byte, sizes[i]); d.Size() != int64(len(got)) {
				t.Errorf("%d bytes of %d are found", d.Size(), len(got))
			} else if _, err := d.ReadAt(got, 0); err != nil || !bytes.Equal(got, content(sizes[i])) {
				t.Errorf("found: %v", err)
			}
			d.Close()
			if i, err := s.ByHash(t.Context(), anna, k.Hash); err != nil || i.ID != k.ID {
				t.Errorf("by its hash: %v, %v", i.ID, err)
			}
			if _, err := s.Open(t.Context(), boris, k.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("of another user: %v", err)
			}
		}
	}
	for _, k := range kept {
		if err := s.Delete(t.Context(), anna, k.ID); err != nil {
			t.Error(err)
		}
		if _, err := s.Open(t.Context(), anna, k.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("deleted: %v", err)
		}
	}
	room, err := s.Uploads.Room(t.Context(), anna.UserID, document.Quotas{All: document.Quota{Objects: 7, Bytes: 1 << 30}, Own: document.Quota{Objects: 7, Bytes: 1 << 20}})
	if err != nil || room != (document.Quota{Objects: 7, Bytes: 1 << 20}) {
		t.Errorf("after the deletion there is room for %+v, %v", room, err)
	}
}

// TestInRowExpires: the row of an expired document goes with its content, without the storage.
func TestInRowExpires(t *testing.T) {
	s := open(t)
	s.Rules = document.Rules{InRow: 1000, Own: document.Quota{Objects: 1, Bytes: 1000}}
	list := s.intake(t, anna, 1000)
	list[0].Description.Temporary = true
	if _, err := s.Keep(t.Context(), anna, list); err != nil {
		t.Fatal(err)
	}
	if fits(t, s, 1) {
		t.Error("a second document fits")
	}
	s.wait(26 * time.Hour)
	s.Bytes = &failing{Bytes: s.Bytes, remove: errors.New("away")}
	if err := s.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if !fits(t, s, 1) {
		t.Error("after the end of the first none fits")
	}
}

// TestInRowWithoutStorage: small documents need no storage.
func TestInRowWithoutStorage(t *testing.T) {
	s := open(t)
	s.Rules.InRow = 1000
	away := errors.New("away")
	s.Bytes = &failing{Bytes: s.Bytes, write: away, commit: away, remove: away}
	kept, err := s.Keep(t.Context(), anna, s.intake(t, anna, 1000, 10))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.read(t, kept[0].ID); !bytes.Equal(got, content(1000)) {
		t.Errorf("%d bytes", len(got))
	}
	if err := s.Delete(t.Context(), anna, kept[0].ID); err != nil {
		t.Error(err)
	}
	list := s.intake(t, anna, 10, 1001)
	if _, err := s.Keep(t.Context(), anna, list); !errors.Is(err, away) {
		t.Errorf("with a larger document: %v", err)
	}
	for _, n := range list {
		n.Content.Close()
	}
	if found, err := s.Newest(t.Context(), anna, document.Position{}, 10); err != nil || len(found) != 1 {
		t.Errorf("%d documents, %v", len(found), err)
	}
}

// TestBatch: small documents of a batch count in the quotas before they are recorded, only some of them
// stay in memory, and they are recorded all or none.
func TestBatch(t *testing.T) {
	s := open(t)
	s.Rules = document.Rules{InRow: 100 << 10, Own: document.Quota{Objects: 120, Bytes: 1 << 30}}
	save := func(b *document.Batch, size int) (string, error) {
		return b.Save(t.Context(), document.Description{Name: "r"}, bytes.NewReader(content(size)))
	}
	b := s.NewBatch(anna)
	var ids []string
	for range 100 {
		id, err := save(b, 100<<10)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if n := len(s.files(t)); n != 19 { // 81 of them are 8 MiB
		t.Errorf("%d files", n)
	}
	if err := b.Record(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if got := s.read(t, id); !bytes.Equal(got, content(100<<10)) {
			t.Errorf("%d bytes", len(got))
		}
	}

	one, other := s.NewBatch(anna), s.NewBatch(anna)
	for range 20 {
		for _, b := range []*document.Batch{one, other} {
			if _, err := save(b, 10); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := save(one, 10)
	wantFault(t, err, fault.InvalidObjectState)
	if err := one.Record(t.Context()); err != nil {
		t.Error(err)
	}
	// Its documents had room when they were saved.
	wantFault(t, s.Store.Atomic(t.Context(), other.Record), fault.InvalidObjectState)
	if err := s.NewBatch(anna).Record(t.Context()); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
	list, err := s.Newest(t.Context(), anna, document.Position{}, 200)
	if err != nil || len(list) != 120 {
		t.Errorf("%d documents, %v", len(list), err)
	}
	if _, err := s.NewBatch(anna).Save(t.Context(), document.Description{Name: "r"}, strings.NewReader("")); !fault.Is(err, fault.ContentRequired) {
		t.Errorf("an empty document: %v", err)
	}
}
