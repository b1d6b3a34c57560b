// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"testing"
)

// pieces is content that is written in pieces of random lengths.
type pieces struct {
	text   []byte
	most   int
	random *rand.Rand
}

func (p pieces) Size() int64 { return int64(len(p.text)) }
func (p pieces) WriteTo(w io.Writer) (n int64, err error) {
	for left := p.text; len(left) > 0; {
		m, err := w.Write(left[:min(p.random.IntN(p.most+1), len(left))])
		if n += int64(m); err != nil {
			return n, err
		}
		left = left[m:]
	}
	return n, nil
}

func TestStreamInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lengths := []int{bufferSize / 4 * 3, bufferSize/4*3 - 1, bufferSize, 3 * bufferSize, 200_001}
	for n := range 200 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		want := `"` + base64.StdEncoding.EncodeToString(text) + `"`
		for _, most := range []int{2, 100, 1 << 20} {
			a, err := prepare(Stream{Content: pieces{text, most, random}})
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := a.to(&got); err != nil || got.String() != want || a.size != int64(len(want)) {
				t.Fatalf("%d bytes in pieces of up to %d: %v, %d bytes announced, %d of %d written", n, most, err, a.size, got.Len(), len(want))
			}
		}
	}
}
