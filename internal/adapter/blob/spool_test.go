// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// spools returns the spool of this system, one without asynchronous writes of the system, and one as on file
// systems without writes past the page cache.
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
	alone, err := NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if alone.direct {
		takeQueues(t, alone)
	}
	return map[string]*Spool{"direct": direct, "without queues": alone, "plain": plain}
}

// takeQueues takes all queues of a spool. It returns how many there were, and a function that gives them back.
func takeQueues(t *testing.T, s *Spool) (n int, back func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	var all []aside
	for {
		q := s.queues.open(f, 0)
		if q == nil {
			break
		}
		all = append(all, q)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return len(all), func() {
		for _, q := range all {
			q.close()
		}
	}
}

// TestSpoolKeepsEveryByte writes in pieces of all lengths, reads in between and writes again.
func TestSpoolKeepsEveryByte(t *testing.T) {
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
			for round, size := range []int{0, 1, blockSize, pieceSize - 1, pieceSize, 5*pieceSize + 77, 3, 2 * pieceSize, 100, wideFrom, wideSize + 1, 2*wideSize + 5} {
				for reading := round%2 == 1; size > 0; {
					n := min(size, 1+r.IntN(pieceSize+blockSize))
					p := make([]byte, n)
					source.Read(p)
					m, err := 0, error(nil)
					if reading {
						var read int64
						read, err = f.(io.ReaderFrom).ReadFrom(bytes.NewReader(p))
						m = int(read)
					} else {
						m, err = f.Write(p)
					}
					if m != n || err != nil {
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
		})
	}
}

// TestSpoolWidePieces checks that the number of large pieces is limited, that files continue with small pieces
// when there are no more, and that all pieces are given back.
func TestSpoolWidePieces(t *testing.T) {
	s := spools(t)["direct"]
	if !s.direct {
		t.Skip("the file system of the tests takes no direct writes")
	}
	queues, back := takeQueues(t, s)
	back()
	document := make([]byte, wideFrom+2*wideSize)
	var files []io.Closer
	for range widePieces + 2 {
		f, err := s.Create()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		if _, err := f.Write(document[:wideFrom+1]); err != nil {
			t.Fatal(err)
		}
		if n := s.wide.Load(); n > widePieces {
			t.Fatalf("%d large pieces are in use", n)
		}
	}
	// Two more for each file: a file with a large piece takes another one and a queue.
	for _, f := range files {
		if _, err := f.(io.Writer).Write(document[wideFrom:]); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := takeQueues(t, s); n != 0 && queues != 0 {
		t.Errorf("%d of %d queues are free while large pieces are written", n, queues)
	}
	if n := s.wide.Load(); n != widePieces {
		t.Errorf("%d files use %d large pieces; want %d", len(files), n, widePieces)
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := s.wide.Load(); n != 0 {
		t.Errorf("%d large pieces did not come back", n)
	}
	if n, _ := takeQueues(t, s); n != queues {
		t.Errorf("%d of %d queues came back", n, queues)
	}
}

// broken is an aside that cannot write.
type broken struct {
	aside
	cuts []int64
}

func (b *broken) begin([]byte, int64) error { return errors.New("broken") }
func (b *broken) cut(size int64) error      { b.cuts = append(b.cuts, size); return b.aside.cut(size) }

// TestSpoolGoesOnWithoutItsAside checks that a file continues with another aside when its aside fails.
func TestSpoolGoesOnWithoutItsAside(t *testing.T) {
	s := spools(t)["direct"]
	if !s.direct {
		t.Skip("the file system of the tests takes no direct writes")
	}
	made, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	f := made.(*spoolFile)
	want := sample(wideFrom + 3*wideSize + 5)
	if _, err := f.Write(want[:wideFrom+wideSize]); err != nil {
		t.Fatal(err)
	}
	f.settle()
	gone := &broken{aside: f.out}
	f.out = gone
	if _, err := f.Write(want[wideFrom+wideSize:]); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want)+1)
	if n, err := f.ReadAt(got, 0); n != len(want) || !errors.Is(err, io.EOF) || !bytes.Equal(got[:n], want) {
		t.Errorf("read %d of %d bytes, %v", n, len(want), err)
	}
	if len(gone.cuts) != 1 || gone.cuts[0] != wideFrom+wideSize {
		t.Errorf("the file was cut at %v", gone.cuts)
	}
}

// TestSpoolTakesWhatAReaderGives checks that an error of the reader ends reading, that the bytes before it are
// kept, and that a failed or closed file reads nothing.
func TestSpoolTakesWhatAReaderGives(t *testing.T) {
	lost := errors.New("lost")
	for name, s := range spools(t) {
		t.Run(name, func(t *testing.T) {
			f, err := s.Create()
			if err != nil {
				t.Fatal(err)
			}
			n, err := f.(io.ReaderFrom).ReadFrom(io.MultiReader(strings.NewReader("what came"), iotest.ErrReader(lost)))
			if n != 9 || !errors.Is(err, lost) {
				t.Errorf("read %d bytes, %v", n, err)
			}
			got := make([]byte, 9)
			if _, err := f.ReadAt(got, 0); err != nil || string(got) != "what came" {
				t.Errorf("the file holds %q, %v", got, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if _, err := f.(io.ReaderFrom).ReadFrom(strings.NewReader("more")); err == nil {
				t.Error("a closed file accepts bytes")
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

// A failed write is reported by the next call and all later calls, so no lost byte goes unnoticed.
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
		t.Fatalf("the first piece is still being written: %v", err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("bytes that were never written can be read")
	}
	if _, err := f.Write([]byte{1}); err == nil {
		t.Error("a write after a failure is accepted")
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
