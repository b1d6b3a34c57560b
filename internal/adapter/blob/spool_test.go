package blob

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
)

// spools are the spool as it is here and as it is on file systems that know no
// direct writes.
func spools(t *testing.T) map[string]*Spool {
	t.Helper()
	direct, err := NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !direct.direct {
		t.Log("the file system of the tests takes no direct writes: both spools are the plain one")
	}
	plain, err := NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain.direct = false
	return map[string]*Spool{"direct": direct, "plain": plain}
}

// TestSpoolKeepsEveryOctet writes in pieces of all lengths, reads in between and
// goes on.
func TestSpoolKeepsEveryOctet(t *testing.T) {
	for name, s := range spools(t) {
		t.Run(name, func(t *testing.T) {
			source := rand.NewChaCha8([32]byte{1})
			r := rand.New(source)
			f, err := s.Create()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var want []byte
			for round, size := range []int{0, 1, blockSize, pieceSize - 1, pieceSize, 5*pieceSize + 77, 3, 2 * pieceSize, 100} {
				for size > 0 {
					n := min(size, 1+r.IntN(pieceSize+blockSize))
					p := make([]byte, n)
					source.Read(p)
					if m, err := f.Write(p); m != n || err != nil {
						t.Fatalf("wrote %d of %d: %v", m, n, err)
					}
					want = append(want, p...)
					size -= n
				}
				got := make([]byte, len(want))
				if n, err := f.ReadAt(got, 0); n != len(want) || err != nil && !errors.Is(err, io.EOF) {
					t.Fatalf("round %d: read %d of %d: %v", round, n, len(want), err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("round %d: other octets than those written", round)
				}
			}
		})
	}
}

func TestSpoolLeavesNothingBehind(t *testing.T) {
	for name, s := range spools(t) {
		t.Run(name, func(t *testing.T) {
			f, err := s.Create()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(make([]byte, 3*pieceSize+5)); err != nil {
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
		})
	}
}

// A write that fails shows at the next call and for good: no octet is lost unseen.
func TestSpoolReportsFailures(t *testing.T) {
	s := spools(t)["direct"]
	if !s.direct {
		t.Skip("the file system of the tests takes no direct writes")
	}
	f, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.(*spoolFile).direct.Close()
	if _, err := f.Write(make([]byte, pieceSize)); err != nil {
		t.Fatalf("the first piece is still under way: %v", err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("read what was never written")
	}
	if _, err := f.Write([]byte{1}); err == nil {
		t.Error("wrote on after a failure")
	}
}

func BenchmarkSpool(b *testing.B) {
	s, err := NewSpool(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
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
