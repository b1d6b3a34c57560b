// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// digitByDigit decodes a hexadecimal string up to its end, and reports whether it has only digits
// and white space.
func digitByDigit(text []byte) (out []byte, only bool) {
	out, only = []byte{}, true
	high := -1
	for _, c := range text {
		d := hexDigit(int(c))
		switch {
		case d < 0:
			only = only && isSpace(int(c))
		case high < 0:
			high = d
		default:
			out, high = append(out, byte(high<<4|d)), -1
		}
	}
	if high >= 0 {
		out = append(out, byte(high<<4))
	}
	return out, only
}

// TestHexadecimalZeros compares the readers of hexadecimal strings, which pass over many zeros at a
// time, with one that reads digit by digit.
func TestHexadecimalZeros(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var text []byte
		for range r.IntN(6) {
			switch r.IntN(5) {
			case 0:
				text = append(text, "0Af9 \n~G/"[r.IntN(9)])
			case 1, 2:
				text = append(text, bytes.Repeat([]byte{'0'}, r.IntN(300))...)
			case 3:
				text = append(text, "00000000000000000000000000000000000000000000000000000000000000010"[r.IntN(3):]...)
			default:
				for range r.IntN(200) {
					text = append(text, "0123456789abcdefABCDEF"[r.IntN(22)])
				}
			}
		}
		want, only := digitByDigit(text)
		whole := slices.Concat([]byte{'<'}, text, []byte("> rest"))

		l := lexBytes(whole)
		l.left = 10
		if got := l.token(); got.kind != tokenText || !bytes.Equal(got.bytes, want) {
			t.Fatalf("%q is %x, want %x", text, got.bytes, want)
		}
		l = lexAt(bytes.NewReader(whole), 0, int64(len(whole)))
		l.left = 10
		if got := l.token(); got.kind != tokenText || !bytes.Equal(got.bytes, want) {
			t.Fatalf("read in windows, %q is %x, want %x", text, got.bytes, want)
		}
		f := newFile(t.Context(), bytes.NewReader(whole), int64(len(whole)))
		if got := f.hexadecimal(span{0, int64(len(text)) + 2}); got != only {
			t.Fatalf("%q: only digits: %v, want %v", text, got, only)
		}
	}
}
