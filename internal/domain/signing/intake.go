package signing

import (
	"errors"
	"fmt"
	"hash"
	"io"

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

// memoryLimit is how many octets of a document an Intake keeps in memory before
// it turns to the spool. It is paid once per document under way, so fifty large
// requests at a time cost 12.5 MiB, and almost every real document stays below it.
const memoryLimit = 256 << 10

// errIntakeState is a fault of the caller's code, never of the client's bytes.
var errIntakeState = errors.New("signing: an intake is written, then finished, then read")

// Intake takes one document in: octets are written to it in order, it keeps them
// in memory while they are few and in the spool when they are many, and digests
// them on the way. After Finish it is a sig.Document that may be read from
// several goroutines at once. The zero value is not valid; use
// [Service.NewIntake]. Close frees everything and may be called at any time.
type Intake struct {
	spool    Spool
	memory   []byte
	file     SpoolFile
	size     int64
	running  hash.Hash
	digest   suite.Digest
	finished bool
	closed   bool
}

// newIntake returns an empty intake that digests with h, or with nothing when h
// is nil.
func newIntake(spool Spool, h *suite.Hash) *Intake {
	in := &Intake{spool: spool}
	if h != nil {
		in.running, in.digest = h.New(), suite.Digest{Hash: h}
	}
	return in
}

// Write appends p to the document. The error is the spool's: there is no room.
func (in *Intake) Write(p []byte) (int, error) {
	if in.finished || in.closed {
		return 0, errIntakeState
	}
	if in.file == nil && in.size+int64(len(p)) > memoryLimit {
		if err := in.turnToSpool(); err != nil {
			return 0, err
		}
	}
	if in.file != nil {
		if n, err := in.file.Write(p); err != nil {
			return n, fmt.Errorf("signing: spooling the document: %w", err)
		}
	} else {
		in.memory = append(in.memory, p...)
	}
	in.size += int64(len(p))
	if in.running != nil {
		in.running.Write(p)
	}
	return len(p), nil
}

func (in *Intake) turnToSpool() error {
	f, err := in.spool.Create()
	if err != nil {
		return fmt.Errorf("signing: opening the spool: %w", err)
	}
	if _, err := f.Write(in.memory); err != nil {
		f.Close()
		return fmt.Errorf("signing: spooling the document: %w", err)
	}
	in.file, in.memory = f, nil
	return nil
}

// Finish ends writing and settles the digest.
func (in *Intake) Finish() error {
	if in.finished || in.closed {
		return errIntakeState
	}
	in.finished = true
	if in.running != nil {
		in.digest.Sum = in.running.Sum(nil)
		in.running = nil
	}
	return nil
}

// Close frees the memory or the spool room. It may be called more than once.
func (in *Intake) Close() error {
	if in.closed {
		return nil
	}
	in.closed = true
	in.memory, in.running = nil, nil
	if in.file != nil {
		return in.file.Close()
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
	case in.file != nil:
		return in.file.ReadAt(p, off)
	case off >= in.size:
		return 0, io.EOF
	}
	n := copy(p, in.memory[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size returns the length of the document in octets.
func (in *Intake) Size() int64 { return in.size }

// digests returns what was computed on the way in, in the form a sig.Job takes.
func (in *Intake) digests() []suite.Digest {
	if in.digest.Sum == nil {
		return nil
	}
	return []suite.Digest{in.digest}
}
