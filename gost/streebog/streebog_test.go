// SPDX-License-Identifier: Apache-2.0

package streebog

import (
	"bytes"
	"embed"
	"encoding/binary"
	"hash"
	"math"
	"testing"

	"tamga/internal/gosttest"
)

//go:embed testdata/*.txt
var testdata embed.FS

func TestKnownAnswers(t *testing.T) { eachImplementation(t, testKnownAnswers) }

func testKnownAnswers(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/rfc6986.txt") {
		m := v.Bytes(t, "Message")
		for _, c := range []struct {
			field string
			new   func() hash.Hash
			sum   func([]byte) []byte
		}{
			{"H256", New256, func(m []byte) []byte { s := Sum256(m); return s[:] }},
			{"H512", New512, func(m []byte) []byte { s := Sum512(m); return s[:] }},
		} {
			if !v.Has(c.field) {
				continue
			}
			want := v.Bytes(t, c.field)
			h := c.new()
			h.Write(m)
			if got := h.Sum(nil); !bytes.Equal(got, want) {
				t.Errorf("line %d, %s: %x, want %x", v.Line, c.field, got, want)
			}
			if got := c.sum(m); !bytes.Equal(got, want) {
				t.Errorf("line %d, %s in one call: %x, want %x", v.Line, c.field, got, want)
			}
		}
	}
}

func TestConformance(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		t.Run("256", func(t *testing.T) { gosttest.Hash(t, New256) })
		t.Run("512", func(t *testing.T) { gosttest.Hash(t, New512) })
	})
}

// TestCarry covers carries through every word of the bit count and of the sum. Short
// messages do not reach them.
func TestCarry(t *testing.T) {
	var n [8]uint64
	for i := range n {
		n[i] = ^uint64(0)
	}
	n[7] = 5
	addWord(&n, 1)
	if want := [8]uint64{7: 6}; n != want {
		t.Errorf("carry through the bit count: %x, want %x", n, want)
	}

	eachImplementation(t, func(t *testing.T) {
		s := state{n: [8]uint64{0: math.MaxUint64 - 511}, sigma: [8]uint64{0: 1 << 63}}
		for i := 1; i < 7; i++ {
			s.n[i] = math.MaxUint64
		}
		two, other := s, s
		var block [BlockSize]byte
		for i := 7; i < 56; i++ {
			block[i] = 0xff
		}
		block[7] = 0x80
		blocks(&s, block[:])
		want := [8]uint64{7: 1}
		if s.sigma != want || s.n != want {
			t.Errorf("carry through sum and bit count: %x, %x, want %x", s.sigma, s.n, want)
		}
		blocksTwo(&two, &other, block[:], block[:])
		if two != s || other != s {
			t.Errorf("carry in two at once: %x, %x, want %x", two, other, s)
		}
	})
}

// TestImpossibleStates checks that UnmarshalBinary refuses states that no message can
// have.
func TestImpossibleStates(t *testing.T) {
	start, err := newDigest(Size256).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	const h, n, sigma, buf = 6, 6 + 64, 6 + 128, 6 + 192
	for _, c := range []struct {
		name   string
		damage func(b []byte)
	}{
		{"other result size", func(b []byte) { b[4] = Size512 }},
		{"unknown result size", func(b []byte) { b[4] = 33 }},
		{"full buffer", func(b []byte) { b[5] = BlockSize }},
		{"overfull buffer", func(b []byte) { b[5] = 255 }},
		{"bytes after the buffered ones", func(b []byte) { b[buf+63] = 1 }},
		{"bit count of a part of a block", func(b []byte) { binary.LittleEndian.PutUint64(b[n:], 8) }},
		{"no block, but another chaining value", func(b []byte) { b[h] ^= 1 }},
		{"no block, but a sum", func(b []byte) { b[sigma] ^= 1 }},
	} {
		b := bytes.Clone(start)
		c.damage(b)
		if err := newDigest(Size256).UnmarshalBinary(b); err == nil {
			t.Errorf("%s: accepted", c.name)
		}
	}
	if err := newDigest(Size512).UnmarshalBinary(start); err == nil {
		t.Error("the state of a 256-bit hash is accepted by a 512-bit hash")
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, n := range []int{0, 1, 63, 64, 200} {
		d := newDigest(Size256)
		d.Write(make([]byte, n))
		b, _ := d.MarshalBinary()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDigest(Size256)
		if err := d.UnmarshalBinary(b); err != nil {
			if *d != *newDigest(Size256) {
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
