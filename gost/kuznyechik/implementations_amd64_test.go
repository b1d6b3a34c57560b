// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package kuznyechik

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"
)

// eachImplementation runs f with every implementation that the processor supports.
func eachImplementation(t *testing.T, f func(t *testing.T)) {
	defer func(v bool) { vectorized = v }(vectorized)
	if vectorized {
		t.Run("avx512", f)
	} else {
		t.Log("the processor lacks AVX-512 with VBMI and GFNI: only the portable implementation is tested")
	}
	vectorized = false
	t.Run("portable", f)
}

func FuzzImplementations(f *testing.F) {
	if !vectorized {
		f.Skip("the processor lacks AVX-512 with VBMI and GFNI: there is only one implementation")
	}
	for _, n := range []int{0, 1, 3, 4, 5, 16, 23} {
		f.Add(make([]byte, KeySize), make([]byte, n*BlockSize))
	}
	f.Fuzz(func(t *testing.T, key, data []byte) {
		if len(key) != KeySize {
			return
		}
		compareImplementations(t, key, data[:len(data)&^(BlockSize-1)])
	})
}

// compareImplementations compares round keys, single blocks and many blocks of the
// implementations.
func compareImplementations(t *testing.T, key, src []byte) {
	t.Helper()
	var fast, plain block
	fast.expand((*[KeySize]byte)(key))
	plain.expandGeneric((*[KeySize]byte)(key))
	if fast.keys != plain.keys {
		t.Fatalf("key %x: the round keys differ", key)
	}
	got, want := make([]byte, len(src)), make([]byte, len(src))
	fast.EncryptBlocks(got, src)
	plain.EncryptBlocks(want, src)
	if !bytes.Equal(got, want) {
		t.Fatalf("key %x, blocks %x: %x, want %x", key, src, got, want)
	}
	if len(src) > 0 {
		if fast.Encrypt(got, src); !bytes.Equal(got[:BlockSize], want[:BlockSize]) {
			t.Fatalf("key %x, block %x: %x, want %x", key, src[:BlockSize], got[:BlockSize], want[:BlockSize])
		}
	}
}

// TestImplementations does what FuzzImplementations does, on a number of keys that a test has time for and
// on one message that needs several calls of the assembly.
func TestImplementations(t *testing.T) {
	if !vectorized {
		t.Skip("the processor lacks AVX-512 with VBMI and GFNI: there is only one implementation")
	}
	r := rand.New(rand.NewPCG(5, 6))
	key := make([]byte, KeySize)
	for i := range 200 {
		n := r.IntN(40)
		if i == 0 {
			n = longest/BlockSize + 7
		}
		src := make([]byte, n*BlockSize)
		for _, p := range [][]byte{key, src} {
			for j := range p {
				p[j] = byte(r.Uint32())
			}
		}
		compareImplementations(t, key, src)
	}
}

// TestIsomorphism checks that phi is an isomorphism, and it compares the substitution
// under phi with the table of the standard.
func TestIsomorphism(t *testing.T) {
	phi, inverse := isomorphism()
	for x := range 256 {
		x := byte(x)
		if inverse[phi[x]] != x {
			t.Fatalf("inverse(phi(%#[1]x)) is not %#[1]x", x)
		}
		for y := range 256 {
			y := byte(y)
			if phi[x^y] != phi[x]^phi[y] {
				t.Fatalf("phi(%#x+%#x) is not the sum", x, y)
			}
			if phi[mul(x, y)] != mulAES(phi[x], phi[y]) {
				t.Fatalf("phi(%#x*%#x) is not the product", x, y)
			}
		}
	}
	table, err := hex.DecodeString(pi)
	if err != nil || len(table) != 256 {
		t.Fatal(len(table), err)
	}
	v := makeVectors()
	for x, want := range table {
		if got := v.sbox[phi[x]/groupSize][phi[x]%groupSize]; got != phi[want] {
			t.Fatalf("S(%#x) is %#x, want %#x", x, inverse[got], want)
		}
	}
}
