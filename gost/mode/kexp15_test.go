// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"bytes"
	"crypto/cipher"
	"errors"
	"testing"

	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
	"tamga/internal/gosttest"
)

func TestKExp15(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/kexp15.txt") {
		newCipher := kuznyechik.NewCipher
		if v.Text(t, "Cipher") == "Magma" {
			newCipher = magma.NewCipher
		}
		macKey, cipherKey, iv, key, want := v.Bytes(t, "MACKey"), v.Bytes(t, "CipherKey"), v.Bytes(t, "IV"), v.Bytes(t, "Key"), v.Bytes(t, "Exported")
		got, err := KExp15(newCipher, macKey, cipherKey, iv, key)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("line %d: %x, %v, want %x", v.Line, got, err, want)
		}
		back, err := KImp15(newCipher, macKey, cipherKey, iv, want)
		if err != nil || !bytes.Equal(back, key) {
			t.Errorf("line %d: imported %x, %v", v.Line, back, err)
		}
		refuse := func(what string, macKey, cipherKey, iv, exported []byte) {
			t.Helper()
			if back, err := KImp15(newCipher, macKey, cipherKey, iv, exported); !errors.Is(err, ErrImport) || back != nil {
				t.Errorf("line %d: %s: %x, %v", v.Line, what, back, err)
			}
		}
		for i := range 8 * len(want) {
			refuse("a flipped bit", macKey, cipherKey, iv, flip(want, i))
		}
		refuse("another key of the code", flip(macKey, 0), cipherKey, iv, want)
		refuse("another key of the cipher", macKey, flip(cipherKey, 0), iv, want)
		refuse("another vector", macKey, cipherKey, flip(iv, 0), want)
	}
}

func flip(b []byte, bit int) []byte {
	out := bytes.Clone(b)
	out[bit/8] ^= 1 << (bit % 8)
	return out
}

func TestKExp15Lengths(t *testing.T) {
	for _, bad := range []struct{ mac, key, iv, text int }{{31, 32, 8, 32}, {32, 33, 8, 32}, {32, 32, 7, 32}, {32, 32, 8, 0}} {
		if _, err := KExp15(kuznyechik.NewCipher, make([]byte, bad.mac), make([]byte, bad.key), make([]byte, bad.iv), make([]byte, bad.text)); err == nil {
			t.Errorf("KExp15 accepts the lengths %+v", bad)
		}
		if _, err := KImp15(kuznyechik.NewCipher, make([]byte, bad.mac), make([]byte, bad.key), make([]byte, bad.iv), make([]byte, bad.text)); err == nil || errors.Is(err, ErrImport) && bad.text != 32 {
			t.Errorf("KImp15 with the lengths %+v: %v", bad, err)
		}
	}
	if _, err := KImp15(magma.NewCipher, make([]byte, 32), make([]byte, 32), make([]byte, 4), make([]byte, 8)); err == nil || errors.Is(err, ErrImport) {
		t.Errorf("a code without a key: %v", err)
	}
}

// A message in parts has the code of the whole message, and Sum does not end the computation.
func TestOMACInParts(t *testing.T) {
	for _, newCipher := range []func([]byte) (cipher.Block, error){kuznyechik.NewCipher, magma.NewCipher} {
		b, err := newCipher(bytes.Repeat([]byte{7}, 32))
		if err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 100)
		for i := range message {
			message[i] = byte(i)
		}
		for size := range len(message) {
			want := OMAC(b, message[:size])
			for _, step := range []int{1, 3, 8, 15, 16, 17, 100} {
				h := NewOMAC(b)
				h.Write([]byte("forgotten"))
				h.Reset()
				for rest := message[:size]; len(rest) > 0; {
					n, _ := h.Write(rest[:min(step, len(rest))])
					rest = rest[n:]
					h.Sum(nil)
				}
				if got := h.Sum([]byte{1}); got[0] != 1 || !bytes.Equal(got[1:], want) {
					t.Fatalf("%d bytes in parts of %d: %x, want %x", size, step, got[1:], want)
				}
			}
		}
	}
}

// FuzzKImp15 exports and imports any key, and refuses every other text.
func FuzzKImp15(f *testing.F) {
	f.Add(make([]byte, 64), make([]byte, 8), make([]byte, 32))
	f.Add(bytes.Repeat([]byte{1}, 64), []byte("8 bytes."), []byte{1})
	f.Fuzz(func(t *testing.T, keys, iv, key []byte) {
		if len(keys) != 64 || len(iv) != 8 || len(key) == 0 {
			return
		}
		for _, c := range []struct {
			new func([]byte) (cipher.Block, error)
			iv  []byte
		}{{kuznyechik.NewCipher, iv}, {magma.NewCipher, iv[:4]}} {
			exported, err := KExp15(c.new, keys[:32], keys[32:], c.iv, key)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := KImp15(c.new, keys[:32], keys[32:], c.iv, exported); err != nil || !bytes.Equal(back, key) {
				t.Errorf("%x, %v", back, err)
			}
			// A text that is not the one exported is accepted with a probability of 2^-64 only.
			if back, err := KImp15(c.new, keys[:32], keys[32:], c.iv, key); err == nil && !bytes.Equal(exported, key) {
				t.Errorf("%x is imported as %x", key, back)
			}
		}
	})
}
