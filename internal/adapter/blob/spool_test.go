// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"tamga/internal/domain/signing"
)

func newSpool(tb testing.TB) *Spool {
	tb.Helper()
	s, err := NewSpool(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestSpoolKeepsEveryByte writes in pieces of all lengths, reads in between and writes again.
func TestSpoolKeepsEveryByte(t *testing.T) {
	s := newSpool(t)
	t.Run("plain", func(t *testing.T) { testSpoolKeepsEveryByte(t, s) })
	t.Run("sealed", func(t *testing.T) { testSpoolKeepsEveryByte(t, s.Sealed()) })
}

func testSpoolKeepsEveryByte(t *testing.T, s signing.Spool) {
	source := rand.NewChaCha8([32]byte{1})
	r := rand.New(source)
	f, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const piece = 192 << 10
	var want []byte
	for round, size := range []int{0, 1, 4096, piece - 1, piece, 5*piece + 77, 3, 2 * piece, 100} {
		for size > 0 {
			n := min(size, 1+r.IntN(piece+4096))
			p := make([]byte, n)
			source.Read(p)
			if m, err := f.Write(p); m != n || err != nil {
				t.Fatalf("took %d of %d: %v", m, n, err)
			}
			want = append(want, p...)
			size -= n
		}
		got := make([]byte, len(want)+1) // the file must end after the written bytes
		if n, err := f.ReadAt(got, 0); n != len(want) || !errors.Is(err, io.EOF) {
			t.Fatalf("round %d: read %d of %d: %v", round, n, len(want), err)
		}
		if !bytes.Equal(got[:len(want)], want) {
			t.Fatalf("round %d: other bytes than those written", round)
		}
		for range 20 { // from positions inside of blocks
			if len(want) < 2 {
				break
			}
			at := r.IntN(len(want) - 1)
			part := make([]byte, 1+r.IntN(min(len(want)-at, 1000)))
			if n, err := f.ReadAt(part, int64(at)); n != len(part) || err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(part, want[at:at+n]) {
				t.Fatalf("round %d: %d bytes at %d: read %d other ones, %v", round, len(part), at, n, err)
			}
		}
	}
}

// What a sealed spool has on disk is not the document, and two files of one document differ.
func TestSealedSpoolHidesDocuments(t *testing.T) {
	s := newSpool(t)
	document := bytes.Repeat([]byte("the plaintext of a message "), 10_000)
	var stored [2][]byte
	for i := range stored {
		f, err := s.Sealed().Create()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(document); err != nil {
			t.Fatal(err)
		}
		stored[i] = make([]byte, len(document))
		if _, err := f.(*encryptedFile).SpoolFile.ReadAt(stored[i], 0); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if bytes.Contains(stored[i], []byte("plaintext")) || bytes.Equal(stored[i][:16], stored[i][16:32]) {
			t.Errorf("file %d has the document", i)
		}
	}
	if bytes.Equal(stored[0], stored[1]) {
		t.Error("two files have the same bytes")
	}
}

// halves writes only a part of what it gets, and then fails once.
type halves struct {
	signing.SpoolFile
	failed bool
}

func (h *halves) Write(p []byte) (int, error) {
	if h.failed || len(p) < 2 {
		return h.SpoolFile.Write(p)
	}
	h.failed = true
	n, err := h.SpoolFile.Write(p[:len(p)/2])
	return n, errors.Join(err, errors.New("no space"))
}

// A caller may write again what was not written.
func TestSealedSpoolAfterAFailure(t *testing.T) {
	f, err := newSpool(t).Sealed().Create()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.(*encryptedFile).SpoolFile = &halves{SpoolFile: f.(*encryptedFile).SpoolFile}
	document := []byte("one two three four five six seven eight")
	n, err := f.Write(document)
	if err == nil || n == 0 || n == len(document) {
		t.Fatal(n, err)
	}
	if _, err := f.Write(document[n:]); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(document))
	if _, err := f.ReadAt(got, 0); err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(got, document) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSpoolLeavesNothingBehind(t *testing.T) {
	s := newSpool(t)
	f, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(s.dir)
	if err != nil || len(left) != 0 {
		t.Errorf("the directory holds %v, %v", left, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Write([]byte{1}); err == nil {
		t.Error("a closed file was written to")
	}
}

func BenchmarkSpool(b *testing.B) {
	s := newSpool(b)
	p := make([]byte, 48<<10)
	const size = 256 << 20
	b.SetBytes(size)
	for b.Loop() {
		f, err := s.Create()
		if err != nil {
			b.Fatal(err)
		}
		for range size / len(p) {
			if _, err := f.Write(p); err != nil {
				b.Fatal(err)
			}
		}
		f.Close()
	}
}
