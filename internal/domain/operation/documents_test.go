// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

func TestBundle(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		b := &bundle{}
		var whole []byte
		for range random.IntN(6) {
			text := bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(20)*random.IntN(2))
			if at := b.add(bytes.NewReader(text)); at.At != int64(len(whole)) {
				t.Fatalf("a part is at %d, want %d", at.At, len(whole))
			}
			whole = append(whole, text...)
		}
		if b.Size() != int64(len(whole)) {
			t.Fatalf("%d bytes, want %d", b.Size(), len(whole))
		}
		if err := iotest.TestReader(io.NewSectionReader(b, 0, b.Size()), whole); err != nil {
			t.Fatal(err)
		}
		s := NewSection(b, b.Size()/3, b.Size()/2)
		for range 2 { // any number of times
			var out bytes.Buffer
			if _, err := s.WriteTo(&out); err != nil || !bytes.Equal(out.Bytes(), whole[len(whole)/3:len(whole)/3+len(whole)/2]) {
				t.Fatal(err, out.Len())
			}
		}
	}
	if _, err := (&bundle{}).ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
		t.Error("a negative offset was accepted")
	}
}
