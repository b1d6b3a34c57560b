// SPDX-License-Identifier: Apache-2.0

package zip

import (
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Reader returns the content of an entry for reading at any position, in constant memory. Content that is
// compressed is decompressed from its beginning whenever a position before the last one is read, so it is
// meant to be read in order. The checksum is not compared: Copy does that.
//
// Errors of its ReadAt: *Error, and wrapped errors of the budget of Open and of the source.
func (a *Archive) Reader(e *Entry) Source {
	if e.Method == Store {
		return io.NewSectionReader(a.source, e.Data, e.Size)
	}
	return &inflated{archive: a, entry: e}
}

// inflated is the content of a compressed entry.
type inflated struct {
	archive *Archive
	entry   *Entry

	mu    sync.Mutex
	flate io.ReadCloser // nil before the first read
	in    *bufio.Reader // from which flate reads, not one byte too much
	at    int64         // where flate reads next
}

// Size implements Source.
func (f *inflated) Size() int64 { return f.entry.Size }

// ReadAt implements io.ReaderAt.
func (f *inflated) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("zip: offset %d is negative", off)
	}
	if off >= f.entry.Size && f.entry.Size > 0 {
		return 0, io.EOF
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	off = min(off, f.entry.Size) // without content, only its end is left to check
	if err := f.seek(off); err != nil {
		return 0, err
	}
	want := p[:min(int64(len(p)), f.entry.Size-off)]
	n, err := io.ReadFull(f.flate, want)
	f.at += int64(n)
	if err != nil {
		f.flate = nil
		return n, f.failed(err)
	}
	if f.at == f.entry.Size {
		if err := f.end(); err != nil {
			f.flate = nil
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// end returns an error unless the content ends here, and its bytes in the archive too.
func (f *inflated) end() error {
	var more [1]byte
	n, err := io.ReadFull(f.flate, more[:])
	switch {
	case n > 0:
		return damaged(f.entry.Name, "the entry %s has more content than the %d bytes announced", quote(f.entry.Name), f.entry.Size)
	case err != io.EOF:
		return f.failed(err)
	}
	return atEnd(f.entry, f.in)
}

// seek moves to a position.
func (f *inflated) seek(off int64) error {
	e := f.entry
	if f.flate == nil || off < f.at {
		if err := f.archive.budget.Spend(e.Size); err != nil {
			return err
		}
		f.in = bufio.NewReader(io.NewSectionReader(f.archive.source, e.Data, e.Compressed))
		f.flate, f.at = flate.NewReader(f.in), 0
	}
	n, err := io.CopyN(io.Discard, f.flate, off-f.at)
	f.at += n
	if err != nil {
		f.flate = nil
		return f.failed(err)
	}
	return nil
}

// failed is the error of a read.
func (f *inflated) failed(err error) error {
	var corrupt flate.CorruptInputError
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt) {
		return damaged(f.entry.Name, "the entry %s cannot be decompressed: %s", quote(f.entry.Name), err)
	}
	return readError(err)
}
