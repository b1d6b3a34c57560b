// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
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
