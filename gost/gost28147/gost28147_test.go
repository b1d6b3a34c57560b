// SPDX-License-Identifier: Apache-2.0

package gost28147

import (
	"bytes"
	"crypto/cipher"
	"embed"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"tamga/internal/gosttest"
)

//go:embed testdata/*.txt
var testdata embed.FS

// sBoxLibgcl3 is id-Gost28147-89-TestParamSet, 1.2.643.2.2.31.0 (RFC 4357, section
// 11.1). Published examples use it.
var sBoxLibgcl3 = newSBox("id-Gost28147-89-TestParamSet", [8][16]byte{
	{4, 2, 15, 5, 9, 1, 0, 8, 14, 3, 11, 12, 13, 7, 10, 6},
	{12, 9, 15, 14, 8, 1, 3, 10, 2, 7, 4, 13, 6, 0, 11, 5},
	{13, 8, 14, 12, 7, 3, 9, 10, 1, 5, 2, 4, 6, 15, 0, 11},
	{14, 9, 11, 2, 5, 15, 7, 1, 0, 13, 12, 6, 10, 4, 3, 8},
	{3, 14, 5, 9, 6, 8, 0, 13, 10, 11, 7, 12, 2, 1, 15, 4},
	{8, 15, 6, 11, 1, 9, 12, 5, 13, 3, 7, 10, 0, 14, 2, 4},
	{9, 11, 12, 0, 3, 6, 7, 5, 4, 8, 14, 15, 1, 10, 2, 13},
	{12, 6, 5, 2, 11, 0, 9, 13, 3, 14, 7, 10, 15, 4, 1, 8},
})

var sets = []*SBox{SBoxTest, SBoxCryptoPro, SBoxA, SBoxB, SBoxC, SBoxD, SBoxZ, sBoxLibgcl3}

func setOf(t *testing.T, v gosttest.Vector) *SBox {
	t.Helper()
	name := v.Text(t, "Set")
	for _, s := range sets {
		if s.Name() == name {
			return s
		}
	}
	t.Fatalf("line %d: no set %s", v.Line, name)
	return nil
}

func TestKnownBlocks(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/block.txt") {
		c, err := NewCipher(v.Bytes(t, "Key"), setOf(t, v))
		if err != nil {
			t.Fatal(err)
		}
		plain, sealed := v.Bytes(t, "Plain"), v.Bytes(t, "Sealed")
		got := make([]byte, BlockSize)
		if c.Encrypt(got, plain); !bytes.Equal(got, sealed) {
			t.Errorf("line %d: encrypted %x, want %x", v.Line, got, sealed)
		}
		if c.Decrypt(got, sealed); !bytes.Equal(got, plain) {
			t.Errorf("line %d: decrypted %x, want %x", v.Line, got, plain)
		}
	}
}

func TestConformance(t *testing.T) {
	for _, s := range sets {
		t.Run(s.Name(), func(t *testing.T) {
			gosttest.Block(t, func(key []byte) (cipher.Block, error) { return NewCipher(key, s) }, KeySize)
		})
	}
	if _, err := NewCipher(make([]byte, KeySize), nil); err == nil {
		t.Error("NewCipher accepts a nil parameter set")
	}
}

// TestSubstitute compares the constant-time evaluation and the tables of every set
// with its rows, for all values of every nibble and byte.
func TestSubstitute(t *testing.T) {
	for _, s := range sets {
		table := s.PublicTable()
		for i := range 4 {
			for x := range 256 {
				word := uint32(x)<<(8*i) ^ 0x5a3c9600
				var want uint32
				for j, row := range s.rows {
					want |= uint32(row[word>>(4*j)&15]) << (4 * j)
				}
				if got := substitute(s, word); got != want {
					t.Fatalf("%s: %08x becomes %08x, want %08x", s.Name(), word, got, want)
				}
				if got, want := substitute(s, uint64(word)<<32|uint64(^word)), uint64(want)<<32|uint64(substitute(s, ^word)); got != want {
					t.Fatalf("%s: two words at a time become %016x, want %016x", s.Name(), got, want)
				}
				got := table[0][word&255] ^ table[1][word>>8&255] ^ table[2][word>>16&255] ^ table[3][word>>24]
				if want = want<<11 | want>>21; got != want {
					t.Fatalf("%s: table gives %08x for %08x, want %08x", s.Name(), got, word, want)
				}
			}
		}
	}
}

