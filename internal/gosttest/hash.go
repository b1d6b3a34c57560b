// SPDX-License-Identifier: Apache-2.0

package gosttest

import (
	"bytes"
	"encoding"
	"hash"
	"slices"
	"testing"
)

// Hash checks what every hash here must do, besides computing the right values:
//
//   - writes may be split anywhere;
//   - Sum does not change the hash, and Reset starts again;
//   - MarshalBinary, AppendBinary and Clone keep the state after any number of bytes;
//   - UnmarshalBinary refuses damaged states and does not change the hash then;
//   - Write, Sum and Reset do not allocate.
func Hash(t *testing.T, newHash func() hash.Hash) {
	t.Run("split writes", func(t *testing.T) { hashSplit(t, newHash) })
	t.Run("sum and reset", func(t *testing.T) { hashSumReset(t, newHash) })
	t.Run("state", func(t *testing.T) { hashState(t, newHash) })
	t.Run("damaged state", func(t *testing.T) { hashDamagedState(t, newHash) })
	t.Run("clone", func(t *testing.T) { hashClone(t, newHash) })
	t.Run("allocations", func(t *testing.T) { hashAllocations(t, newHash) })
}

// message returns n bytes that do not repeat after a short period.
func message(n int) []byte {
	m := make([]byte, n)
	x := uint32(1)
	for i := range m {
		x = x*1664525 + 1013904223
		m[i] = byte(x >> 24)
	}
	return m
}

func sumOf(h hash.Hash, parts ...[]byte) []byte {
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func hashSplit(t *testing.T, newHash func() hash.Hash) {
	block := newHash().BlockSize()
	for _, n := range []int{0, 1, block - 1, block, block + 1, 2 * block, 3*block + 5} {
		m := message(n)
		want := sumOf(newHash(), m)
		if len(want) != newHash().Size() {
			t.Fatalf("Sum has %d bytes, Size is %d", len(want), newHash().Size())
		}
		for i := range n + 1 {
			if got := sumOf(newHash(), m[:i], m[i:]); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes split at %d: %x, want %x", n, i, got, want)
			}
		}
		h := newHash()
		for i := range m {
			if c, err := h.Write(m[i : i+1]); c != 1 || err != nil {
				t.Fatalf("Write of one byte returned %d, %v", c, err)
			}
		}
		if got := h.Sum(nil); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes one by one: %x, want %x", n, got, want)
		}
	}
}

func hashSumReset(t *testing.T, newHash func() hash.Hash) {
	m := message(2*newHash().BlockSize() + 7)
	want := sumOf(newHash(), m)
	h := newHash()
	for i := range m {
		h.Sum(nil)
		h.Write(m[i : i+1])
	}
	if got := h.Sum([]byte("prefix")); !bytes.Equal(got, append([]byte("prefix"), want...)) {
		t.Errorf("Sum between the writes changed the result to %x, want %x", got, want)
	}
	h.Reset()
	if got, want := h.Sum(nil), newHash().Sum(nil); !bytes.Equal(got, want) {
		t.Errorf("Sum after Reset is %x, want %x", got, want)
	}
	if got := sumOf(h, m); !bytes.Equal(got, want) {
		t.Errorf("the same message after Reset gives %x, want %x", got, want)
	}
}

// marshaler is what every hash here implements besides hash.Hash.
type marshaler interface {
	encoding.BinaryMarshaler
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

func hashState(t *testing.T, newHash func() hash.Hash) {
	m := message(2*newHash().BlockSize() + 7)
	want := sumOf(newHash(), m)
	for i := range len(m) + 1 {
		h := newHash()
		h.Write(m[:i])
		state, err := h.(marshaler).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		appended, err := h.(marshaler).AppendBinary([]byte("prefix"))
		if err != nil || !bytes.Equal(appended, append([]byte("prefix"), state...)) {
			t.Fatalf("AppendBinary after %d bytes: %x, %v; want the prefix and %x", i, appended, err, state)
		}
		other := newHash()
		other.Write([]byte("something else"))
		if err := other.(marshaler).UnmarshalBinary(state); err != nil {
			t.Fatalf("state after %d bytes is refused: %v", i, err)
		}
		clear(state) // the hash must not keep the caller's slice
		if got := sumOf(other, m[i:]); !bytes.Equal(got, want) {
			t.Fatalf("continued from the state after %d bytes: %x, want %x", i, got, want)
		}
		if got := sumOf(h, m[i:]); !bytes.Equal(got, want) {
			t.Fatalf("marshaling after %d bytes changed the hash to %x, want %x", i, got, want)
		}
	}
}

func hashDamagedState(t *testing.T, newHash func() hash.Hash) {
	h := newHash()
	h.Write(message(h.BlockSize() + 3))
	want := h.Sum(nil)
	state, err := h.(marshaler).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what string, damaged []byte) {
		t.Helper()
		if err := h.(marshaler).UnmarshalBinary(damaged); err == nil {
			t.Errorf("%s: accepted", what)
		}
		if got := h.Sum(nil); !bytes.Equal(got, want) {
			t.Fatalf("%s: refused, but the hash changed", what)
		}
	}
	refuse("empty", nil)
	for n := range state {
		refuse("shortened", state[:n])
	}
	refuse("lengthened", append(slices.Clone(state), 0))
	for i := range 4 {
		damaged := slices.Clone(state)
		damaged[i] ^= 1
		refuse("magic or version changed", damaged)
	}
}

func hashClone(t *testing.T, newHash func() hash.Hash) {
	m := message(2*newHash().BlockSize() + 7)
	want := sumOf(newHash(), m)
	for i := range len(m) + 1 {
		h := newHash()
		h.Write(m[:i])
		c, err := h.(hash.Cloner).Clone()
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte("another"))
		if got := sumOf(h, m[i:]); !bytes.Equal(got, want) {
			t.Fatalf("writing to a clone made after %d bytes changed the original", i)
		}
		if got, want := c.Sum(nil), sumOf(newHash(), m[:i], []byte("another")); !bytes.Equal(got, want) {
			t.Fatalf("clone made after %d bytes: %x, want %x", i, got, want)
		}
	}
}

func hashAllocations(t *testing.T, newHash func() hash.Hash) {
	h := newHash()
	m := message(10*h.BlockSize() + 1)
	sum := make([]byte, 0, h.Size())
	n := testing.AllocsPerRun(10, func() {
		h.Write(m)
		h.Write(m[:3])
		h.Sum(sum)
		h.Reset()
	})
	if n != 0 {
		t.Errorf("Write, Sum and Reset allocate %v times, want never", n)
	}
}
