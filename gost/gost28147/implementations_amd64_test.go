// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package gost28147

import (
	"bytes"
	"testing"
)

// eachImplementation runs f with every implementation that the processor supports.
func eachImplementation(t *testing.T, f func(t *testing.T)) {
	defer func(v bool) { vectorized = v }(vectorized)
	if vectorized {
		t.Run("avx512", f)
	} else {
		t.Log("the processor lacks AVX-512 with VBMI: only the portable implementation is tested")
	}
	vectorized = false
	t.Run("portable", f)
}

func FuzzImplementations(f *testing.F) {
	if !vectorized {
		f.Skip("the processor lacks AVX-512 with VBMI: there is only one implementation")
	}
	for _, n := range []int{0, 1, 3, 4, 15, 16, 17, 128, 145} {
		f.Add(byte(n), make([]byte, KeySize), make([]byte, n*BlockSize))
	}
	f.Fuzz(func(t *testing.T, set byte, key, data []byte) {
		if len(key) != KeySize {
			return
		}
		b, err := newBlock(key, sets[int(set)%len(sets)])
		if err != nil {
			t.Fatal(err)
		}
		data = data[:len(data)/BlockSize*BlockSize]
		got, want := make([]byte, len(data)), make([]byte, len(data))
		b.EncryptBlocks(got, data)
		b.encryptPairs(want, data)
		if !bytes.Equal(got, want) {
			t.Fatalf("%s, key %x, blocks %x: %x, want %x", b.s.Name(), key, data, got, want)
		}
	})
}