// TestSets catches typing errors that known answers might miss: every row is a
// permutation, and no two sets are the same.
func TestSets(t *testing.T) {
	for i, s := range sets {
		for j, row := range s.rows {
			sorted := slices.Sorted(slices.Values(row[:]))
			for x, y := range sorted {
				if int(y) != x {
					t.Errorf("%s: row %d is not a permutation", s.Name(), j)
					break
				}
			}
		}
		for _, other := range sets[:i] {
			if s.rows == other.rows || s.name == other.name {
				t.Errorf("the sets %s and %s have the same name or rows", s.Name(), other.Name())
			}
		}
	}
}

var meshings = map[string]Meshing{"none": NoMeshing, "CryptoPro": CryptoProMeshing}

func TestKnownStreams(t *testing.T) { eachImplementation(t, testKnownStreams) }

func testKnownStreams(t *testing.T) {
	type newStream = func(key, iv []byte, s *SBox, m Meshing) (cipher.Stream, error)
	for _, v := range gosttest.Vectors(t, testdata, "testdata/modes.txt") {
		modes := map[string][2]newStream{"CNT": {NewCNT, NewCNT}, "CFB": {NewCFBEncrypter, NewCFBDecrypter}}
		mode, ok := modes[v.Text(t, "Mode")]
		if !ok {
			t.Fatalf("line %d: unknown mode", v.Line)
		}
		plain, sealed := v.Bytes(t, "Plain"), v.Bytes(t, "Sealed")
		for i, c := range []struct{ from, to []byte }{{plain, sealed}, {sealed, plain}} {
			for _, piece := range []int{1, 7, 8, 13, 17, 24, 1032, 5000} {
				st, err := mode[i](v.Bytes(t, "Key"), v.Bytes(t, "IV"), setOf(t, v), meshings[v.Text(t, "Meshing")])
				if err != nil {
					t.Fatal(err)
				}
				got := bytes.Clone(c.from)
				for part := range slices.Chunk(got, piece) {
					st.XORKeyStream(part, part)
				}
				if !bytes.Equal(got, c.to) {
					t.Errorf("line %d, direction %d, in pieces of %d bytes: wrong result", v.Line, i, piece)
				}
			}
		}
	}
}

// TestEncryptBlocks compares EncryptBlocks with Encrypt.
func TestEncryptBlocks(t *testing.T) { eachImplementation(t, testEncryptBlocks) }

func testEncryptBlocks(t *testing.T) {
	r := rand.NewChaCha8([32]byte{1})
	key := make([]byte, KeySize)
	for i, s := range sets {
		r.Read(key)
		b, err := newBlock(key, s)
		if err != nil {
			t.Fatal(err)
		}
		for n := i; n < 300; n += len(sets) {
			src := make([]byte, n*BlockSize)
			r.Read(src)
			want := make([]byte, len(src))
			for i := 0; i < len(src); i += BlockSize {
				b.Encrypt(want[i:], src[i:])
			}
			got := append(make([]byte, len(src)), 0xa5)
			if b.EncryptBlocks(got, src); !bytes.Equal(got, append(want, 0xa5)) {
				t.Fatalf("%s: EncryptBlocks of %d blocks differs from Encrypt", s.Name(), n)
			}
			if b.EncryptBlocks(src, src); !bytes.Equal(src, want) {
				t.Fatalf("%s: EncryptBlocks of %d blocks in place differs from Encrypt", s.Name(), n)
			}
		}
	}
	// The carry of key plus half must not reach the neighbouring word.
	b, _ := newBlock(bytes.Repeat([]byte{0xff}, KeySize), SBoxZ)
	src := bytes.Repeat([]byte{0xff}, 18*BlockSize)
	got, want := make([]byte, len(src)), make([]byte, BlockSize)
	b.EncryptBlocks(got, src)
	b.Encrypt(want, src)
	if !bytes.Equal(got, bytes.Repeat(want, 18)) {
		t.Errorf("18 equal blocks of ones give %x, want 18 times %x", got, want)
	}
	for name, f := range map[string]func(){
		"a part of a block": func() { b.EncryptBlocks(make([]byte, 16), make([]byte, 9)) },
		"a short output":    func() { b.EncryptBlocks(make([]byte, 15), make([]byte, 16)) },
	} {
		if recovered(f) == nil {
			t.Errorf("EncryptBlocks accepts %s", name)
		}
	}
}

