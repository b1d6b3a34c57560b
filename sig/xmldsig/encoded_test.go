// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"encoding/base64"
	"io"
	"testing"
	"testing/iotest"
)

// A document inside of a signature is encoded while the result is read, from any offset.
func TestEncoded(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 100, encodedAtOnce - 1, encodedAtOnce, 3*encodedAtOnce + 1} {
		data := bytes.Repeat([]byte("0123456789abcdefg"), size/17+1)[:size]
		e := encoded{bytes.NewReader(data), int64(size)}
		want := base64.StdEncoding.AppendEncode(nil, data)
		if e.Size() != int64(len(want)) {
			t.Fatalf("%d bytes are %d, want %d", size, e.Size(), len(want))
		}
		if err := iotest.TestReader(io.NewSectionReader(e, 0, e.Size()), want); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		for off := range min(9, len(want)) {
			got := make([]byte, len(want)-off)
			if n, err := e.ReadAt(got, int64(off)); n < len(got) || !bytes.Equal(got, want[off:]) {
				t.Errorf("%d bytes from %d: %d, %v", size, off, n, err)
			}
		}
		if n, err := e.ReadAt(make([]byte, 5), e.Size()-1); n != 1 || err != io.EOF {
			t.Errorf("the end of %d bytes: %d, %v", size, n, err)
		}
	}
}
