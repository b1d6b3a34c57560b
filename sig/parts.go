// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// chunk is how much of a document is in memory at once while it is read or written. It is large
// enough for disks and hashes, and small enough for many requests at once.
const chunk = 128 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// Part is a piece of a Result: new bytes, or a section of a document. The zero Part is empty.
type Part struct {
	bytes  []byte
	source io.ReaderAt
	offset int64
	length int64
}

// Bytes returns a part of bytes in memory. It keeps the slice and does not copy it.
func Bytes(b []byte) Part { return Part{bytes: b, length: int64(len(b))} }

// Section returns a part of length bytes of a document, beginning at offset. They are read when
// the result is written.
func Section(d io.ReaderAt, offset, length int64) Part {
	return Part{source: d, offset: offset, length: length}
}

// Parts returns the Result that consists of the parts, in their order.
func Parts(parts ...Part) *Assembly {
	a := &Assembly{parts: parts, ends: make([]int64, len(parts))}
	for i, p := range parts {
		a.size += p.length
		a.ends[i] = a.size
	}
	return a
}

// Assembly is a Result made of parts. It is also a Document, so a format can read its own
// result before it returns it.
type Assembly struct {
	parts []Part
	ends  []int64 // offset after each part
	size  int64
}

// Size implements Result and Document. It is in bytes.
func (a *Assembly) Size() int64 { return a.size }

// WriteTo implements io.WriterTo in chunks of 128 KiB. If a document is shorter than its Size,
// the error wraps io.ErrUnexpectedEOF.
func (a *Assembly) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for _, p := range a.parts {
		n, err := p.writeTo(w)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// ReadAt implements io.ReaderAt.
func (a *Assembly) ReadAt(b []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, fmt.Errorf("document: offset %d is negative", offset)
	}
	i, _ := slices.BinarySearch(a.ends, offset+1) // the part with the byte at offset
	for n < len(b) && i < len(a.parts) {
		p := &a.parts[i]
		from := offset + int64(n) - (a.ends[i] - p.length)
		want := b[n:min(int64(len(b)), int64(n)+p.length-from)]
		if p.source == nil {
			copy(want, p.bytes[from:])
		} else if got, err := p.source.ReadAt(want, p.offset+from); got < len(want) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return n + got, fmt.Errorf("document: reading %d bytes at offset %d: %w", len(want), p.offset+from, err)
		}
		n += len(want)
		i++
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (p Part) writeTo(w io.Writer) (int64, error) {
	if p.source == nil {
		n, err := w.Write(p.bytes)
		return int64(n), err
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	var total int64
	for total < p.length {
		b := buf[:min(int64(chunk), p.length-total)]
		n, err := p.source.ReadAt(b, p.offset+total)
		if n < len(b) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return total, fmt.Errorf("document: reading %d bytes at offset %d: %w", len(b), p.offset+total, err)
		}
		m, err := w.Write(b)
		total += int64(m)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
