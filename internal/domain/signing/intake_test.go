package signing

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"tamga/pki/suite"
)

// heap is a Spool in memory that counts what is open and can run out of room.
type heap struct {
	open int
	room int
}

type heapFile struct {
	h    *heap
	data []byte
}

var errNoRoom = errors.New("no room")

func (h *heap) Create() (SpoolFile, error) {
	h.open++
	return &heapFile{h: h}, nil
}

func (f *heapFile) Write(p []byte) (int, error) {
	if len(f.data)+len(p) > f.h.room {
		return 0, errNoRoom
	}
	f.data = append(f.data, p...)
	return len(p), nil
}

func (f *heapFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, off)
}

func (f *heapFile) Close() error {
	f.h.open--
	return nil
}

// TestIntakeSizes writes documents around the edge between memory and spool, in
// pieces of several sizes, and reads them back.
func TestIntakeSizes(t *testing.T) {
	pattern := make([]byte, 3*memoryLimit)
	for i := range pattern {
		pattern[i] = byte(i ^ i>>8)
	}
	for _, size := range []int{0, 1, memoryLimit - 1, memoryLimit, memoryLimit + 1, 3 * memoryLimit} {
		for _, piece := range []int{1000, memoryLimit - 1, 4 * memoryLimit} {
			h := &heap{room: 1 << 30}
			in := newIntake(h, suite.Streebog256)
			want := pattern[:size]
			for rest := want; len(rest) > 0; {
				n := min(piece, len(rest))
				if _, err := in.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := in.Finish(); err != nil {
				t.Fatal(err)
			}
			if in.Size() != int64(size) || (h.open == 1) != (size > memoryLimit) {
				t.Errorf("size %d: got size %d, %d spool files", size, in.Size(), h.open)
			}
			got, err := io.ReadAll(io.NewSectionReader(in, 0, in.Size()))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("size %d in pieces of %d: what is read is not what was written (%v)", size, piece, err)
			}
			sum := suite.Streebog256.New()
			sum.Write(want)
			if d := in.digests(); len(d) != 1 || !bytes.Equal(d[0].Sum, sum.Sum(nil)) {
				t.Errorf("size %d: wrong digest", size)
			}
			if err := errors.Join(in.Close(), in.Close()); err != nil || h.open != 0 {
				t.Errorf("size %d: after Close %d spool files are open (%v)", size, h.open, err)
			}
		}
	}
}

func TestIntakeWithoutRoom(t *testing.T) {
	h := &heap{room: memoryLimit + 10}
	in := newIntake(h, nil)
	if _, err := in.Write(make([]byte, memoryLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(make([]byte, 100)); !errors.Is(err, errNoRoom) {
		t.Errorf("a full spool answers %v", err)
	}
	in.Close()
	if h.open != 0 {
		t.Errorf("%d spool files stay open", h.open)
	}
}

// TestIntakeOrder: an intake is written, then finished, then read, then closed.
func TestIntakeOrder(t *testing.T) {
	in := newIntake(&heap{room: 10}, nil)
	one := make([]byte, 1)
	if _, err := in.ReadAt(one, 0); !errors.Is(err, errIntakeState) {
		t.Errorf("reading before Finish: %v", err)
	}
	in.Write([]byte("ab"))
	in.Finish()
	if _, err := in.Write(one); !errors.Is(err, errIntakeState) {
		t.Errorf("writing after Finish: %v", err)
	}
	if err := in.Finish(); !errors.Is(err, errIntakeState) {
		t.Errorf("finishing twice: %v", err)
	}
	if _, err := in.ReadAt(one, -1); err == nil {
		t.Error("a negative offset is read")
	}
	if n, err := in.ReadAt(one, 2); n != 0 || err != io.EOF {
		t.Errorf("reading at the end: %d, %v", n, err)
	}
	in.Close()
	if _, err := in.ReadAt(one, 0); !errors.Is(err, errIntakeState) {
		t.Errorf("reading after Close: %v", err)
	}
}
