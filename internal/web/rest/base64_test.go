// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"testing"
)

// inPieces writes its bytes in pieces of a size.
type inPieces struct {
	data []byte
	size int
}

func (p inPieces) Size() int64 { return int64(len(p.data)) }

func (p inPieces) WriteTo(w io.Writer) (int64, error) {
	for rest := p.data; len(rest) > 0; {
		n := min(p.size, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return p.Size(), nil
}

// writes notes the size of each write.
type writes struct {
	bytes.Buffer
	sizes []int
}

func (w *writes) Write(p []byte) (int, error) {
	w.sizes = append(w.sizes, len(p))
	return w.Buffer.Write(p)
}

// TestWriteBase64: the text is that of encoding/base64, whatever the pieces of a content are and
// wherever a buffer ends.
func TestWriteBase64(t *testing.T) {
	data := make([]byte, 3*wideSize)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	for _, length := range []int{0, 1, 2, 3, 4, 27, 28, 1000, bufferSize/4*3 - 1, bufferSize / 4 * 3, bufferSize/4*3 + 1, wideSize / 4 * 3, wideSize/4*3 + 2, len(data)} {
		for _, size := range []int{1, 2, 3, 100, 1000, len(data)} {
			c := inPieces{data[:length], size}
			want := base64.StdEncoding.EncodeToString(c.data)
			var got bytes.Buffer
			if err := WriteBase64(&got, c); err != nil || got.String() != want {
				t.Fatalf("%d bytes in pieces of %d: %d characters (%v), %d expected", length, size, got.Len(), err, len(want))
			}
			var quoted writes
			if err := (Stream{Content: c}).encode(&quoted); err != nil || quoted.String() != `"`+want+`"` {
				t.Fatalf("%d bytes in pieces of %d: %d characters in quotes (%v), %d expected", length, size, quoted.Len(), err, len(want)+2)
			}
			if most := (len(want)+2)/(wideSize-4) + 1; len(quoted.sizes) > most {
				t.Fatalf("%d bytes in pieces of %d are written in %d pieces, %d expected at most", length, size, len(quoted.sizes), most)
			}
		}
	}
	lost := errors.New("lost")
	if err := WriteBase64(lossy{lost}, inPieces{data, 1000}); !errors.Is(err, lost) {
		t.Fatalf("an error of the writer became %v", err)
	}
}

type lossy struct{ err error }

func (l lossy) Write([]byte) (int, error) { return 0, l.err }
