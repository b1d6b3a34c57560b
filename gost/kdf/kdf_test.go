// SPDX-License-Identifier: Apache-2.0

package kdf

import (
	"bytes"
	"crypto/hmac"
	"embed"
	"testing"

	"tamga/gost/streebog"
	"tamga/internal/gosttest"
)

//go:embed testdata
var testdata embed.FS

func TestTree(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/rfc7836.txt") {
		want := v.Bytes(t, "Out")
		got, err := Tree(v.Bytes(t, "Key"), v.Bytes(t, "Label"), v.Bytes(t, "Seed"), 1, len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("line %d: %x, %v, want %x", v.Line, got, err, want)
		}
	}
}

// The counter and the length have the bytes that the function names.
func TestTreeNumbers(t *testing.T) {
	key, label, seed := []byte("key"), []byte("label"), []byte("seed")
	for _, c := range []struct {
		r, length int
		counter   []byte // of the last block
		bits      []byte
	}{
		{1, 32, []byte{1}, []byte{1, 0}},
		{2, 32, []byte{0, 1}, []byte{1, 0}},
		{4, 64, []byte{0, 0, 0, 2}, []byte{2, 0}},
		{1, 255 * 32, []byte{255}, []byte{0xff, 0}},
		{2, 256 * 32, []byte{1, 0}, []byte{1, 0, 0}},
		{3, 65536 * 32, []byte{1, 0, 0}, []byte{1, 0, 0, 0}},
	} {
		got, err := Tree(key, label, seed, c.r, c.length)
		if err != nil || len(got) != c.length {
			t.Errorf("R = %d, %d bytes: %d bytes, %v", c.r, c.length, len(got), err)
			continue
		}
		mac := hmac.New(streebog.New256, key)
		mac.Write(bytes.Join([][]byte{c.counter, label, {0}, seed, c.bits}, nil))
		if !bytes.Equal(got[c.length-BlockSize:], mac.Sum(nil)) {
			t.Errorf("R = %d, %d bytes: the last block differs from the definition", c.r, c.length)
		}
	}
	for _, bad := range []struct{ r, length int }{{0, 32}, {5, 32}, {1, 0}, {1, -32}, {1, 33}, {1, 256 * 32}, {4, 1 << 28}} {
		if _, err := Tree(key, label, seed, bad.r, bad.length); err == nil {
			t.Errorf("Tree accepts R = %d and %d bytes", bad.r, bad.length)
		}
	}
}
