package sig

import (
	"fmt"
	"io"
	"sync"
)

// chunk is how much of a document is in memory at once while it is read or
// written: large enough for disks and hashes, small enough for many requests.
const chunk = 128 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// Part is a stretch of a Result: new bytes, or a section of a document. The
// zero Part is empty.
type Part struct {
	bytes  []byte
	source io.ReaderAt
	offset int64
	length int64
}

// Bytes is a part that is already in memory. The slice is kept, not copied.
func Bytes(b []byte) Part { return Part{bytes: b, length: int64(len(b))} }

// Section is length octets of a document from offset on, read when written.
func Section(d io.ReaderAt, offset, length int64) Part {
	return Part{source: d, offset: offset, length: length}
}

// Parts is the Result that consists of the parts in their order.
func Parts(parts ...Part) Result { return result(parts) }

type result []Part

// Size implements Result.
func (r result) Size() int64 {
	var n int64
	for _, p := range r {
		n += p.length
	}
	return n
}

// WriteTo implements io.WriterTo in chunks of 128 KiB. A document that turns
// out shorter than it said is io.ErrUnexpectedEOF, wrapped.
func (r result) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for _, p := range r {
		n, err := p.writeTo(w)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
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
			return total, fmt.Errorf("document: %d octets at offset %d cannot be read: %w", len(b), p.offset+total, err)
		}
		m, err := w.Write(b)
		total += int64(m)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