// TestFeedback enciphers in parts of all lengths, in place too, and compares with one byte at a time, which enciphers
// each block by itself.
func TestFeedback(t *testing.T) { eachImplementation(t, testFeedback) }

func testFeedback(t *testing.T) {
	r := rand.NewChaCha8([32]byte{2})
	key, iv, src := make([]byte, KeySize), make([]byte, BlockSize), make([]byte, 5000)
	for i, s := range sets {
		for _, ones := range []bool{false, true} {
			r.Read(key)
			r.Read(iv)
			r.Read(src)
			if ones { // the carry of key plus half must not reach the other half
				key, iv = bytes.Repeat([]byte{0xff}, KeySize), bytes.Repeat([]byte{0xff}, BlockSize)
			}
			m := Meshing((i + 1) % 2)
			bytewise, err := NewCFBEncrypter(key, iv, s, m)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]byte, len(src))
			for j := range src {
				bytewise.XORKeyStream(want[j:], src[j:j+1])
			}
			parts, err := NewCFBEncrypter(key, iv, s, m)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(src))
			for at, n := 0, i; at < len(src); at, n = at+n, n*3%1999+1 {
				n = min(n, len(src)-at)
				if n%2 == 0 {
					parts.XORKeyStream(got[at:], src[at:at+n])
					continue
				}
				copy(got[at:], src[at:at+n])
				parts.XORKeyStream(got[at:at+n], got[at:at+n])
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%s, meshing %d: parts differ from bytes", s.Name(), m)
			}
		}
	}
}

func recovered(f func()) (message any) {
	defer func() { message = recover() }()
	f()
	return nil
}

// TestCount checks the counter next to both moduli.
func TestCount(t *testing.T) {
	for _, c := range []struct{ x, want uint64 }{
		{0, 0x01010104_01010101},
		{0x00000000_ffffffff, 0x01010104_01010100}, // the low half wraps without a carry
		{0xfefefefb_00000000, 0xffffffff_01010101}, // 2^32-1 stays
		{0xfefefefc_00000000, 0x00000001_01010101}, // 2^32 is 1
		{0xffffffff_fefefeff, 0x01010104_00000000},
	} {
		if got := count(c.x); got != c.want {
			t.Errorf("count(%016x) = %016x, want %016x", c.x, got, c.want)
		}
	}
}

func TestMACKnownAnswers(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/mac.txt") {
		want := v.Bytes(t, "MAC")
		got, err := MAC(v.Bytes(t, "Key"), make([]byte, BlockSize), v.Bytes(t, "Message"), setOf(t, v))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != MACSize || !bytes.Equal(got[:len(want)], want) {
			t.Errorf("line %d: %x, want %x", v.Line, got, want)
		}
	}
}

