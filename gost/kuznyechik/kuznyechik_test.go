// SPDX-License-Identifier: Apache-2.0

package kuznyechik

import (
	"bytes"
	"embed"
	"encoding/hex"
	"testing"

	"tamga/internal/gosttest"
)

//go:embed testdata/*.txt
var testdata embed.FS

func TestKnownAnswers(t *testing.T) { eachImplementation(t, testKnownAnswers) }

func testKnownAnswers(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/rfc7801.txt") {
		c, err := NewCipher(v.Bytes(t, "Key"))
		if err != nil {
			t.Fatal(err)
		}
		plain, sealed := v.Bytes(t, "Plain"), v.Bytes(t, "Sealed")
		got := make([]byte, len(plain))
		for i := 0; i < len(plain); i += BlockSize {
			if c.Encrypt(got[i:], plain[i:]); !bytes.Equal(got[i:i+BlockSize], sealed[i:i+BlockSize]) {
				t.Errorf("line %d, byte %d: encrypted %x, want %x", v.Line, i, got[i:i+BlockSize], sealed[i:i+BlockSize])
			}
			if c.Decrypt(got[i:], sealed[i:]); !bytes.Equal(got[i:i+BlockSize], plain[i:i+BlockSize]) {
				t.Errorf("line %d, byte %d: decrypted %x, want %x", v.Line, i, got[i:i+BlockSize], plain[i:i+BlockSize])
			}
		}
		if c.(*block).EncryptBlocks(got, plain); !bytes.Equal(got, sealed) {
			t.Errorf("line %d: EncryptBlocks gives %x, want %x", v.Line, got, sealed)
		}
	}
}

func TestConformance(t *testing.T) {
	eachImplementation(t, func(t *testing.T) { gosttest.Block(t, NewCipher, KeySize) })
}

// TestEncryptBlocks compares EncryptBlocks, in place and not, with Encrypt for every
// number of blocks up to nine groups.
func TestEncryptBlocks(t *testing.T) { eachImplementation(t, testEncryptBlocks) }

func testEncryptBlocks(t *testing.T) {
	c, err := NewCipher([]byte("0123456789abcdef0123456789ABCDEF"))
	if err != nil {
		t.Fatal(err)
	}
	many := c.(*block)
	for n := range 37 {
		src := make([]byte, n*BlockSize)
		for i := range src {
			src[i] = byte(i * 7)
		}
		want := make([]byte, len(src))
		for i := 0; i < len(src); i += BlockSize {
			c.Encrypt(want[i:], src[i:])
		}
		got := append(make([]byte, len(src)), 0xa5)
		many.EncryptBlocks(got, src)
		if !bytes.Equal(got, append(want, 0xa5)) {
			t.Errorf("%d blocks: %x, want %x", n, got, want)
		}
		many.EncryptBlocks(src, src)
		if !bytes.Equal(src, want[:len(src)]) {
			t.Errorf("%d blocks in place: %x, want %x", n, src, want)
		}
	}
	for _, l := range [][2]int{{16, 15}, {15, 16}, {32, 17}, {16, 32}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("EncryptBlocks of %d bytes into %d: no panic", l[1], l[0])
				}
			}()
			many.EncryptBlocks(make([]byte, l[0]), make([]byte, l[1]))
		}()
	}
}

// pi is the substitution of RFC 7801, section 4.1.1.
const pi = "fceedd11cf6e3116fbc4fada23c5044de977f0db932e99ba1736f1bb14cd5fc1" +
	"f918655ae25cef21811c3c428b018e4f058402aee36a8fa0060bed987fd4d31f" +
	"eb342c51eac848abf22a68a2fd3aceccb5700e56080c7612bf7213479cb75d87" +
	"15a19629107b9ac7f391786f9d9eb2b13275193dff358a7e6d54c680c3bd0d57" +
	"dff524a93ea843c9d779d6f67c22b903e00fecde7a94b0bcdce828504e330a4a" +
	"a79760731e0062441ab83882649f2641ad454692275e552f8ca3a57d69d5953b" +
	"0758b34086ac1df730376be488d9e789e11b83494c3ff8fe8d53aa90cad88561" +
	"207167a42d2b095bcb9b25d0bee56c5259a674d2e6f4b4c0d166afc2394b63b6"

// TestSubstitution compares substitute and unsubstitute with the table, for all bytes
// at all places.
func TestSubstitution(t *testing.T) {
	table, err := hex.DecodeString(pi)
	if err != nil || len(table) != 256 {
		t.Fatal(len(table), err)
	}
	for i := range 256 {
		var group, want [groupSize]byte
		for j := range group {
			group[j] = byte(i + j)
			want[j] = table[group[j]]
		}
		start := group
		var x planes
		x.pack(&group)
		substitute(&x)
		if x.unpack(&group); group != want {
			t.Fatalf("%x becomes %x, want %x", start, group, want)
		}
		x.pack(&want)
		unsubstitute(&x)
		if x.unpack(&want); want != start {
			t.Fatalf("%x is %x after a round trip", start, want)
		}
	}
}

// TestLinear compares the map L on planes with the examples of RFC 7801, section
// 5.3.
func TestLinear(t *testing.T) {
	chain := []string{
		"64a59400000000000000000000000000",
		"d456584dd0e3e84cc3166e4b7fa2890d",
		"79d26221b87b584cd42fbc4ffea5de9a",
		"0e93691a0cfc60408b7b68f66b513c13",
		"e6a8094fee0aa204fd97bcb0b44b8580",
	}
	for i := range chain[:len(chain)-1] {
		from, _ := hex.DecodeString(chain[i])
		var group [groupSize]byte
		var x planes
		x.spread((*[BlockSize]byte)(from))
		x.multiply(forwards)
		y := x
		y.unpack(&group)
		for b := 0; b < groupSize; b += BlockSize {
			if got := hex.EncodeToString(group[b : b+BlockSize]); got != chain[i+1] {
				t.Errorf("L(%s) = %s, want %s", chain[i], got, chain[i+1])
			}
		}
		x.multiply(backwards)
		x.unpack(&group)
		if got := hex.EncodeToString(group[:BlockSize]); got != chain[i] {
			t.Errorf("the inverse of L gives %s, want %s", got, chain[i])
		}
	}
}

func BenchmarkKuznyechik(b *testing.B) {
	key := make([]byte, KeySize)
	c, _ := NewCipher(key)
	b.Run("NewCipher", func(b *testing.B) {
		for b.Loop() {
			NewCipher(key)
		}
	})
	one := make([]byte, BlockSize)
	b.Run("Encrypt", func(b *testing.B) {
		b.SetBytes(BlockSize)
		for b.Loop() {
			c.Encrypt(one, one)
		}
	})
	b.Run("Decrypt", func(b *testing.B) {
		b.SetBytes(BlockSize)
		for b.Loop() {
			c.Decrypt(one, one)
		}
	})
	b.Run("EncryptBlocks/1KiB", func(b *testing.B) {
		p := make([]byte, 1<<10)
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			c.(*block).EncryptBlocks(p, p)
		}
	})
}
