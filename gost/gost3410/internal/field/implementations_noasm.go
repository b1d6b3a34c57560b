// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package field

// These functions call the Go code, because this build has no assembly.
//
// The look-ups must not be inlined. Inlined into another package, their generic bodies
// hide from the compiler what happens to a pointer, and every table would escape to
// the heap.

func mulP256A(z, x, y *P256A) {
	mulMinus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256aC)
}

func sqrP256A(z, x *P256A) { sqrMinus4((*[4]uint64)(z), (*[4]uint64)(x), p256aC) }

//go:noinline
func lookupP256A(z *P256A, table []P256A, index uint64) { lookup4(z, table, index) }

func mulP256B(z, x, y *P256B) {
	mulPlus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256bC)
}

func sqrP256B(z, x *P256B) { sqrPlus4((*[4]uint64)(z), (*[4]uint64)(x), p256bC) }

//go:noinline
func lookupP256B(z *P256B, table []P256B, index uint64) { lookup4(z, table, index) }

func mulP256C(z, x, y *P256C) {
	mulMont4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), &p256cPrime, p256cN)
}

func sqrP256C(z, x *P256C) { sqrMont4((*[4]uint64)(z), (*[4]uint64)(x), &p256cPrime, p256cN) }

//go:noinline
func lookupP256C(z *P256C, table []P256C, index uint64) { lookup4(z, table, index) }

//go:noinline
func lookupP256T(z *P256T, table []P256T, index uint64) { lookup4(z, table, index) }

func mulP512A(z, x, y *P512A) {
	mulMinus8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), p512aC)
}

func sqrP512A(z, x *P512A) { sqrMinus8((*[8]uint64)(z), (*[8]uint64)(x), p512aC) }

//go:noinline
func lookupP512A(z *P512A, table []P512A, index uint64) { lookup8(z, table, index) }

func mulP512B(z, x, y *P512B) {
	mulPlus8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), p512bC)
}

func sqrP512B(z, x *P512B) { sqrPlus8((*[8]uint64)(z), (*[8]uint64)(x), p512bC) }

//go:noinline
func lookupP512B(z *P512B, table []P512B, index uint64) { lookup8(z, table, index) }

//go:noinline
func lookupP512T(z *P512T, table []P512T, index uint64) { lookup8(z, table, index) }

func montgomery4(z, x, y, m *[4]uint64, n uint64) { mulMont4(z, x, y, m, n) }

//go:noinline
func lookupPairP256A(x, y *P256A, tx, ty []P256A, index uint64) {
	lookupPair4(x, y, tx, ty, index)
}

//go:noinline
func lookupTripleP256A(x, y, z *P256A, tx, ty, tz []P256A, index uint64) {
	lookupTriple4(x, y, z, tx, ty, tz, index)
}

//go:noinline
func lookupPairP256B(x, y *P256B, tx, ty []P256B, index uint64) {
	lookupPair4(x, y, tx, ty, index)
}

//go:noinline
func lookupPairP256C(x, y *P256C, tx, ty []P256C, index uint64) {
	lookupPair4(x, y, tx, ty, index)
}

//go:noinline
func lookupPairP256T(x, y *P256T, tx, ty []P256T, index uint64) {
	lookupPair4(x, y, tx, ty, index)
}

//go:noinline
func lookupPairP512A(x, y *P512A, tx, ty []P512A, index uint64) {
	x.Lookup(tx, index)
	y.Lookup(ty, index)
}

//go:noinline
func lookupTripleP512A(x, y, z *P512A, tx, ty, tz []P512A, index uint64) {
	x.Lookup(tx, index)
	y.Lookup(ty, index)
	z.Lookup(tz, index)
}

//go:noinline
func lookupPairP512B(x, y *P512B, tx, ty []P512B, index uint64) {
	x.Lookup(tx, index)
	y.Lookup(ty, index)
}

//go:noinline
func lookupPairP512T(x, y *P512T, tx, ty []P512T, index uint64) {
	x.Lookup(tx, index)
	y.Lookup(ty, index)
}

func combine4(a, b *[4]uint64, f *factors) (na, nb uint64) { return portableCombine4(a, b, f) }

func combineMod4(u, v, m *[4]uint64, n uint64, f *factors) { portableCombineMod4(u, v, m, n, f) }

func steps31(a, b uint64) (p, q uint64) { return portableSteps31(a, b) }
