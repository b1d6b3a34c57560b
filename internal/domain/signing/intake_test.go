// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"tamga/pki/suite"
	"tamga/sig/budget"
)

// heap is a Spool in memory that counts open files and can run out of space.
type heap struct {
	open            int
	room            int
	writes, written int
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
	n := min(len(p), f.h.room-len(f.data)) // a full disk takes a part of a write
	f.data = append(f.data, p[:n]...)
	f.h.writes++
	f.h.written += n
	if n < len(p) {
		return n, errNoRoom
	}
	return n, nil
}

func (f *heapFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, off)
}

func (f *heapFile) Close() error {
	f.h.open--
	return nil
}

// inPieces is a reader that returns at most so many bytes at a time, and the last ones
// together with io.EOF.
type inPieces struct {
	rest []byte
	most int
}

func (r *inPieces) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), r.most)], r.rest)
	if r.rest = r.rest[n:]; len(r.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// TestIntakeSizes writes documents around the limit between memory and spool, in pieces
// of several sizes, and reads them back.
func TestIntakeSizes(t *testing.T) {
	pattern := make([]byte, 5*memoryLimit+3)
	for i := range pattern {
		pattern[i] = byte(i ^ i>>8)
	}
	for _, size := range []int{0, 1, memoryLimit - 1, memoryLimit, memoryLimit + 1, 5*memoryLimit + 3} {
		for _, piece := range []int{1000, memoryLimit - 1, 4 * memoryLimit} {
			h := &heap{room: 1 << 30}
			in := newIntake(h, suite.Streebog256)
			want := pattern[:size]
			// The first third is written, the rest is read by the intake itself.
			rest := want
			for size := len(want) * 2 / 3; len(rest) > size; {
				n := min(piece, len(rest))
				if _, err := in.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if n, err := in.ReadFrom(&inPieces{rest, piece}); n != int64(len(rest)) || err != nil {
				t.Fatalf("size %d in pieces of %d: read %d of %d bytes, %v", size, piece, n, len(rest), err)
			}
			if err := in.Finish(); err != nil {
				t.Fatal(err)
			}
			if in.Size() != int64(size) || (h.open == 1) != (size > memoryLimit) {
				t.Errorf("size %d: got size %d, %d spool files", size, in.Size(), h.open)
			}
			got, err := io.ReadAll(io.NewSectionReader(in, 0, in.Size()))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("size %d in pieces of %d: the bytes read differ from the bytes written (%v)", size, piece, err)
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
	if _, err := in.Write(make([]byte, 100)); err != nil { // it waits for more
		t.Fatal(err)
	}
	if _, err := in.Write(make([]byte, gatherSize)); !errors.Is(err, errNoRoom) {
		t.Errorf("a full spool answers %v", err)
	}
	in.Finish()
	if _, err := in.ReadAt(make([]byte, 1), 0); !errors.Is(err, errNoRoom) {
		t.Errorf("reading what a full spool did not take: %v", err)
	}
	in.Close()
	if h.open != 0 {
		t.Errorf("%d spool files stay open", h.open)
	}
	in = newIntake(h, suite.Streebog256)
	if _, err := in.ReadFrom(bytes.NewReader(make([]byte, 2*memoryLimit))); !errors.Is(err, errNoRoom) {
		t.Errorf("a full spool answers a reader %v", err)
	}
	in.Close()
}

// TestIntakesGathered checks that many small documents of a request take few writes, that large ones between them keep
// their place, and that all are read side by side.
func TestIntakesGathered(t *testing.T) {
	h := &heap{room: 1 << 30}
	first := newIntake(h, suite.Streebog256)
	var documents []*Intake
	content := func(i int) []byte {
		size := 1000 + i
		if i%100 == 99 {
			size = memoryLimit + i
		}
		return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, size/2)
	}
	for i := range 8000 {
		in := first
		if i > 0 {
			in, _ = first.Sibling()
		}
		if _, err := in.ReadFrom(&inPieces{content(i), 700}); err != nil {
			t.Fatal(err)
		}
		if err := in.Finish(); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, in)
	}
	var readers sync.WaitGroup
	for from := range 4 {
		readers.Go(func() {
			for i := from; i < len(documents); i += 4 {
				got, err := io.ReadAll(io.NewSectionReader(documents[i], 0, documents[i].Size()))
				if err != nil || !bytes.Equal(got, content(i)) {
					t.Errorf("document %d: %d bytes, %v", i, len(got), err)
				}
			}
		})
	}
	readers.Wait()
	if limit := h.written/gatherSize + 1000; h.writes > limit {
		t.Errorf("%d writes, want at most %d", h.writes, limit)
	}
	for _, in := range documents {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	if h.open != 0 {
		t.Errorf("%d spool files stay open", h.open)
	}
}

// TestIntakeAfterAFullSpool checks that a document which the spool took in part leaves the others of its
// request as they are.
func TestIntakeAfterAFullSpool(t *testing.T) {
	const size = 2 * memoryLimit
	for name, fill := range map[string]func(*Intake) error{
		"written": func(in *Intake) error { _, err := in.Write(make([]byte, size)); return err },
		"read":    func(in *Intake) error { _, err := in.ReadFrom(bytes.NewReader(make([]byte, size))); return err },
	} {
		h := &heap{room: size + memoryLimit + 7}
		first := newIntake(h, suite.Streebog256)
		take := func(in *Intake, b byte) {
			if _, err := in.Write(bytes.Repeat([]byte{b}, size)); err != nil {
				t.Fatal(err)
			}
			if err := in.Finish(); err != nil {
				t.Fatal(err)
			}
		}
		take(first, 'a')
		cut, _ := first.Sibling()
		if err := fill(cut); !errors.Is(err, errNoRoom) {
			t.Errorf("%s: a full spool answers %v", name, err)
		}
		if err := cut.Close(); err != nil {
			t.Error(err)
		}
		h.room = 1 << 30
		last, _ := first.Sibling()
		take(last, 'b')
		for i, in := range []*Intake{first, last} {
			got, err := io.ReadAll(io.NewSectionReader(in, 0, in.Size()))
			if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{"ab"[i]}, size)) {
				t.Errorf("%s: document %d has other bytes than those written, %v", name, i, err)
			}
			if err := in.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestIntakeTellsWhoFailed checks that the reader's own error is returned unchanged, from
// memory and from the spool, and that the bytes before it are stored.
func TestIntakeTellsWhoFailed(t *testing.T) {
	lost := errors.New("lost")
	for _, size := range []int{10, 3 * memoryLimit} {
		h := &heap{room: 1 << 30}
		in := newIntake(h, suite.Streebog256)
		n, err := in.ReadFrom(io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(lost)))
		if n != int64(size) || err != lost || in.Size() != int64(size) {
			t.Errorf("read %d of %d bytes, %v", n, size, err)
		}
		in.Close()
		if _, err := in.ReadFrom(bytes.NewReader(make([]byte, size))); !errors.Is(err, errIntakeState) || h.open != 0 {
			t.Errorf("a closed intake reads: %v; %d files are open", err, h.open)
		}
	}
}

// TestIntakeOrder checks that an intake must be written, then finished, then read, then
// closed.
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
		t.Error("a negative offset was accepted")
	}
	if n, err := in.ReadAt(one, 2); n != 0 || err != io.EOF {
		t.Errorf("reading at the end: %d, %v", n, err)
	}
	in.Close()
	if _, err := in.ReadAt(one, 0); !errors.Is(err, errIntakeState) {
		t.Errorf("reading after Close: %v", err)
	}
}

// TestSiblings checks that the documents of one request share their memory and one file,
// do not mix in it, and free it with the last of them.
func TestSiblings(t *testing.T) {
	h := &heap{room: 1 << 30}
	first := newIntake(h, suite.Streebog256)
	const n, size = 100, 100_000 // ten megabytes; each document alone would fit into memory
	docs := []*Intake{first}
	for len(docs) < n {
		in, err := first.Sibling()
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, in)
	}
	text := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 1)}, size/2) }
	held := 0
	for i, in := range docs {
		for rest := text(i); len(rest) > 0; {
			k := min(33_333, len(rest))
			if _, err := in.Write(rest[:k]); err != nil {
				t.Fatal(err)
			}
			rest = rest[k:]
		}
		if err := in.Finish(); err != nil {
			t.Fatal(err)
		}
		held += len(in.memory)
	}
	if h.open != 1 || held > roomLimit || held < roomLimit-size {
		t.Errorf("%d files, %d bytes in memory", h.open, held)
	}
	for i, in := range docs {
		got, err := io.ReadAll(io.NewSectionReader(in, 0, in.Size()+10))
		if err != nil || !bytes.Equal(got, text(i)) {
			t.Fatalf("document %d: read %d bytes, %v", i, len(got), err)
		}
		sum := suite.Streebog256.New()
		sum.Write(text(i))
		if d := in.digests(); !bytes.Equal(d[0].Sum, sum.Sum(nil)) {
			t.Errorf("document %d: wrong digest", i)
		}
		// Read across the end of the document, and after it.
		piece := make([]byte, 10)
		if k, err := in.ReadAt(piece, size-3); k != 3 || err != io.EOF {
			t.Errorf("document %d: across its end %d, %v", i, k, err)
		}
		if k, err := in.ReadAt(piece, size); k != 0 || err != io.EOF {
			t.Errorf("document %d: behind its end %d, %v", i, k, err)
		}
	}
	for i, in := range docs {
		if h.open != 1 {
			t.Fatalf("the file is closed before document %d", i)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if h.open != 0 || first.room.memory != roomLimit {
		t.Errorf("%d files are open, %d bytes of memory are free", h.open, first.room.memory)
	}
	// A request continues after all of its documents were closed.
	last, err := first.Sibling()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := last.Write(make([]byte, memoryLimit+1)); err != nil || h.open != 1 {
		t.Errorf("%d files, %v", h.open, err)
	}
	last.Close()
}

// TestSiblingsTakeTurns checks that two siblings cannot be written at the same time: they
// would mix in the file.
func TestSiblingsTakeTurns(t *testing.T) {
	one := newIntake(&heap{room: 1 << 30}, nil)
	other, err := one.Sibling()
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []*Intake{one, other} {
		if _, err := in.Write(make([]byte, memoryLimit+1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.Write([]byte("x")); !errors.Is(err, errIntakeState) {
		t.Errorf("the first goes on after the second: %v", err)
	}
	if _, err := other.Write([]byte("x")); err != nil {
		t.Errorf("the second goes on: %v", err)
	}
	one.Close()
	other.Close()
}

// client is a reader that calls before each piece.
type client struct {
	inPieces
	before func()
}

func (s *client) Read(p []byte) (int, error) {
	s.before()
	return s.inPieces.Read(p)
}

// A large document of an untrusted caller is hashed and stored in places, which it does not hold
// while it waits for the client. A small one needs none, nor does one of a caller with a token.
func TestIntakeOfUntrustedCallersTakesPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := budget.NewPlaces(1)
		s := &Service{Spool: &heap{room: 1 << 30}, Places: places}
		now := func() (leave func()) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			leave, err := places.Enter(ctx)
			if err != nil {
				t.Errorf("no place is free: %v", err)
				return func() {}
			}
			return leave
		}
		receive := func(ctx context.Context, size int, before func()) (*Intake, error) {
			in, err := s.NewIntake(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = in.ReadFrom(&client{inPieces{make([]byte, size), 10_000}, before})
			return in, err
		}
		const large = 1 << 20

		reads := 0
		in, err := receive(t.Context(), large, func() { reads++; now()() })
		if err != nil || in.Finish() != nil || reads < large/10_000 {
			t.Fatalf("%d reads, %v", reads, err)
		}
		h := anonymousHash.New()
		h.Write(make([]byte, large))
		if !bytes.Equal(in.digest.Sum, h.Sum(nil)) {
			t.Error("wrong digest")
		}
		now()()

		leave := now()
		if _, err := receive(t.Context(), memoryLimit, func() {}); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		received := make(chan error)
		go func() {
			_, err := receive(ctx, large, func() {})
			received <- err
		}()
		synctest.Wait()
		select {
		case err := <-received:
			t.Errorf("a large document did not wait: %v", err)
		default:
		}
		cancel()
		if err := <-received; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the error of the context", err)
		}
		trusted := newIntake(s.Spool, anonymousHash)
		if n, err := trusted.ReadFrom(&inPieces{make([]byte, large), large}); n != large || err != nil {
			t.Errorf("a caller with a token: %d, %v", n, err)
		}
		leave()

		// A client that is gone after a part of the document: nothing is held.
		n := 0
		ctx, cancel = context.WithCancel(t.Context())
		if _, err := receive(ctx, large, func() {
			if n++; n == 80 {
				cancel()
			}
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the error of the context", err)
		}
		now()()

		in, err = s.NewIntake(t.Context(), nil) // piece by piece
		if err != nil {
			t.Fatal(err)
		}
		for range large / 10_000 {
			if _, err := in.Write(make([]byte, 10_000)); err != nil {
				t.Fatal(err)
			}
			now()()
		}
	})
}

// Places of untrusted callers rest longer once a caller with a token sends a document.
func TestPlacesYieldToCallersWithToken(t *testing.T) {
	s, _ := newService(t, suite.GOST2012x256)
	synctest.Test(t, func(t *testing.T) {
		s.Places = budget.NewPlaces(1)
		rest := func() time.Duration {
			leave, err := s.Places.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			leave()
			start := time.Now()
			if leave, err = s.Places.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			leave()
			return time.Since(start)
		}
		short := rest()
		in, err := s.NewIntake(t.Context(), &Snapshot{UserID: "u"})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if long := rest(); long <= short {
			t.Errorf("a place rested for %s beside a caller with a token, and for %s before", long, short)
		}
	})
}