func TestWrapKnownAnswers(t *testing.T) {
	type wrapper struct {
		wrap   func(kek, ukm, cek []byte, s *SBox) ([]byte, error)
		unwrap func(kek, wrapped []byte, s *SBox) ([]byte, error)
	}
	algorithms := map[string]wrapper{"GOST": {Wrap, Unwrap}, "CryptoPro": {WrapCryptoPro, UnwrapCryptoPro}}
	for _, v := range gosttest.Vectors(t, testdata, "testdata/wrap.txt") {
		a, ok := algorithms[v.Text(t, "Algorithm")]
		if !ok {
			t.Fatalf("line %d: unknown algorithm", v.Line)
		}
		s, kek, ukm, cek, want := setOf(t, v), v.Bytes(t, "KEK"), v.Bytes(t, "UKM"), v.Bytes(t, "CEK"), v.Bytes(t, "Wrapped")
		got, err := a.wrap(kek, ukm, cek, s)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("line %d: wrapped %x, %v, want %x", v.Line, got, err, want)
		}
		back, err := a.unwrap(kek, want, s)
		if err != nil || !bytes.Equal(back, cek) {
			t.Errorf("line %d: unwrapped %x, %v, want %x", v.Line, back, err, cek)
		}

		long := append(bytes.Clone(cek), kek...)
		wrapped, err := a.wrap(kek, ukm, long, s)
		if err != nil || len(wrapped) != 76 {
			t.Fatalf("line %d: a wrapped key of 64 bytes has %d bytes, want 76: %v", v.Line, len(wrapped), err)
		}
		if back, err := a.unwrap(kek, wrapped, s); err != nil || !bytes.Equal(back, long) {
			t.Errorf("line %d: a key of 64 bytes is %x after a round trip, %v", v.Line, back, err)
		}

		for i := range want {
			damaged := bytes.Clone(want)
			damaged[i] ^= 0x10
			if back, err := a.unwrap(kek, damaged, s); !errors.Is(err, ErrUnwrap) || back != nil {
				t.Errorf("line %d: byte %d changed: %x, %v", v.Line, i, back, err)
			}
		}
		for n := range want {
			if _, err := a.unwrap(kek, want[:n], s); err == nil {
				t.Errorf("line %d: a wrapped key of only %d bytes is accepted", v.Line, n)
			}
		}
		for _, bad := range []struct{ kek, ukm, cek []byte }{
			{kek[:31], ukm, cek}, {kek, ukm[:7], cek}, {kek, append(ukm, 0), cek}, {kek, ukm, cek[:31]}, {kek, ukm, nil},
		} {
			if _, err := a.wrap(bad.kek, bad.ukm, bad.cek, s); err == nil {
				t.Errorf("line %d: wrapped with lengths %d, %d, %d", v.Line, len(bad.kek), len(bad.ukm), len(bad.cek))
			}
		}
	}
}

func TestWrongLengths(t *testing.T) {
	key, iv := make([]byte, KeySize), make([]byte, BlockSize)
	if _, err := NewCNT(key, iv[:7], SBoxA, NoMeshing); err == nil {
		t.Error("NewCNT accepts a short vector")
	}
	if _, err := NewCFBEncrypter(key[:31], iv, SBoxA, NoMeshing); err == nil {
		t.Error("NewCFBEncrypter accepts a short key")
	}
	if _, err := NewCFBDecrypter(key, iv, SBoxA, Meshing(2)); err == nil {
		t.Error("NewCFBDecrypter accepts an unknown meshing")
	}
	if _, err := MAC(key, iv, make([]byte, 8), SBoxA); err == nil {
		t.Error("MAC accepts a message of one block")
	}
	if _, err := MAC(key, iv[:7], make([]byte, 9), SBoxA); err == nil {
		t.Error("MAC accepts a short vector")
	}
}

func BenchmarkCipher(b *testing.B) {
	key, iv := make([]byte, KeySize), make([]byte, BlockSize)
	b.Run("block", func(b *testing.B) {
		c, _ := NewCipher(key, SBoxZ)
		b.SetBytes(BlockSize)
		for b.Loop() {
			c.Encrypt(iv, iv)
		}
	})
	b.Run("blocks/16KiB", func(b *testing.B) {
		c, _ := newBlock(key, SBoxZ)
		p := make([]byte, 16<<10)
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			c.EncryptBlocks(p, p)
		}
	})
	b.Run("CNT/1KiB", func(b *testing.B) {
		c, _ := NewCNT(key, iv, SBoxZ, NoMeshing)
		p := make([]byte, 1<<10)
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			c.XORKeyStream(p, p)
		}
	})
	b.Run("MAC/1KiB", func(b *testing.B) {
		p := make([]byte, 1<<10)
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			MAC(key, iv, p, SBoxZ)
		}
	})
	b.Run("WrapCryptoPro", func(b *testing.B) {
		for b.Loop() {
			WrapCryptoPro(key, iv, key, SBoxZ)
		}
	})
}
