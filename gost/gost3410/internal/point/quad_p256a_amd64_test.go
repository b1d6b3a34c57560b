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

// TestQuadsP256A compares formulas that have the coordinates in lanes with those on
// single numbers. The numbers need not be points. Some limbs are at their bounds, which
// no number below the prime has. Results are used as operands again and stored over
// operands.
func TestQuadsP256A(t *testing.T) {
	if !impl.IFMA {
		t.Log("the processor lacks AVX-512 IFMA: there is nothing to compare")
		return
	}
	r := rand.New(rand.NewChaCha8([32]byte{9}))
	quad := func() (q quadP256A) {
		for i := range q {
			top := uint64(1)<<52 - 1
			if i == limbsP256A-1 {
				top = highP256A - 1
			}
			for l := range q[i] {
				switch r.IntN(4) {
				case 0:
				case 1:
					q[i][l] = top - uint64(r.IntN(2))*618
				case 2:
					q[i][l] = min(top, uint64(r.IntN(1300)))
				default:
					q[i][l] = r.Uint64() % (top + 1)
				}
			}
		}
		return q
	}
	same := func(op string, got *quadP256A, want edExtendedP256A) {
		t.Helper()
		for i := range got {
			for l := range got[i] {
				if got[i][l] > mask52 || i == len(got)-1 && got[i][l] >= highP256A {
					t.Fatalf("%s: limb %d of lane %d is %x, out of bounds", op, i, l, got[i][l])
				}
			}
		}
		g := got.extended()
		for _, c := range [][2]field.P256A{{g.u, want.u}, {g.v, want.v}, {g.z, want.z}, {g.t, want.t}} {
			if c[0].Limbs() != c[1].Limbs() {
				t.Fatalf("%s: got %v, want %v", op, g, want)
			}
		}
	}
	rounds := 5000
	if testsize.Of() < testsize.Whole {
		rounds = 500
	}
	for range rounds {
		p, q := quad(), quad()
		for range 3 {
			a, b := p.extended(), q.extended()
			var z quadP256A
			var want edExtendedP256A
			ifmaQuadMulP256A(&z, &p, &q)
			want.u.Mul(&a.u, &b.u)
			want.v.Mul(&a.v, &b.v)
			want.z.Mul(&a.z, &b.z)
			want.t.Mul(&a.t, &b.t)
			same("mul", &z, want)

			addEdwardsP256A(&want, &a, &edCachedP256A{b.u, b.v, b.z, b.t})
			ifmaQuadAddP256A(&z, &p, &q)
			same("add", &z, want)
			z = p
			ifmaQuadAddP256A(&z, &z, &q)
			same("add over the first", &z, want)
			z = q
			ifmaQuadAddP256A(&z, &p, &z)
			same("add over the second", &z, want)

			want = a
			for n := 1; n <= 3; n++ {
				doubleEdwardsP256A(&want, &want)
				ifmaQuadDoubleP256A(&z, &p, n)
				same("double", &z, want)
			}
			q = p
			ifmaQuadDoubleP256A(&p, &p, 3)
			same("double over it", &p, want)
		}
	}
}

// TestQuadPickP256A tests every entry of tables of several sizes, and the opposite of
// each entry.
func TestQuadPickP256A(t *testing.T) {
	if !impl.IFMA {
		t.Log("the processor lacks AVX-512 IFMA: there is nothing to compare")
		return
	}
	var table [16]quadP256A
	r := rand.New(rand.NewChaCha8([32]byte{10}))
	for i := range table {
		for l := range 4 {
			var x field.P256A
			for j := range x {
				x[j] = r.Uint64()
			}
			table[i].set(l, &x)
		}
	}
	for _, n := range []int{1, 3, 16} {
		for index := range n {
			var z quadP256A
			ifmaQuadPickP256A(&z, &table[0], n, uint64(index), 0)
			if z != table[index] {
				t.Fatalf("entry %d of %d: got %x, want %x", index, n, z, table[index])
			}
			ifmaQuadPickP256A(&z, &table[0], n, uint64(index), ^uint64(0))
			for l := range 4 {
				got, want := z.get(l), table[index].get(l)
				if l == 0 || l == 3 {
					want.Sub(new(field.P256A), &want)
				}
				if got.Limbs() != want.Limbs() {
					t.Fatalf("lane %d of the opposite of entry %d of %d: got %x, want %x", l, index, n, got, want)
				}
			}
		}
	}
}
