// SPDX-License-Identifier: Apache-2.0

package gosttest

import (
	"bytes"
	"crypto/cipher"
	"testing"
)

// Block checks what every block cipher here must do, besides computing the right
// values:
//
//   - newCipher accepts only keys of keySize bytes and copies the key;
//   - Decrypt inverts Encrypt;
//   - Encrypt and Decrypt work in place and with buffers that overlap in part, and do
//     not change bytes after the block;
//   - they panic on short buffers, as in the standard library;
//   - they do not allocate.
func Block(t *testing.T, newCipher func(key []byte) (cipher.Block, error), keySize int) {
	for _, n := range []int{0, 1, keySize - 1, keySize + 1, 2 * keySize} {
		if _, err := newCipher(make([]byte, n)); err == nil {
			t.Errorf("a key of %d bytes is accepted, want %d only", n, keySize)
		}
	}
	key := message(keySize)
	c, err := newCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	size := c.BlockSize()
	plain := message(size + 1)[1:]
	sealed := make([]byte, size)
	c.Encrypt(sealed, plain)
	clear(key)

	t.Run("round trip", func(t *testing.T) {
		for i := range 8 * size {
			flipped := bytes.Clone(plain)
			flipped[i/8] ^= 1 << (i % 8)
			enc, dec := make([]byte, size), make([]byte, size)
			c.Encrypt(enc, flipped)
			c.Decrypt(dec, enc)
			if bytes.Equal(enc, sealed) || !bytes.Equal(dec, flipped) {
				t.Fatalf("bit %d flipped: %x is encrypted to %x and decrypted to %x", i, flipped, enc, dec)
			}
		}
	})
	t.Run("in place and longer buffers", func(t *testing.T) {
		buf := append(bytes.Clone(plain), 0xa5, 0x5a)
		c.Encrypt(buf, buf)
		if want := append(bytes.Clone(sealed), 0xa5, 0x5a); !bytes.Equal(buf, want) {
			t.Errorf("Encrypt in place: %x, want %x", buf, want)
		}
		c.Decrypt(buf, buf)
		if want := append(bytes.Clone(plain), 0xa5, 0x5a); !bytes.Equal(buf, want) {
			t.Errorf("Decrypt in place: %x, want %x", buf, want)
		}
	})
	t.Run("overlap", func(t *testing.T) {
		for _, shift := range []int{1, size - 1} {
			buf := append(make([]byte, shift), plain...)
			c.Encrypt(buf, buf[shift:])
			if !bytes.Equal(buf[:size], sealed) {
				t.Errorf("Encrypt to a destination %d bytes before the source: %x, want %x", shift, buf[:size], sealed)
			}
			buf = append(bytes.Clone(sealed), make([]byte, shift)...)
			c.Decrypt(buf[shift:], buf)
			if !bytes.Equal(buf[shift:], plain) {
				t.Errorf("Decrypt to a destination %d bytes after the source: %x, want %x", shift, buf[shift:], plain)
			}
		}
	})
	t.Run("short buffers", func(t *testing.T) {
		buf := make([]byte, 2*size)
		for _, call := range []struct {
			name string
			f    func(dst, src []byte)
		}{{"Encrypt", c.Encrypt}, {"Decrypt", c.Decrypt}} {
			mustPanic(t, call.name+" with a short source", func() { call.f(buf[:size], buf[size:2*size-1]) })
			mustPanic(t, call.name+" with a short destination", func() { call.f(buf[:size-1], buf[size:]) })
		}
	})
	t.Run("allocations", func(t *testing.T) {
		buf := make([]byte, size)
		if n := testing.AllocsPerRun(10, func() { c.Encrypt(buf, buf); c.Decrypt(buf, buf) }); n != 0 {
			t.Errorf("Encrypt and Decrypt allocate %v times, want never", n)
		}
	})
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}
