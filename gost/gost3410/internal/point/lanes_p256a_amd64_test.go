// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"math/rand/v2"
	"testing"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
	"tamga/internal/testsize"
)

// TestLaneOperationsP256A compares operations in lanes with those on single numbers.
// Some limbs are at their bounds, which no number below the prime has. Results are used
// as operands again.
func TestLaneOperationsP256A(t *testing.T) {
	if !impl.IFMA {
		t.Log("the processor lacks AVX-512 IFMA: there is nothing to compare")
		return
	}
	r := rand.New(rand.NewChaCha8([32]byte{7}))
	limb := func(i int) uint64 {
		top := uint64(1)<<52 - 1
		if i == limbsP256A-1 {
			top = highP256A - 1
		}
		switch r.IntN(4) {
		case 0:
			return 0
		case 1:
			return top - uint64(r.IntN(2))*618
		case 2:
			return min(top, uint64(r.IntN(1300)))
		}
		return r.Uint64() % (top + 1)
	}
	same := func(op string, got *laneP256A, want func(z *field.P256A, lane int)) {
		t.Helper()
		for l := range lanes {
			for i := range got {
				if got[i][l] > mask52 || i == len(got)-1 && got[i][l] >= highP256A {
					t.Fatalf("%s: limb %d of lane %d is %x, out of bounds", op, i, l, got[i][l])
				}
			}
			var w field.P256A
			want(&w, l)
			g := got.get(l)
			if g.Limbs() != w.Limbs() {
				t.Fatalf("%s, lane %d: got %x, want %x", op, l, g.Limbs(), w.Limbs())
			}
		}
	}
	rounds := 20000
	if testsize.Of() < testsize.Whole {
		rounds = 2000
	}
	for range rounds {
		var x, y, z laneP256A
		for i := range x {
			for l := range lanes {
				x[i][l], y[i][l] = limb(i), limb(i)
			}
		}
		for range 3 {
			ifmaMulP256A(&z, &x, &y)
			same("mul", &z, func(w *field.P256A, l int) { a, b := x.get(l), y.get(l); w.Mul(&a, &b) })
			ifmaSqrP256A(&z, &x)
			same("sqr", &z, func(w *field.P256A, l int) { a := x.get(l); w.Sqr(&a) })
			ifmaSubP256A(&z, &x, &y)
			same("sub", &z, func(w *field.P256A, l int) { a, b := x.get(l), y.get(l); w.Sub(&a, &b) })
			ifmaAddP256A(&z, &x, &y)
			same("add", &z, func(w *field.P256A, l int) { a, b := x.get(l), y.get(l); w.Add(&a, &b) })
			negated := x
			masks := [lanes]uint64{1: ^uint64(0), 2: ^uint64(0), 7: ^uint64(0)}
			ifmaNegateP256A(&negated, &masks)
			same("negate", &negated, func(w *field.P256A, l int) {
				if *w = x.get(l); masks[l] != 0 {
					w.Sub(new(field.P256A), w)
				}
			})
			v := x
			ifmaMulP256A(&v, &v, &v)
			same("mul over operands", &v, func(w *field.P256A, l int) { a := x.get(l); w.Sqr(&a) })
			x, y = z, v
		}
	}
}

// TestEntryP256A tests every index in every lane.
func TestEntryP256A(t *testing.T) {
	if !impl.IFMA {
		t.Log("the processor lacks AVX-512 IFMA: there is nothing to compare")
		return
	}
	var table [2 * limbsP256A]rowP256A
	r := rand.New(rand.NewChaCha8([32]byte{9}))
	for i := range table {
		for j := range table[i] {
			table[i][j] = r.Uint64() & mask52
		}
	}
	for first := range 1 << (baseBits - 1) {
		var index [lanes]uint64
		for l := range index {
			index[l] = uint64(first+5*l) % uint64(len(rowP256A{}))
		}
		var z laneP256A
		ifmaEntryP256A(&z, &table[limbsP256A], &index)
		for l := range lanes {
			for i := range z {
				if want := table[limbsP256A+i][index[l]]; z[i][l] != want {
					t.Fatalf("limb %d of lane %d, index %d: got %x, want %x", i, l, index[l], z[i][l], want)
				}
			}
		}
	}
}

// TestSpreadP256A tests every index in every lane, and lanes without a table.
func TestSpreadP256A(t *testing.T) {
	if !impl.IFMA {
		t.Log("the processor lacks AVX-512 IFMA: there is nothing to compare")
		return
	}
	var tables [lanes][2 * limbsP256A]rowP256A
	r := rand.New(rand.NewChaCha8([32]byte{8}))
	for l := range tables {
		for i := range tables[l] {
			for j := range tables[l][i] {
				tables[l][i][j] = r.Uint64() & mask52
			}
		}
	}
	for n := 1; n <= lanes; n++ {
		for first := range 1 << (baseBits - 1) {
			var index [lanes]uint64
			for l := range index {
				index[l] = uint64(first+5*l) % uint64(len(rowP256A{}))
			}
			z := laneP256A{{9, 9, 9, 9, 9, 9, 9, 9}}
			ifmaSpreadP256A(&z, &tables[0][limbsP256A], len(tables[0])*len(rowP256A{})*8, n, &index)
			for l := range lanes {
				for i := range z {
					want := tables[l][limbsP256A+i][index[l]]
					if l >= n {
						want = 0
					}
					if z[i][l] != want {
						t.Fatalf("limb %d of lane %d of %d, index %d: got %x, want %x", i, l, n, index[l], z[i][l], want)
					}
				}
			}
		}
	}
}
