package blob

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"
)

const (
	// blockSize is what a write past the page cache is whole multiples of, in its
	// place, its length and its memory.
	blockSize = 4096
	// hugePage is what the processor maps at once where it is asked to. The system
	// looks up every page of a write past the page cache: two are fewer than a thousand.
	hugePage = 2 << 20
	// pieceSize is written at a time; two pieces belong to a file under way.
	pieceSize = 256 << 10
	// wideSize is written at a time once wideFrom octets are in the file: that takes a
	// sixth of the processor time. No more than widePieces of them are in use in a
	// spool, 64 MiB; whoever finds none goes on with small ones.
	wideSize   = 4 << 20
	wideFrom   = 2 * wideSize
	widePieces = 16
	// takenSize is read at a time by ReadFrom, so that what a reader does to the octets
	// on the way, such as hashing them, finds them in the cache of its processor.
	takenSize = 192 << 10
)

var (
	pieces = sync.Pool{New: func() any { return aligned(pieceSize, blockSize) }}
	wide   = sync.Pool{New: func() any { p := aligned(wideSize, hugePage); preferHuge(*p); return p }}
)

// aligned makes room that begins at a multiple of a power of two.
func aligned(size, of int) *[]byte {
	b := make([]byte, size+of)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & uintptr(of-1))
	b = b[skip : skip+size : skip+size]
	return &b
}

// spoolFile is a document on its way in, see [signing.SpoolFile]. Whole pieces are
// written past the page cache where the file system can do that: most documents are
// never read again, so filling the cache with them costs more processor time than
// all else that happens to them, the hash included, and pushes out what others need.
// A piece is written while the next one comes in.
type spoolFile struct {
	spool  *Spool
	direct *os.File // writes past the page cache; nil: the file system cannot
	plain  *os.File

	piece *[]byte // octets from start on that are in the file only after flush
	n     int
	start int64

	full    chan written // to the goroutine that writes; nil until the first full piece
	written chan error   // its answer to each
	waiting bool         // one answer is outstanding
	err     error        // of an earlier write; it stays
	clean   bool         // the file holds piece[:n] as well
	mu      sync.Mutex   // readers may come from several goroutines
}

type written struct {
	piece *[]byte
	at    int64
}

var errSpoolClosed = errors.New("blob: the spool file is closed")

// Write implements io.Writer.
func (f *spoolFile) Write(p []byte) (int, error) {
	if f.direct == nil {
		return f.plain.Write(p)
	}
	total := 0
	for len(p) > 0 {
		if f.err != nil {
			return total, f.err
		}
		n := copy(f.room(), p)
		f.took(n)
		total += n
		p = p[n:]
	}
	return total, f.err
}

// ReadFrom implements io.ReaderFrom: r reads into the memory that is written to the
// file, without a copy in between.
func (f *spoolFile) ReadFrom(r io.Reader) (total int64, err error) {
	if f.direct == nil {
		piece := pieces.Get().(*[]byte)
		defer pieces.Put(piece)
		return io.CopyBuffer(struct{ io.Writer }{f.plain}, r, (*piece)[:takenSize])
	}
	for f.err == nil {
		room := f.room()
		n, err := r.Read(room[:min(len(room), takenSize)])
		f.took(n)
		total += int64(n)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = f.err
			}
			return total, err
		}
	}
	return total, f.err
}

// room is where the next octets go; took tells how many came.
func (f *spoolFile) room() []byte {
	if f.piece == nil {
		f.piece = f.spool.piece(f.start >= wideFrom)
	}
	return (*f.piece)[f.n:]
}

func (f *spoolFile) took(n int) {
	f.n += n
	f.clean = f.clean && n == 0
	if f.n == len(*f.piece) {
		f.turn()
	}
}

// piece takes memory for octets on their way into a file, and free gives it back.
func (s *Spool) piece(large bool) *[]byte {
	if large {
		if s.wide.Add(1) <= widePieces {
			return wide.Get().(*[]byte)
		}
		s.wide.Add(-1)
	}
	return pieces.Get().(*[]byte)
}

func (s *Spool) free(piece *[]byte) {
	if len(*piece) == wideSize {
		wide.Put(piece)
		s.wide.Add(-1)
		return
	}
	pieces.Put(piece)
}

// turn hands the full piece to the writing goroutine, after the one before.
func (f *spoolFile) turn() {
	f.settle()
	if f.err != nil {
		return
	}
	if f.full == nil {
		f.full, f.written = make(chan written), make(chan error, 1)
		go f.write(f.full, f.written)
	}
	f.full <- written{f.piece, f.start}
	f.waiting = true
	f.start += int64(len(*f.piece))
	f.piece, f.n = nil, 0
}

// write is the goroutine that writes pieces.
func (f *spoolFile) write(full <-chan written, answers chan<- error) {
	for w := range full {
		_, err := f.direct.WriteAt(*w.piece, w.at)
		f.spool.free(w.piece)
		answers <- err
	}
}

// settle waits for the piece under way.
func (f *spoolFile) settle() {
	if !f.waiting {
		return
	}
	f.waiting = false
	if err := <-f.written; err != nil {
		f.err = fmt.Errorf("blob: writing a spool file: %w", err)
	}
}

// ReadAt implements io.ReaderAt. It may be called from several goroutines, and none
// writes meanwhile.
func (f *spoolFile) ReadAt(p []byte, off int64) (int, error) {
	if f.direct != nil {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	return f.plain.ReadAt(p, off)
}

// flush brings what is left of the last piece into the file. The piece stays, so
// that writing may go on.
func (f *spoolFile) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	if f.err != nil || f.clean {
		return f.err
	}
	if f.n > 0 {
		if _, err := f.plain.WriteAt((*f.piece)[:f.n], f.start); err != nil {
			f.err = fmt.Errorf("blob: writing a spool file: %w", err)
			return f.err
		}
	}
	f.clean = true
	return nil
}

// Close frees the room the file took.
func (f *spoolFile) Close() error {
	f.settle()
	if f.full != nil {
		close(f.full)
		f.full = nil
	}
	if f.piece != nil {
		f.spool.free(f.piece)
		f.piece, f.n = nil, 0
	}
	f.err = errSpoolClosed
	err := f.plain.Close()
	if f.direct != nil {
		err = errors.Join(err, f.direct.Close())
	}
	return err
}

var (
	_ io.ReaderAt   = (*spoolFile)(nil)
	_ io.ReaderFrom = (*spoolFile)(nil)
)
