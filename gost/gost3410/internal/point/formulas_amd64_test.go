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

// TestFormulaImplementations compares the formulas in assembly with those in Go. It uses numbers
// that need not be points, limbs at their bounds, and results stored over operands.
func TestFormulaImplementations(t *testing.T) {
	if !impl.MULX {
		return // the Go code would be compared with itself
	}
	r := rand.New(rand.NewChaCha8([32]byte{3}))
	word := func() uint64 {
		switch r.IntN(4) {
		case 0:
			return 0
		case 1:
			return ^uint64(0) - uint64(r.IntN(2))*uint64(r.IntN(8000))
		case 2:
			return 1<<63 - uint64(r.IntN(2))
		}
		return r.Uint64()
	}
	four := func() (z [4]uint64) {
		for i := range z {
			z[i] = word()
		}
		return z
	}
	eight := func() (z [8]uint64) {
		for i := range z {
			z[i] = word()
		}
		return z
	}
	below := func() (z field.P256C) { // values in Montgomery form are below the prime
		for z = four(); z[3] >= 0x9B9F605F5A858107; z[3] = word() {
		}
		return z
	}
	rounds := 3000
	if testsize.Of() < testsize.Whole {
		rounds = 300
	}
	for range rounds {
		a := jacobianP256A{four(), four(), four()}
		compareFormulas(t, "P256A", a, affineP256A{four(), four()}, chordP256A, mulxChordP256A, tangentP256A, mulxTangentP256A)
		b := jacobianP256B{four(), four(), four()}
		compareFormulas(t, "P256B", b, affineP256B{four(), four()}, chordP256B, mulxChordP256B, tangentP256B, mulxTangentP256B)
		c := jacobianP256C{below(), below(), below()}
		compareFormulas(t, "P256C", c, affineP256C{below(), below()}, chordP256C, mulxChordP256C, tangentP256C, mulxTangentP256C)
		d := jacobianP512A{eight(), eight(), eight()}
		compareFormulas(t, "P512A", d, affineP512A{eight(), eight()}, chordP512A, mulxChordP512A, tangentP512A, mulxTangentP512A)
		e := jacobianP512B{eight(), eight(), eight()}
		compareFormulas(t, "P512B", e, affineP512B{eight(), eight()}, chordP512B, mulxChordP512B, tangentP512B, mulxTangentP512B)

		f := edExtendedP256A{four(), four(), four(), four()}
		compareFormulas(t, "Edwards P256A, mixed", f, edAffineP256A{four(), four(), four()}, addEdMixedP256A, mulxEdMixedP256A, doubleEdwardsP256A, mulxEdDoubleP256A)
		compareFormulas(t, "Edwards P256A", f, edCachedP256A{four(), four(), four(), four()}, addEdwardsP256A, mulxEdAddP256A, doubleEdwardsP256A, mulxEdDoubleP256A)
		compareFormulas(t, "Edwards P256A, without t", f, edAffineP256A{four(), four(), four()}, addEdMixedP256A, mulxEdMixedP256A, doubleWithoutTP256A, mulxEdDoubleWithoutTP256A)
		g := edExtendedP512A{eight(), eight(), eight(), eight()}
		compareFormulas(t, "Edwards P512A, mixed", g, edAffineP512A{eight(), eight(), eight()}, addEdMixedP512A, mulxEdMixedP512A, doubleEdwardsP512A, mulxEdDoubleP512A)
		compareFormulas(t, "Edwards P512A", g, edCachedP512A{eight(), eight(), eight(), eight()}, addEdwardsP512A, mulxEdAddP512A, doubleEdwardsP512A, mulxEdDoubleP512A)
		compareFormulas(t, "Edwards P512A, without t", g, edAffineP512A{eight(), eight(), eight()}, addEdMixedP512A, mulxEdMixedP512A, doubleWithoutTP512A, mulxEdDoubleWithoutTP512A)

		var v edTurnedWindowP256A
		for i := range v.plus {
			v.minus[i], v.plus[i], v.dxy[i] = four(), four(), four()
		}
		comparePicks(t, "P256A", r.IntN(len(v.plus)), f, edTurnedP256A{four(), four(), four()}, &v, addThenPickP256A, mulxEdTurnedPickP256A)
		var w edTurnedWindowP512A
		for i := range w.plus {
			w.minus[i], w.plus[i], w.dxy[i] = eight(), eight(), eight()
		}
		comparePicks(t, "P512A", r.IntN(len(w.plus)), g, edTurnedP512A{eight(), eight(), eight()}, &w, addThenPickP512A, mulxEdTurnedPickP512A)
	}
}

// compareFormulas expects the same limbs of both implementations, not only the same
// numbers, because they do the same operations in the same order.
func compareFormulas[P comparable, Q any](t *testing.T, name string, p P, q Q, add, mulxAdd func(z, p *P, q *Q), double, mulxDouble func(z, p *P)) {
	t.Helper()
	var want, got P
	add(&want, &p, &q)
	if mulxAdd(&got, &p, &q); got != want {
		t.Fatalf("%s: %v + %v: got %v, want %v", name, p, q, got, want)
	}
	got = p
	if mulxAdd(&got, &got, &q); got != want {
		t.Fatalf("%s: %v + %v, stored over the first operand: got %v, want %v", name, p, q, got, want)
	}
	want, got = p, p // a doubling may leave a coordinate of its result unchanged
	double(&want, &p)
	if mulxDouble(&got, &p); got != want {
		t.Fatalf("%s: 2 * %v: got %v, want %v", name, p, got, want)
	}
	got = p
	if mulxDouble(&got, &got); got != want {
		t.Fatalf("%s: 2 * %v, stored over the operand: got %v, want %v", name, p, got, want)
	}
}

// comparePicks expects the same limbs of both implementations of addThenPick, for the
// entry at index and for its opposite.
func comparePicks[P, Q comparable, W any](t *testing.T, name string, index int, p P, q Q, w *W, pick func(*P, *Q, *W, uint64, uint64), mulxPick func(z, p *P, q *Q, w *W, index, negative uint64)) {
	t.Helper()
	for _, negative := range []uint64{0, ^uint64(0)} {
		wantP, wantQ := p, q
		pick(&wantP, &wantQ, w, uint64(index), negative)
		gotP, gotQ := p, q
		mulxPick(&gotP, &gotP, &gotQ, w, uint64(index), negative)
		if gotP != wantP || gotQ != wantQ {
			t.Fatalf("%s: %v + %v, then entry %d, negative %#x: got %v, %v, want %v, %v", name, p, q, index, negative, gotP, gotQ, wantP, wantQ)
		}
	}
}
