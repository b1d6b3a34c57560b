// SPDX-License-Identifier: Apache-2.0

package zip

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"hash/crc32"
	"io"
	"sync"
)

// inflater reads one entry after another. It is pooled because a new decompressor costs
// more than most entries.
type inflater struct {
	in    *bufio.Reader
	flate io.ReadCloser // also a flate.Resetter
	buf   [64 << 10]byte
}

var inflaters = sync.Pool{New: func() any {
	return &inflater{in: bufio.NewReaderSize(nil, 32<<10), flate: flate.NewReader(bytes.NewReader(nil))}
}}

// Copy decompresses the content of an entry of the archive into w, in pieces of up to 64 KiB and never
// more than Entry.Size bytes. Whether the content has that length and the checksum Entry.CRC32 is
// known only at the end, so what w has received counts only if Copy returns nil.
//
// Errors: *Error for content of another length or checksum, that cannot be decompressed, or that ends before its bytes
// in the archive do; those of
// the budget of Open, of w, of ctx, and of the source, wrapped.
func (a *Archive) Copy(ctx context.Context, e *Entry, w io.Writer) error {
	// Received bytes are read without charge; the decompressed bytes are charged.
	if err := a.budget.Spend(max(0, e.Size-e.Compressed) + e.Size/8); err != nil {
		return err
	}
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	section := io.NewSectionReader(a.source, e.Data, e.Compressed)
	broken := &sourceError{Reader: section}
	f.in.Reset(broken)
	var r io.Reader = f.in
	if e.Method == Deflate {
		if err := f.flate.(flate.Resetter).Reset(f.in, nil); err != nil {
			return err
		}
		r = f.flate
	}
	sum := crc32.NewIEEE()
	for left := e.Size; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(f.buf[:])
		if left -= int64(n); left < 0 {
			return damaged(e.Name, "the entry %s has more content than the %d bytes announced", quote(e.Name), e.Size)
		}
		sum.Write(f.buf[:n])
		if _, werr := w.Write(f.buf[:n]); werr != nil {
			return werr
		}
		if err == io.EOF {
			if left > 0 {
				return damaged(e.Name, "the entry %s has %d bytes less than announced", quote(e.Name), left)
			}
			break
		}
		if err != nil {
			if broken.err != nil {
				return readError(broken.err)
			}
			return damaged(e.Name, "the entry %s cannot be decompressed: %s", quote(e.Name), err)
		}
	}
	if err := atEnd(e, f.in); err != nil {
		if broken.err != nil {
			return readError(broken.err)
		}
		return err
	}
	if sum.Sum32() != e.CRC32 {
		return damaged(e.Name, "the content of the entry %s does not match its checksum", quote(e.Name))
	}
	return nil
}

// atEnd returns an error unless all bytes of an entry were read. Deflate says itself where it ends, so more bytes may
// follow, which a program that reads the archive from its beginning would take for the next entry.
func atEnd(e *Entry, in *bufio.Reader) error {
	switch _, err := in.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return damaged(e.Name, "the entry %s has bytes behind the end of its compressed content", quote(e.Name))
	default:
		return readError(err)
	}
}

// sourceError records that reading the source failed, which is not an error of the archive.
type sourceError struct {
	io.Reader
	err error
}

func (s *sourceError) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Content returns the content of an entry of at most most bytes, for content that must be in memory as
// a whole. It charges twice the size of the entry before it allocates.
//
// Errors: those of Copy, and *Error of the kind TooLarge for a larger entry.
func (a *Archive) Content(ctx context.Context, e *Entry, most int64) ([]byte, error) {
	if e.Size > most {
		return nil, refused(TooLarge, e.Name, "the entry %s has %d bytes; at most %d are accepted", quote(e.Name), e.Size, most)
	}
	if err := a.budget.Hold(2 * e.Size); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, min(e.Size, 4*e.Compressed+4096)))
	if err := a.Copy(ctx, e, b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
