package signing

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"tamga/pki/suite"
)

// Spool gives room for document bytes outside memory. What it gives belongs to
// one request and is gone when the request or the process ends, however it ends.
type Spool interface {
	Create() (SpoolFile, error)
}

// SpoolFile is one document on its way in: written once from front to back,
// then read at any place, then closed, which frees the room it took.
type SpoolFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// What documents keep in memory before they turn to the spool. The first bound
// is paid once per document under way, so fifty large requests at a time cost
// 12.5 MiB, and almost every real document stays below it. The second is for a
// request with thousands of them.
const (
	memoryLimit = 256 << 10 // octets of one document
	roomLimit   = 4 << 20   // octets of all documents of a request together
	// smallLimit is up to which size a document is not hashed before its digest is
	// asked for: that of a message to extend never is, and those of a batch are
	// hashed side by side.
	smallLimit = 64 << 10
	// pieceSize is how much is read at a time into memory.
	pieceSize = 64 << 10
)

// errIntakeState is a fault of the caller's code, never of the client's bytes.
var errIntakeState = errors.New("signing: an intake is written, then finished, then read, and one of a request is written at a time")

// room is what the documents of one request share: what they may keep in memory
// and one file for all that goes beyond, since a file for each of ten thousand
// documents would be more than a process may open.
type room struct {
	spool  Spool
	hash   *suite.Hash // what documents are digested with on the way; nil is nothing
	memory int64       // octets that may still be kept in memory
	file   SpoolFile   // nil until it is needed
	end    int64       // octets in file
	users  int         // intakes with octets in file
}

// Intake takes one document in: octets are written to it in order, it keeps them
// in memory while they are few and in the spool when they are many, and digests
// them on the way. After Finish it is a sig.Document that may be read from
// several goroutines at once. The zero value is not valid; use
// [Service.NewIntake]. Close frees everything and may be called at any time.
type Intake struct {
	room     *room
	memory   []byte
	spooled  bool
	base     int64 // where the document begins in the room's file
	size     int64
	running  hash.Hash // from smallLimit on
	digest   suite.Digest
	finished bool
	closed   bool
}

// newIntake returns an empty intake that digests with h, or with nothing when h
// is nil.
func newIntake(spool Spool, h *suite.Hash) *Intake {
	return (&room{spool: spool, hash: h, memory: roomLimit}).intake()
}

func (r *room) intake() *Intake {
	return &Intake{room: r}
}

// Sibling returns an intake for another document of the same request. Siblings share
// their memory and their file in the spool, so one is written after the other. The error
// is always nil.
func (in *Intake) Sibling() (*Intake, error) { return in.room.intake(), nil }

// Write appends p to the document. The error is the spool's: there is no room.
func (in *Intake) Write(p []byte) (int, error) {
	if in.finished || in.closed {
		return 0, errIntakeState
	}
	n := int64(len(p))
	if !in.spooled && (in.size+n > memoryLimit || n > in.room.memory) {
		if err := in.turnToSpool(); err != nil {
			return 0, err
		}
	}
	if in.spooled {
		if err := in.room.append(in, p); err != nil {
			return 0, err
		}
	} else {
		in.memory = append(in.memory, p...)
		in.room.memory -= n
	}
	in.size += n
	if in.room.hash == nil || !in.spooled && in.size <= smallLimit {
		return len(p), nil
	}
	if in.running == nil {
		in.running = in.room.hash.New()
		if !in.spooled {
			in.running.Write(in.memory)
			return len(p), nil
		}
	}
	in.running.Write(p)
	return len(p), nil
}

var pieces = sync.Pool{New: func() any { b := make([]byte, pieceSize); return &b }}

// ReadFrom implements io.ReaderFrom. Once the document is in the spool its octets go
// from r to where the spool has them and are hashed there, without a copy in between.
// They are hashed by whoever reads them: a goroutine beside would end a single document
// earlier, but handing every piece from one processor to another takes time of both,
// which all requests together do not have. The error is that of r or of the spool.
func (in *Intake) ReadFrom(r io.Reader) (total int64, err error) {
	piece := pieces.Get().(*[]byte)
	defer pieces.Put(piece)
	for !in.spooled {
		n, err := r.Read(*piece)
		if n > 0 {
			if _, err := in.Write((*piece)[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return total, err
		}
	}
	if in.finished || in.closed || in.base+in.size != in.room.end {
		return total, errIntakeState
	}
	flow := inflow{from: r, hash: in.running}
	n, err := io.CopyBuffer(in.room.file, &flow, *piece)
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

// inflow hashes what is read through it and remembers why reading failed.
type inflow struct {
	from io.Reader
	hash hash.Hash // nil: nothing is hashed
	err  error
}

func (f *inflow) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if f.hash != nil {
		f.hash.Write(p[:n])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

func (in *Intake) turnToSpool() error {
	r := in.room
	if r.file == nil {
		f, err := r.spool.Create()
		if err != nil {
			return fmt.Errorf("signing: opening the spool: %w", err)
		}
		r.file, r.end = f, 0
	}
	r.users++
	in.spooled, in.base = true, r.end
	kept := in.memory
	in.memory = nil
	if r.hash != nil && in.running == nil {
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

// append puts p behind what in has in the file.
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

// leave frees the file with the last document in it.
func (r *room) leave() error {
	if r.users--; r.users > 0 {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Finish ends writing and settles the digest.
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

// Close frees the memory or the spool room. It may be called more than once.
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

// ReadAt implements [io.ReaderAt] over the finished document.
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

// readSpooled stays inside the document: others may follow in the file.
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

// Size returns the length of the document in octets.
func (in *Intake) Size() int64 { return in.size }

// digests returns what was computed on the way in, in the form a sig.Job takes.
func (in *Intake) digests() []suite.Digest {
	if in.small() {
		digestTogether([]*Intake{in})
	}
	if in.digest.Sum == nil {
		return nil
	}
	return []suite.Digest{in.digest}
}

// small tells that the document is in memory and not hashed yet.
func (in *Intake) small() bool {
	return in.finished && !in.closed && in.room.hash != nil && in.digest.Sum == nil && !in.spooled
}

// digestTogether hashes those of the documents that are small, side by side. They
// are of one request and so of one hash.
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

// isEmpty tells that there is no document.
func (in *Intake) isEmpty() bool { return in == nil || in.size == 0 }
