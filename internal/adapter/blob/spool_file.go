// SPDX-License-Identifier: Apache-2.0

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
	// blockSize is the unit of writes past the page cache, in bytes. Their offset, length and
	// memory address must be multiples of it.
	blockSize = 4096
	// hugePage is the size of a huge page in bytes. The system looks up every page of a write past
	// the page cache. Two huge pages need fewer lookups than a thousand small ones.
	hugePage = 2 << 20
	// pieceSize is the size of a write in bytes. A file that is being written has two pieces.
	pieceSize = 256 << 10
	// wideSize is the size of a write, in bytes, after wideFrom bytes of the file. Such writes
	// need a sixth of the processor time. A spool uses at most widePieces of these pieces, 64
	// MiB. A file that gets no such piece continues with small ones.
	wideSize   = 4 << 20
	wideFrom   = 2 * wideSize
	widePieces = 16
	// takenSize is how many bytes ReadFrom reads at a time. It fits into the processor's cache
	// together with what a reader does with the bytes, such as hashing.
	takenSize = 192 << 10
)

var (
	pieces = sync.Pool{New: func() any { return aligned(pieceSize, blockSize) }}
	wide   = sync.Pool{New: func() any { p := aligned(wideSize, hugePage); preferHuge(*p); return p }}
)

// aligned returns a buffer that begins at a multiple of of, a power of two.
func aligned(size, of int) *[]byte {
	b := make([]byte, size+of)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & uintptr(of-1))
	b = b[skip : skip+size : skip+size]
	return &b
}

// spoolFile is a document that is being received. See [signing.SpoolFile]. If the file system supports it,
// whole pieces are written past the page cache. Most documents are never read again. Filling the cache with
// them would cost more processor time than everything else, including the hash, and would evict what other
// programs need. A piece is written while the next one is received.
type spoolFile struct {
	spool  *Spool
	direct *os.File // writes past the page cache; nil: not supported
	plain  *os.File

	piece *[]byte // bytes from offset start on, not in the file before flush
	n     int
	start int64

	out   aside      // writes full pieces; nil until the first
	large bool       // whether the file has tried to get a queue for large pieces
	under *[]byte    // the piece that out is writing
	err   error      // error of an earlier write; permanent
	clean bool       // piece[:n] is in the file too
	mu    sync.Mutex // for readers in several goroutines
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

// ReadFrom implements io.ReaderFrom. r reads directly into the memory that is written to the file.
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

// room returns the memory for the next bytes. took must be called with the number of bytes put there.
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

// piece returns memory for the bytes of a file. free takes the memory back.
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

// turn starts writing the full piece, after the previous one is written.
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

// begin starts writing a piece in the background. The kernel writes large pieces if it supports that.
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
	// A worker accepts every piece and reports errors of the file.
	f.out = newWorker(f.direct)
	return f.out.begin(piece, f.start)
}

// settle waits until the piece in progress is written.
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

// leave closes the aside. No piece may be in progress.
func (f *spoolFile) leave() {
	if f.out != nil {
		f.out.close()
		f.out = nil
	}
}

func (f *spoolFile) fail(err error) { f.err = fmt.Errorf("blob: writing a spool file: %w", err) }

// ReadAt implements io.ReaderAt. It may be called from several goroutines, but not during writes.
func (f *spoolFile) ReadAt(p []byte, off int64) (int, error) {
	if f.direct != nil {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	return f.plain.ReadAt(p, off)
}

// flush writes the rest of the last piece to the file. It keeps the piece, so that writing may
// continue.
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

// Close frees the disk space of the file.
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
