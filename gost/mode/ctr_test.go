// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"bytes"
	"crypto/cipher"
	"slices"
	"testing"

	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
	"tamga/internal/gosttest"
)

var ciphers = map[string]func(key []byte) (cipher.Block, error){"Kuznyechik": kuznyechik.NewCipher, "Magma": magma.NewCipher}

func newCTR(t *testing.T, name string, key, iv []byte, wrap func(cipher.Block) cipher.Block) cipher.Stream {
	t.Helper()
	b, err := ciphers[name](key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewCTR(wrap(b), iv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asItIs(b cipher.Block) cipher.Block { return b }
func hidden(b cipher.Block) cipher.Block { return oneByOne{b} }

func TestCTRKnownAnswers(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/ctr.txt") {
		name, plain, sealed := v.Text(t, "Cipher"), v.Bytes(t, "Plain"), v.Bytes(t, "Sealed")
		for _, wrap := range []func(cipher.Block) cipher.Block{asItIs, hidden} {
			for n := 1; n <= len(plain); n++ {
				s := newCTR(t, name, v.Bytes(t, "Key"), v.Bytes(t, "IV"), wrap)
				got := bytes.Clone(plain)
				for part := range slices.Chunk(got, n) {
					s.XORKeyStream(part, part)
				}
				if !bytes.Equal(got, sealed) {
					t.Fatalf("line %d, in pieces of %d bytes: %x, want %x", v.Line, n, got, sealed)
				}
			}
		}
	}
}

// TestCTRPieces enciphers a long message in pieces and compares it with the cipher, one
// block at a time. The counter carries soon after the beginning.
func TestCTRPieces(t *testing.T) {
	key := make([]byte, 32)
	for name := range ciphers {
		b, err := ciphers[name](key)
		if err != nil {
			t.Fatal(err)
		}
		size := b.BlockSize()
		iv := bytes.Repeat([]byte{0xff}, size/2)
		counter := append(bytes.Clone(iv), make([]byte, size/2)...)
		var want []byte
		for len(want) < 5*ahead {
			gamma := make([]byte, size)
			b.Encrypt(gamma, counter)
			want = append(want, gamma...)
			for i := size - 1; i >= 0; i-- {
				if counter[i]++; counter[i] != 0 {
					break
				}
			}
		}
		for _, n := range []int{1, size - 1, size, size + 1, 100, 1000, ahead, len(want)} {
			s := newCTR(t, name, key, iv, asItIs)
			got := make([]byte, len(want))
			for part := range slices.Chunk(got, n) {
				s.XORKeyStream(part, part)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s in pieces of %d bytes differs from the cipher one block at a time", name, n)
			}
		}
	}
}

// TestCTRCarry checks that the counter carries from its lower half into the half that
// begins as the vector, and wraps to 0 after the last value.
func TestCTRCarry(t *testing.T) {
	for name, c := range map[string]*ctr{
		"Magma":      {size: 8, encrypt: func([]byte) {}, lo: 0x12345678_ffffffff},
		"Kuznyechik": {size: 16, encrypt: func([]byte) {}, hi: 0x12345678, lo: 1<<64 - 1},
		"the end":    {size: 16, encrypt: func([]byte) {}, hi: 1<<64 - 1, lo: 1<<64 - 1},
	} {
		want := map[string]string{
			"Magma":      "\x12\x34\x56\x78\xff\xff\xff\xff\x12\x34\x56\x79\x00\x00\x00\x00",
			"Kuznyechik": "\x00\x00\x00\x00\x12\x34\x56\x78\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x12\x34\x56\x79\x00\x00\x00\x00\x00\x00\x00\x00",
			"the end":    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		}[name]
		got := make([]byte, len(want))
		if c.XORKeyStream(got, got); string(got) != want {
			t.Errorf("%s: counters %x, want %x", name, got, want)
		}
	}
}

func TestCTRRefusals(t *testing.T) {
	b, err := magma.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 3, 5, 8} {
		if _, err := NewCTR(b, make([]byte, n)); err == nil {
			t.Errorf("NewCTR accepts a vector of %d bytes", n)
		}
	}
	if _, err := NewCTR(wide{b}, make([]byte, 16)); err == nil {
		t.Error("NewCTR accepts blocks of 32 bytes")
	}
	defer func() {
		if recover() == nil {
			t.Error("XORKeyStream accepts a short output")
		}
	}()
	newCTR(t, "Magma", make([]byte, 32), make([]byte, 4), asItIs).XORKeyStream(make([]byte, 8), make([]byte, 9))
}

type wide struct{ cipher.Block }

func (wide) BlockSize() int { return 32 }
