// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package mode

import (
	"bytes"
	"testing"
)

// eachImplementation runs f with every implementation that the processor supports.
func eachImplementation(t *testing.T, f func(t *testing.T)) {
	defer func(v bool) { vectorized = v }(vectorized)
	if vectorized {
		t.Run("VPCLMULQDQ", f)
	} else {
		t.Log("the processor lacks AVX-512 with VPCLMULQDQ: only the portable implementation is tested")
	}
	vectorized = false
	t.Run("portable", f)
}

// compareImplementations compares the implementations of the sum of products of a and b, which
// must have the same length.
func compareImplementations(t *testing.T, start element, a, b []byte) {
	t.Helper()
	got, want := start, start
	got.addProducts(a, b)
	if want.addProductsGeneric(a, b); got != want {
		t.Fatalf("%x with products of %x and %x: %x, want %x", start, a, b, got, want)
	}
}

func TestProducts(t *testing.T) {
	// Every pair of single coefficients, so that every reduction of a power of x above
	// x^127 is covered, and sums of up to nine blocks of ones.
	for i := range 128 {
		var a, b [blockSize]byte
		a[i/8] = 0x80 >> (i % 8)
		for j := range 128 {
			clear(b[:])
			b[j/8] = 0x80 >> (j % 8)
			compareImplementations(t, element{uint64(i), uint64(j)}, a[:], b[:])
		}
	}
	for n := range 10 {
		ones := bytes.Repeat([]byte{0xff}, n*blockSize)
		compareImplementations(t, element{}, ones, ones)
	}
}

func FuzzImplementations(f *testing.F) {
	if !vectorized {
		f.Skip("the processor lacks AVX-512 with VPCLMULQDQ: there is only one implementation")
	}
	for n := range 6 {
		f.Add(uint64(n), uint64(1)<<63, bytes.Repeat([]byte{0x80, 1, byte(n)}, 11*n))
	}
	f.Fuzz(func(t *testing.T, hi, lo uint64, data []byte) {
		n := len(data) / 2 / blockSize * blockSize
		compareImplementations(t, element{hi, lo}, data[:n], data[n:2*n])
	})
}
