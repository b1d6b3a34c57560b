// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"bytes"
	"crypto/cipher"
	"embed"
	"errors"
	"math/rand/v2"
	"testing"

	"tamga/gost/kuznyechik"
	"tamga/internal/gosttest"
)

//go:embed testdata/*.txt
var testdata embed.FS

// oneByOne hides the method EncryptBlocks of a cipher.
type oneByOne struct{ cipher.Block }

func newMGM(t testing.TB, key []byte, wrap func(cipher.Block) cipher.Block) cipher.AEAD {
	t.Helper()
	b, err := kuznyechik.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		b = wrap(b)
	}
	a, err := NewMGM(b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestKnownAnswers(t *testing.T) { eachImplementation(t, testKnownAnswers) }

func testKnownAnswers(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/rfc9058.txt") {
		for name, wrap := range map[string]func(cipher.Block) cipher.Block{
			"many blocks": nil,
			"one by one":  func(b cipher.Block) cipher.Block { return oneByOne{b} },
		} {
			a := newMGM(t, v.Bytes(t, "Key"), wrap)
			nonce, data, plain := v.Bytes(t, "Nonce"), v.Bytes(t, "Data"), v.Bytes(t, "Plain")
			want := append(v.Bytes(t, "Sealed"), v.Bytes(t, "Tag")...)
			if got := a.Seal(nil, nonce, plain, data); !bytes.Equal(got, want) {
				t.Errorf("line %d, %s: sealed %x, want %x", v.Line, name, got, want)
			}
			got, err := a.Open([]byte("prefix"), nonce, want, data)
			if err != nil || !bytes.Equal(got, append([]byte("prefix"), plain...)) {
				t.Errorf("line %d, %s: opened %x, %v, want the prefix and %x", v.Line, name, got, err, plain)
			}
			nonce[0] ^= 0x80
			if got := a.Seal(nil, nonce, plain, data); !bytes.Equal(got, want) {
				t.Errorf("line %d, %s: the first bit of the nonce changes the result", v.Line, name)
			}
		}
	}
}

// TestLengths seals and opens messages of many short lengths, in place and not, and
// checks that Open refuses a change of any byte.
func TestLengths(t *testing.T) {
	a := newMGM(t, make([]byte, kuznyechik.KeySize), nil)
	slow := newMGM(t, make([]byte, kuznyechik.KeySize), func(b cipher.Block) cipher.Block { return oneByOne{b} })
	random := rand.NewChaCha8([32]byte{1})
	for _, nText := range []int{0, 1, 15, 16, 17, 31, 32, 127, 128, 129, 300} {
		for _, nData := range []int{0, 1, 16, 33, 130} {
			if nText+nData == 0 {
				continue
			}
			nonce, plain, data := make([]byte, 16), make([]byte, nText), make([]byte, nData)
			random.Read(nonce)
			random.Read(plain)
			random.Read(data)
			sealed := a.Seal(nil, nonce, plain, data)
			if len(sealed) != nText+a.Overhead() {
				t.Fatalf("%d bytes have %d bytes when sealed", nText, len(sealed))
			}
			if got := slow.Seal(nil, nonce, plain, data); !bytes.Equal(got, sealed) {
				t.Fatalf("%d and %d bytes: one by one gives %x, many blocks %x", nText, nData, got, sealed)
			}

			buf := make([]byte, nText, nText+16)
			copy(buf, plain)
			inPlace := a.Seal(buf[:0], nonce, buf, data)
			if !bytes.Equal(inPlace, sealed) || (nText > 0 && &inPlace[0] != &buf[0]) {
				t.Fatalf("%d and %d bytes: sealed in place %x, want %x", nText, nData, inPlace, sealed)
			}
			opened, err := a.Open(inPlace[:0], nonce, inPlace, data)
			if err != nil || !bytes.Equal(opened, plain) {
				t.Fatalf("%d and %d bytes: opened in place %x, %v, want %x", nText, nData, opened, err, plain)
			}

			for i := range sealed {
				damaged := bytes.Clone(sealed)
				damaged[i] ^= 1
				if got, err := a.Open(nil, nonce, damaged, data); !errors.Is(err, ErrOpen) || got != nil {
					t.Fatalf("%d and %d bytes: byte %d changed: %x, %v", nText, nData, i, got, err)
				}
			}
			for i := range data {
				damaged := bytes.Clone(data)
				damaged[i] ^= 0x80
				if _, err := a.Open(nil, nonce, sealed, damaged); !errors.Is(err, ErrOpen) {
					t.Fatalf("%d and %d bytes: byte %d of the data changed: %v", nText, nData, i, err)
				}
			}
			nonce[15] ^= 1
			if _, err := a.Open(nil, nonce, sealed, data); !errors.Is(err, ErrOpen) {
				t.Fatalf("%d and %d bytes under another nonce: %v", nText, nData, err)
			}
		}
	}
}

