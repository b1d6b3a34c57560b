// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"tamga/pki/suite"
)

// Spool stores document bytes outside of memory. The files belong to one request and
// disappear when the request or the process ends, however it ends.
type Spool interface {
	Create() (SpoolFile, error)
}

// SpoolFile is one document that is being received: it is written once from start to end,
// then read at any position, then closed, which frees its space.
type SpoolFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Bounds of the memory of documents before the spool is used. The first bound applies to
// each open document, so fifty large requests at the same time cost 12.5 MiB, and almost
// every real document is smaller. The second is for a request with thousands of
// documents.
const (
	memoryLimit = 256 << 10 // bytes of one document
	roomLimit   = 4 << 20   // bytes of all documents of a request together
	// pieceSize is how much is read, hashed and written to the spool at once, in bytes. It fits into
	// the processor's cache.
	pieceSize = 192 << 10
)

// errIntakeState is a programming error of the caller, never an error in the client's
// bytes.
var errIntakeState = errors.New("signing: an intake is written, then finished, then read, and one of a request is written at a time")

// room is shared by the documents of one request: the bound of their memory, and one file
// for everything beyond it. A process may not open a file for each of ten thousand
// documents.
type room struct {
	spool  Spool
	hash   *suite.Hash // the hash of the documents while they are received; nil: none
	memory int64       // bytes that may still be stored in memory
	// enter waits for a place where a piece of a large document is hashed and stored; see
	// [budget.Places.Enter]. nil: the pieces wait for nothing.
	enter func() (leave func(), err error)
	file  SpoolFile // nil until it is needed
	end   int64     // bytes in file
	users int       // intakes with bytes in file
}

// Intake receives one document. Bytes are written to it in order. It stores a small
// document in memory and a large one in the spool. A large one is hashed meanwhile. A small one
// is hashed when its digest is requested: formats that sign digests of parts and messages to
// extend never request it, and the documents of a batch are hashed together. After Finish
// it is a sig.Document that several goroutines may read concurrently. The zero value is
// not valid; use [Service.NewIntake]. Close frees everything and may be called at any
// time.
type Intake struct {
	room     *room
	memory   []byte
	spooled  bool
	base     int64 // start of the document in the room's file
	size     int64
	running  hash.Hash // in the spool
	digest   suite.Digest
	finished bool
	closed   bool
}

// newIntake returns an empty intake that hashes with h, or does not hash if h is nil.
func newIntake(spool Spool, h *suite.Hash) *Intake {
	return (&room{spool: spool, hash: h, memory: roomLimit}).intake()
}

func (r *room) intake() *Intake {
	return &Intake{room: r}
}

// Sibling returns an intake for another document of the same request. Siblings share
// their memory and their file in the spool, so each must be written completely before the
// next one. The error is always nil.
func (in *Intake) Sibling() (*Intake, error) { return in.room.intake(), nil }

// doubledUntil is the size in bytes up to which the memory of a document doubles when it is full.
const doubledUntil = 256 << 10

// Write appends p to the document. An error comes from the spool, which has no space, or from the
// context of an untrusted caller, whose large documents wait for places.
func (in *Intake) Write(p []byte) (int, error) {
	if in.finished || in.closed {
		return 0, errIntakeState
	}
	n := int64(len(p))
	spooled := in.spooled || in.size+n > memoryLimit || n > in.room.memory
	if spooled && in.room.enter != nil {
		leave, err := in.room.enter()
		if err != nil {
			return 0, err
		}
		defer leave()
	}
	if spooled && !in.spooled {
		if err := in.turnToSpool(); err != nil {
			return 0, err
		}
	}
	if in.spooled {
		if err := in.room.append(in, p); err != nil {
			return 0, err
		}
	} else {
		// append grows by a quarter, which copies a document of 100 KB four times. The first piece,
		// mostly the whole document, gets memory of its size, which append does not clear.
		if len(in.memory) > 0 && len(in.memory)+len(p) > cap(in.memory) && len(in.memory) < doubledUntil {
			in.memory = slices.Grow(in.memory, max(len(p), len(in.memory)))
		}
		in.memory = append(in.memory, p...)
		in.room.memory -= n
	}
	in.size += n
	if in.running != nil {
		in.running.Write(p)
	}
	return len(p), nil
}

