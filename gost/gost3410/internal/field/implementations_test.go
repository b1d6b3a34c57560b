// SPDX-License-Identifier: Apache-2.0

package field

import (
	"encoding/binary"
	"testing"

	"tamga/gost/gost3410/internal/impl"
)

// FuzzImplementations compares the implementations on any limbs, also limbs above a prime.
func FuzzImplementations(f *testing.F) {
	for _, fill := range []byte{0, 1, 0x7f, 0x80, 0xff} {
		b := make([]byte, 16*8)
		for i := range b {
			b[i] = fill
		}
		f.Add(b, uint64(fill))
	}
	for _, p := range [][8]uint64{{p256aPrime[0], p256aPrime[1], p256aPrime[2], p256aPrime[3]}, p512aPrime, p512bPrime,
		{p256bPrime[0], p256bPrime[1], p256bPrime[2], p256bPrime[3]}, {p256cPrime[0], p256cPrime[1], p256cPrime[2], p256cPrime[3]}} {
		var b []byte
		for range 2 {
			for _, w := range p {
				b = binary.LittleEndian.AppendUint64(b, w)
			}
		}
		f.Add(b, uint64(31))
	}
	f.Fuzz(func(t *testing.T, b []byte, n uint64) {
		if len(b) != 16*8 {
			return
		}
		var x, y [8]uint64
		setBytes(x[:], b[:64])
		setBytes(y[:], b[64:])
		x4, y4 := [4]uint64(x[:4]), [4]uint64(y[:4])
		compareImplementations(t, "P256A", (*P256A)(&x4), (*P256A)(&y4), func(z *P256A) any { return z.Limbs() })
		compareImplementations(t, "P256B", (*P256B)(&x4), (*P256B)(&y4), func(z *P256B) any { return z.Limbs() })
		compareImplementations(t, "P512A", (*P512A)(&x), (*P512A)(&y), func(z *P512A) any { return z.Limbs() })
		compareImplementations(t, "P512B", (*P512B)(&x), (*P512B)(&y), func(z *P512B) any { return z.Limbs() })
		if less(x4[:], p256cPrime[:])&less(y4[:], p256cPrime[:]) == 1 {
			compareImplementations(t, "P256C", (*P256C)(&x4), (*P256C)(&y4), func(z *P256C) any { return z.Limbs() })
		}
		if less(x4[:], y4[:])&y4[0]&1 == 1 { // y is any odd modulus
			same(t, "montgomery4", func() any {
				var z [4]uint64
				montgomery4(&z, &[4]uint64{n, y4[2], n, n}, &x4, &y4, -inverse64(y4[0]))
				return z
			})
			same(t, "combineMod4", func() any {
				e, f := reduce31(x[5], y[5]|1), reduce31(x[6], y[6]|1)
				f = f.after(&e)
				u, v := x4, x4
				negateIf(v[:], ^uint64(0))
				addIf(v[:], v[:], y4[:], ^uint64(0)) // y - x
				combineMod4(&u, &v, &y4, -inverse64(y4[0]), &f)
				return [2][4]uint64{u, v}
			})
		}
		same(t, "combine4", func() any {
			a, b := x4, y4
			f := reduce31(x[5], y[5]|1)
			na, nb := combine4(&a, &b, &f)
			return [3][4]uint64{a, b, {na, nb}}
		})
		same(t, "steps31", func() any {
			p, q := steps31(x[0], y[0]|1)
			return [2]uint64{p, q}
		})
		same(t, "lookup4", func() any {
			table := []P256A{{x[0], x[1]}, {x[2], x[3]}, {y[0], y[1]}, {3: y[2]}, {y[3], 1, 2, 3}}
			var z [6]P256A
			z[0].Lookup(table, n%6) // index 5 is past the end and gives 0
			LookupPairP256A(&z[1], &z[2], table, table[:], n%6)
			LookupTripleP256A(&z[3], &z[4], &z[5], table, table, table, n%6)
			return z
		})
		same(t, "lookup8", func() any {
			var z P512A
			z.Lookup([]P512A{x, y, {7: 1}}, n%4)
			return z
		})
	})
}

// inverse64 returns 1/m modulo 2^64 for an odd m.
func inverse64(m uint64) uint64 {
	z := m
	for range 5 {
		z *= 2 - m*z
	}
	return z
}

func compareImplementations[E any, P element[E]](t *testing.T, name string, x, y P, limbs func(P) any) {
	t.Helper()
	same(t, name, func() any {
		var mul, sqr, over E
		P(&mul).Mul(x, y)
		P(&sqr).Sqr(x)
		over = *x
		P(&over).Mul(&over, &over)
		return [3]any{limbs(&mul), limbs(&sqr), limbs(&over)}
	})
}

// same calls compute with every implementation and expects the same result.
func same(t *testing.T, name string, compute func() any) {
	t.Helper()
	var first any
	impl.Each(func(which string) {
		if got := compute(); first == nil {
			first = got
		} else if got != first {
			t.Fatalf("%s: implementation %s returns %x, the first one %x", name, which, got, first)
		}
	})
}
