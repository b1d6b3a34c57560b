// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"io"
	"os"
	"sync"
)

// takenSize is how many bytes ReadFrom reads and writes at a time. It fits into the processor's
// cache together with what a reader does with the bytes, such as hashing.
const takenSize = 192 << 10

var pieces = sync.Pool{New: func() any { return new([takenSize]byte) }}

// spoolFile is a document that is being received. See [signing.SpoolFile]. Its embedded file also
// implements Write, ReadAt and Close.
type spoolFile struct{ *os.File }

// ReadFrom implements io.ReaderFrom: a document of a gigabyte passes through one small buffer.
func (f spoolFile) ReadFrom(r io.Reader) (int64, error) {
	piece := pieces.Get().(*[takenSize]byte)
	defer pieces.Put(piece)
	return io.CopyBuffer(struct{ io.Writer }{f.File}, struct{ io.Reader }{r}, piece[:])
}