var (
	pieces = sync.Pool{New: func() any { b := make([]byte, pieceSize); return &b }}
	firsts = sync.Pool{New: func() any { return new([memoryLimit + 1]byte) }}
)

// ReadFrom implements io.ReaderFrom. A small document is read to its end before memory of its
// size is allocated. If the document is in the spool, its bytes go from r into one small buffer,
// are hashed there and written to the spool. The goroutine that reads also hashes. A second
// goroutine would finish a single document earlier, but passing every piece from one processor to
// another costs time on both, which is missing when many requests run. The error is that of r or of
// the spool.
func (in *Intake) ReadFrom(r io.Reader) (total int64, err error) {
	if !in.spooled {
		first := firsts.Get().(*[memoryLimit + 1]byte)
		defer firsts.Put(first)
		// One byte more than fits into memory shows that the document goes to the spool.
		most := max(0, min(memoryLimit-in.size, in.room.memory))
		n, room := 0, first[:most+1]
		var err error
		for n < len(room) && err == nil {
			var more int
			more, err = r.Read(room[n:])
			n += more
		}
		if n > 0 {
			if _, err := in.Write(room[:n]); err != nil {
				return 0, err
			}
		}
		total = int64(n)
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	if in.finished || in.closed || in.base+in.size != in.room.end {
		return total, errIntakeState
	}
	piece := pieces.Get().(*[]byte)
	defer pieces.Put(piece)
	flow := inflow{from: r, hash: in.running, enter: in.room.enter}
	defer flow.end()
	n, err := io.CopyBuffer(struct{ io.Writer }{in.room.file}, &flow, *piece) // a file would read into memory of its own
	in.size += n
	in.room.end += n
	switch {
	case flow.err != nil:
		err = flow.err
	case err != nil:
		err = fmt.Errorf("signing: spooling the document: %w", err)
	}
	return total + n, err
}

// inflow hashes the bytes that are read through it and keeps the error of the reader.
type inflow struct {
	from  io.Reader
	hash  hash.Hash // nil: no hashing
	enter func() (leave func(), err error)
	leave func() // nil: there is no place to leave
	err   error
}

// Read implements io.Reader. With enter, a piece is hashed and then stored by the caller in one place.
// The place is not held while the next piece is read, since the client may take its time.
func (f *inflow) Read(p []byte) (n int, err error) {
	f.end()
	if f.enter == nil {
		n, err = f.from.Read(p)
	} else {
		for n < len(p) && err == nil { // each piece waits for a place, so it had better be whole
			var more int
			more, err = f.from.Read(p[n:])
			n += more
		}
		if n > 0 {
			var failed error
			if f.leave, failed = f.enter(); failed != nil {
				f.err = failed
				return 0, failed
			}
		}
	}
	if f.hash != nil {
		f.hash.Write(p[:n])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// end leaves the place of the last piece.
func (f *inflow) end() {
	if f.leave != nil {
		f.leave()
		f.leave = nil
	}
}

// gatherSize is the size in bytes of the writes that small documents are gathered to.
const gatherSize = 64 << 10

// gathered joins the small writes of many documents to few of its file: a request may have ten thousand
// documents. What waits for a write counts as written, and if the file has no room for it, the next call says
// so.
type gathered struct {
	SpoolFile

	mu      sync.Mutex // documents of a request are read concurrently
	waiting []byte     // to be written at the end of the file
}

// Write implements io.Writer.
func (g *gathered) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	small := len(p) <= gatherSize/4
	if !small || len(g.waiting)+len(p) > gatherSize {
		if err := g.flush(); err != nil {
			return 0, err
		}
	}
	if !small {
		return g.SpoolFile.Write(p)
	}
	if g.waiting == nil {
		g.waiting = make([]byte, 0, gatherSize)
	}
	g.waiting = append(g.waiting, p...)
	return len(p), nil
}

// flush writes what waits. After an error nothing of it is lost.
func (g *gathered) flush() error {
	if len(g.waiting) == 0 {
		return nil
	}
	n, err := g.SpoolFile.Write(g.waiting)
	g.waiting = g.waiting[:copy(g.waiting, g.waiting[n:])]
	return err
}

// ReadAt implements io.ReaderAt.
func (g *gathered) ReadAt(p []byte, off int64) (int, error) {
	g.mu.Lock()
	err := g.flush()
	g.mu.Unlock()
	if err != nil {
		return 0, fmt.Errorf("signing: spooling the document: %w", err)
	}
	return g.SpoolFile.ReadAt(p, off)
}

func (in *Intake) turnToSpool() error {
	r := in.room
	if r.file == nil {
		f, err := r.spool.Create()
		if err != nil {
			return fmt.Errorf("signing: opening the spool: %w", err)
		}
		r.file, r.end = &gathered{SpoolFile: f}, 0
	}
	r.users++
	in.spooled, in.base = true, r.end
	kept := in.memory
	in.memory = nil
	if r.hash != nil {
		in.running = r.hash.New()
		in.running.Write(kept)
	}
	r.memory += int64(len(kept))
	in.size = 0
	if err := r.append(in, kept); err != nil {
		return err
	}
	in.size = int64(len(kept))
	return nil
}

// append writes p after the bytes that in has in the file.
func (r *room) append(in *Intake, p []byte) error {
	if in.base+in.size != r.end {
		return errIntakeState
	}
	n, err := r.file.Write(p)
	r.end += int64(n)
	if err != nil {
		return fmt.Errorf("signing: spooling the document: %w", err)
	}
	return nil
}

// leave closes the file when its last document leaves.
func (r *room) leave() error {
	if r.users--; r.users > 0 {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Finish ends writing and computes the digest.
func (in *Intake) Finish() error {
	if in.finished || in.closed {
		return errIntakeState
	}
	in.finished = true
	if in.running != nil {
		in.digest = suite.Digest{Hash: in.room.hash, Sum: in.running.Sum(nil)}
	}
	in.running = nil
	return nil
}

// Close frees the memory or the space in the spool. It may be called more than once.
func (in *Intake) Close() error {
	if in.closed {
		return nil
	}
	in.closed = true
	in.room.memory += int64(len(in.memory))
	in.memory, in.running = nil, nil
	if in.spooled {
		return in.room.leave()
	}
	return nil
}

// ReadAt implements [io.ReaderAt] for the finished document.
func (in *Intake) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case !in.finished || in.closed:
		return 0, errIntakeState
	case off < 0:
		return 0, errors.New("signing: negative offset in a document")
	case off >= in.size:
		return 0, io.EOF
	case in.spooled:
		return in.readSpooled(p, off)
	}
	n := copy(p, in.memory[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readSpooled stays inside the document, because others may follow in the file.
func (in *Intake) readSpooled(p []byte, off int64) (int, error) {
	cut := int64(len(p)) > in.size-off
	if cut {
		p = p[:in.size-off]
	}
	n, err := in.room.file.ReadAt(p, in.base+off)
	if n == len(p) {
		err = nil
		if cut {
			err = io.EOF
		}
	}
	return n, err
}

// Size returns the length of the document in bytes.
func (in *Intake) Size() int64 { return in.size }

// digests returns the digest that was computed while receiving, in the form of a sig.Job.
func (in *Intake) digests() []suite.Digest {
	if in.small() {
		digestTogether([]*Intake{in})
	}
	if in.digest.Sum == nil {
		return nil
	}
	return []suite.Digest{in.digest}
}

// small reports whether the document is in memory and not hashed yet.
func (in *Intake) small() bool {
	return in.finished && !in.closed && in.room.hash != nil && in.digest.Sum == nil && !in.spooled
}

// digestTogether hashes the small ones of the documents together. They belong to one
// request, so they have the same hash.
func digestTogether(documents []*Intake) {
	var waiting []*Intake
	var messages [][]byte
	for _, in := range documents {
		if in != nil && in.small() {
			waiting, messages = append(waiting, in), append(messages, in.memory)
		}
	}
	if len(waiting) == 0 {
		return
	}
	for i, d := range waiting[0].room.hash.SumMany(messages) {
		waiting[i].digest = d
	}
}

// isEmpty reports whether there is no document.
func (in *Intake) isEmpty() bool { return in == nil || in.size == 0 }
