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

	out   aside      // writes full pieces; nil until the first
	large bool       // whether one for large pieces was looked for
	under *[]byte    // the piece that is being written
	err   error      // of an earlier write; it stays
	clean bool       // the file holds piece[:n] as well
	mu    sync.Mutex // readers may come from several goroutines
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

// turn hands the full piece to who writes it, after the one before.
func (f *spoolFile) turn() {
	f.settle()
	if f.err != nil {
		return
	}
	if err := f.begin(*f.piece); err != nil {
		f.fail(err)
		return
	}
	f.under = f.piece
	f.start += int64(len(*f.piece))
	f.piece, f.n = nil, 0
}

// begin has a piece written aside, a large one by the kernel where it does that.
func (f *spoolFile) begin(piece []byte) error {
	if len(piece) == wideSize && !f.large {
		f.large = true
		if out := f.spool.queues.open(f.direct, f.start); out != nil {
			f.leave()
			f.out = out
		}
	}
	if f.out != nil {
		if f.out.begin(piece, f.start) == nil {
			return nil
		}
		if err := f.out.cut(f.start); err != nil {
			return err
		}
		f.leave()
	}
	// A worker takes every piece, and finds out what is wrong.
	f.out = newWorker(f.direct)
	return f.out.begin(piece, f.start)
}

// settle waits for the piece under way.
func (f *spoolFile) settle() {
	if f.under == nil {
		return
	}
	if err := f.out.end(); err != nil {
		f.fail(err)
	}
	f.spool.free(f.under)
	f.under = nil
}

// leave ends with who writes pieces; none is under way.
func (f *spoolFile) leave() {
	if f.out != nil {
		f.out.close()
		f.out = nil
	}
}

func (f *spoolFile) fail(err error) { f.err = fmt.Errorf("blob: writing a spool file: %w", err) }

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
	if f.out != nil {
		if err := f.out.cut(f.start + int64(f.n)); err != nil {
			f.fail(err)
			return f.err
		}
	}
	if f.n > 0 {
		if _, err := f.plain.WriteAt((*f.piece)[:f.n], f.start); err != nil {
			f.fail(err)
			return f.err
		}
	}
	f.clean = true
	return nil
}

// Close frees the room the file took.
func (f *spoolFile) Close() error {
	f.settle()
	f.leave()
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
