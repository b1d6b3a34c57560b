// SPDX-License-Identifier: Apache-2.0

package gost341194

import (
	"bytes"
	"embed"
	"encoding/binary"
	"hash"
	"testing"

	"tamga/gost/gost28147"
	"tamga/internal/gosttest"
)

//go:embed testdata/*.txt
var testdata embed.FS

func TestKnownAnswers(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/rfc5831.txt") {
		for _, c := range []struct {
			field string
			new   func() hash.Hash
		}{{"Test", NewTest}, {"CryptoPro", NewCryptoPro}} {
			if !v.Has(c.field) {
				continue
			}
			h := c.new()
			h.Write(v.Bytes(t, "Message"))
			if got, want := h.Sum(nil), v.Bytes(t, c.field); !bytes.Equal(got, want) {
				t.Errorf("line %d, %s: %x, want %x", v.Line, c.field, got, want)
			}
		}
	}
}

func TestConformance(t *testing.T) {
	t.Run("CryptoPro", func(t *testing.T) { gosttest.Hash(t, NewCryptoPro) })
	t.Run("test", func(t *testing.T) { gosttest.Hash(t, NewTest) })
}

// TestPsi compares four and psi61 with repeated calls of psi.
func TestPsi(t *testing.T) {
	x := [4]uint64{0x0123456789abcdef, 0xfedcba9876543210, 0x0f1e2d3c4b5a6978, 0x8796a5b4c3d2e1f0}
	for range 100 {
		want := x
		for i := range 61 {
			want[0], want[1], want[2], want[3] = psi(want[0], want[1], want[2], want[3])
			if got := four(x[0], x[1], x[3]); i == 3 && got != want[3] {
				t.Fatalf("four: %x, want %x", got, want[3])
			}
		}
		if x = psi61(x[0], x[1], x[2], x[3]); x != want {
			t.Fatalf("psi61: %x, want %x", x, want)
		}
	}
}

func TestCarry(t *testing.T) {
	s := state{sigma: [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), 7}}
	block := make([]byte, BlockSize)
	block[0] = 1
	blocks(&s, gost28147.SBoxTest.PublicTable(), block)
	if want := [4]uint64{3: 8}; s.sigma != want {
		t.Errorf("carry through the sum: %x, want %x", s.sigma, want)
	}
}

// TestImpossibleStates checks that UnmarshalBinary refuses states that no message can
// have.
func TestImpossibleStates(t *testing.T) {
	start, err := NewTest().(*digest).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	const length, h, sigma, buf = 4, 12, 12 + 32, 12 + 64
	for _, c := range []struct {
		name   string
		damage func(b []byte)
	}{
		{"bytes after the buffered ones", func(b []byte) { b[buf+31] = 1 }},
		{"bytes in an empty buffer", func(b []byte) { b[buf] = 1; binary.LittleEndian.PutUint64(b[length:], 64) }},
		{"no block, but a chaining value", func(b []byte) { b[h] = 1 }},
		{"no block, but a sum", func(b []byte) { b[sigma] = 1 }},
		{"another parameter set with a name of the same length", func(b []byte) { b[len(b)-1]++ }},
	} {
		b := bytes.Clone(start)
		c.damage(b)
		if err := NewTest().(*digest).UnmarshalBinary(b); err == nil {
			t.Errorf("%s: accepted", c.name)
		}
	}
	if err := NewCryptoPro().(*digest).UnmarshalBinary(start); err == nil {
		t.Error("the state of the test set is accepted by the CryptoPro set")
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, n := range []int{0, 1, 31, 32, 100} {
		d := &digest{sbox: gost28147.SBoxTest}
		d.Write(make([]byte, n))
		b, _ := d.MarshalBinary()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &digest{sbox: gost28147.SBoxTest}
		if err := d.UnmarshalBinary(b); err != nil {
			if *d != (digest{sbox: gost28147.SBoxTest}) {
				t.Fatal("a refused state changed the hash")
			}
			return
		}
		back, err := d.MarshalBinary()
		if err != nil || !bytes.Equal(back, b) {
			t.Fatalf("accepted %x, marshals to %x, %v", b, back, err)
		}
		d.Write(make([]byte, 100))
		d.Sum(nil)
	})
}