// TestCounters checks that each half of a counter wraps without changing the other.
// Real messages practically never reach this.
func TestCounters(t *testing.T) {
	m := &mgm{encrypt: func([]byte) {}}
	for _, c := range []struct {
		right bool
		want  string
	}{
		{true, "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"},
		{false, "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"},
	} {
		s := sequence{m: m, hi: 1<<64 - 1, lo: 1<<64 - 1, right: c.right}
		s.next(1, 2)
		if got := string(s.next(1, 1)); got != c.want {
			t.Errorf("right %v: %x, want %x", c.right, got, c.want)
		}
	}
}

func TestFailedOpenLeavesBuffer(t *testing.T) {
	a := newMGM(t, make([]byte, kuznyechik.KeySize), nil)
	nonce := make([]byte, 16)
	sealed := a.Seal(nil, nonce, []byte("sixteen bytes!!!"), nil)
	sealed[3] ^= 1
	before := bytes.Clone(sealed)
	if _, err := a.Open(sealed[:0], nonce, sealed, nil); !errors.Is(err, ErrOpen) {
		t.Fatal(err)
	}
	if !bytes.Equal(sealed, before) {
		t.Error("Open wrote a message that does not authenticate to dst")
	}
}

func TestMisuse(t *testing.T) {
	a := newMGM(t, make([]byte, kuznyechik.KeySize), nil)
	nonce, buf := make([]byte, 16), make([]byte, 100)
	for name, f := range map[string]func(){
		"Seal with a short nonce": func() { a.Seal(nil, nonce[:15], buf, nil) },
		"Open with a long nonce":  func() { a.Open(nil, buf[:17], buf, nil) },
		"Seal of nothing":         func() { a.Seal(nil, nonce, nil, nil) },
		"Seal shifted":            func() { a.Seal(buf[:1], nonce, buf[:20], nil) },
		"Seal over the data":      func() { a.Seal(buf[:0], nonce, make([]byte, 5), buf[20:30]) },
		"Open shifted":            func() { a.Open(buf[:1], nonce, buf[:40], nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
	for n := range 17 {
		if _, err := a.Open(nil, nonce, buf[:n], nil); !errors.Is(err, ErrOpen) {
			t.Errorf("Open of %d bytes: %v, want ErrOpen", n, err)
		}
	}
	if _, err := NewMGM(eightBytes{}); err == nil {
		t.Error("NewMGM accepts a cipher with blocks of 8 bytes")
	}
}

type eightBytes struct{ cipher.Block }

func (eightBytes) BlockSize() int { return 8 }

func FuzzMGMOpen(f *testing.F) {
	b, err := kuznyechik.NewCipher(make([]byte, kuznyechik.KeySize))
	if err != nil {
		f.Fatal(err)
	}
	a, err := NewMGM(b)
	if err != nil {
		f.Fatal(err)
	}
	nonce := make([]byte, 16)
	f.Add(nonce, a.Seal(nil, nonce, []byte("text"), []byte("data")), []byte("data"))
	f.Add(nonce, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, nonce, sealed, data []byte) {
		if len(nonce) != MGMNonceSize {
			return // Open panics, as documented
		}
		plain, err := a.Open(nil, nonce, sealed, data)
		if err != nil {
			return
		}
		if again := a.Seal(nil, nonce, plain, data); !bytes.Equal(again, sealed) {
			t.Fatalf("%x opens, but its plaintext seals to %x", sealed, again)
		}
	})
}

func BenchmarkMGM(b *testing.B) {
	a := newMGM(b, make([]byte, kuznyechik.KeySize), nil)
	nonce := make([]byte, 16)
	for _, size := range []struct {
		name  string
		bytes int
	}{{"64B", 64}, {"1KiB", 1 << 10}} {
		p := make([]byte, size.bytes)
		out := make([]byte, 0, size.bytes+16)
		b.Run("Seal/"+size.name, func(b *testing.B) {
			b.SetBytes(int64(size.bytes))
			for b.Loop() {
				a.Seal(out, nonce, p, nil)
			}
		})
		sealed := a.Seal(nil, nonce, p, nil)
		b.Run("Open/"+size.name, func(b *testing.B) {
			b.SetBytes(int64(size.bytes))
			for b.Loop() {
				a.Open(out, nonce, sealed, nil)
			}
		})
	}
}
