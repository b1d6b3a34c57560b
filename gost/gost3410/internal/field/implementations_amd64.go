// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package field

import "tamga/gost/gost3410/internal/impl"

// These functions call the assembly if the processor supports it, else the Go code.

func mulP256A(z, x, y *P256A) {
	if impl.MULX {
		mulxMulP256A(z, x, y)
		return
	}
	mulMinus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256aC)
}

func sqrP256A(z, x *P256A) {
	if impl.MULX {
		mulxSqrP256A(z, x)
		return
	}
	sqrMinus4((*[4]uint64)(z), (*[4]uint64)(x), p256aC)
}

func lookupP256A(z *P256A, table []P256A, index uint64) {
	if impl.MULX && len(table) > 0 {
		avxLookup4((*[4]uint64)(z), (*[4]uint64)(&table[0]), len(table), index)
		return
	}
	lookup4(z, table, index)
}

func mulP256B(z, x, y *P256B) {
	if impl.MULX {
		mulxMulP256B(z, x, y)
		return
	}
	mulPlus4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), p256bC)
}

func sqrP256B(z, x *P256B) {
	if impl.MULX {
		mulxSqrP256B(z, x)
		return
	}
	sqrPlus4((*[4]uint64)(z), (*[4]uint64)(x), p256bC)
}

func lookupP256B(z *P256B, table []P256B, index uint64) {
	if impl.MULX && len(table) > 0 {
		avxLookup4((*[4]uint64)(z), (*[4]uint64)(&table[0]), len(table), index)
		return
	}
	lookup4(z, table, index)
}

func mulP256C(z, x, y *P256C) {
	if impl.MULX {
		mulxMulP256C(z, x, y)
		return
	}
	mulMont4((*[4]uint64)(z), (*[4]uint64)(x), (*[4]uint64)(y), &p256cPrime, p256cN)
}

func sqrP256C(z, x *P256C) {
	if impl.MULX {
		mulxSqrP256C(z, x)
		return
	}
	sqrMont4((*[4]uint64)(z), (*[4]uint64)(x), &p256cPrime, p256cN)
}

func lookupP256C(z *P256C, table []P256C, index uint64) {
	if impl.MULX && len(table) > 0 {
		avxLookup4((*[4]uint64)(z), (*[4]uint64)(&table[0]), len(table), index)
		return
	}
	lookup4(z, table, index)
}

func lookupP256T(z *P256T, table []P256T, index uint64) {
	if impl.MULX && len(table) > 0 {
		avxLookup4((*[4]uint64)(z), (*[4]uint64)(&table[0]), len(table), index)
		return
	}
	lookup4(z, table, index)
}

func mulP512A(z, x, y *P512A) {
	if impl.MULX {
		mulxMulP512A(z, x, y)
		return
	}
	mulMinus8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), p512aC)
}

func sqrP512A(z, x *P512A) {
	if impl.MULX {
		mulxSqrP512A(z, x)
		return
	}
	sqrMinus8((*[8]uint64)(z), (*[8]uint64)(x), p512aC)
}

func lookupP512A(z *P512A, table []P512A, index uint64) {
	if impl.MULX && len(table) > 0 {
		avxLookup8((*[8]uint64)(z), (*[8]uint64)(&table[0]), len(table), index)
		return
	}
	lookup8(z, table, index)
}

func mulP512B(z, x, y *P512B) {
	if impl.MULX {
		mulxMulP512B(z, x, y)
		return
	}
	mulPlus8((*[8]uint64)(z), (*[8]uint64)(x), (*[8]uint64)(y), p512bC)
}

func sqrP512B(z, x *P512B) {
	if impl.MULX {
		mulxSqrP512B(z, x)
		return
	}
	sqrPlus8((*[8]uint64)(z), (*[8]uint64)(x), p512bC)
}

func lookupP512B(z *P512B, table []P512B, index uint64) {
	if impl.MULX && len(table) > 0 {
		avxLookup8((*[8]uint64)(z), (*[8]uint64)(&table[0]), len(table), index)
		return
	}
	lookup8(z, table, index)
}

func lookupP512T(z *P512T, table []P512T, index uint64) {
	if impl.MULX && len(table) > 0 {
		avxLookup8((*[8]uint64)(z), (*[8]uint64)(&table[0]), len(table), index)
		return
	}
	lookup8(z, table, index)
}

func lookupPairP256A(x, y *P256A, tx, ty []P256A, index uint64) {
	if n := len(tx); impl.MULX && n > 0 && len(ty) == n {
		avxLookupPair4((*[4]uint64)(x), (*[4]uint64)(y), (*[4]uint64)(&tx[0]), (*[4]uint64)(&ty[0]), n, index)
		return
	}
	lookupPair4(x, y, tx, ty, index)
}

func lookupTripleP256A(x, y, z *P256A, tx, ty, tz []P256A, index uint64) {
	if n := len(tx); impl.MULX && n > 0 && len(ty) == n && len(tz) == n {
		avxLookupTriple4((*[4]uint64)(x), (*[4]uint64)(y), (*[4]uint64)(z), (*[4]uint64)(&tx[0]), (*[4]uint64)(&ty[0]), (*[4]uint64)(&tz[0]), n, index)
		return
	}
	lookupTriple4(x, y, z, tx, ty, tz, index)
}

func lookupPairP256B(x, y *P256B, tx, ty []P256B, index uint64) {
	if n := len(tx); impl.MULX && n > 0 && len(ty) == n {
		avxLookupPair4((*[4]uint64)(x), (*[4]uint64)(y), (*[4]uint64)(&tx[0]), (*[4]uint64)(&ty[0]), n, index)
		return
	}
	lookupPair4(x, y, tx, ty, index)
}

func lookupPairP256C(x, y *P256C, tx, ty []P256C, index uint64) {
	if n := len(tx); impl.MULX && n > 0 && len(ty) == n {
		avxLookupPair4((*[4]uint64)(x), (*[4]uint64)(y), (*[4]uint64)(&tx[0]), (*[4]uint64)(&ty[0]), n, index)
		return
	}
	lookupPair4(x, y, tx, ty, index)
}

func lookupPairP256T(x, y *P256T, tx, ty []P256T, index uint64) {
	if n := len(tx); impl.MULX && n > 0 && len(ty) == n {
		avxLookupPair4((*[4]uint64)(x), (*[4]uint64)(y), (*[4]uint64)(&tx[0]), (*[4]uint64)(&ty[0]), n, index)
		return
	}
	lookupPair4(x, y, tx, ty, index)
}

func lookupPairP512A(x, y *P512A, tx, ty []P512A, index uint64) {
	x.Lookup(tx, index)
	y.Lookup(ty, index)
}

func lookupTripleP512A(x, y, z *P512A, tx, ty, tz []P512A, index uint64) {
	x.Lookup(tx, index)
	y.Lookup(ty, index)
	z.Lookup(tz, index)
}

func lookupPairP512B(x, y *P512B, tx, ty []P512B, index uint64) {
	x.Lookup(tx, index)
	y.Lookup(ty, index)
}

func lookupPairP512T(x, y *P512T, tx, ty []P512T, index uint64) {
	x.Lookup(tx, index)
	y.Lookup(ty, index)
}

func combine4(a, b *[4]uint64, f *factors) (na, nb uint64) {
	if impl.MULX {
		return mulxCombine4(a, b, f)
	}
	return portableCombine4(a, b, f)
}

func combineMod4(u, v, m *[4]uint64, n uint64, f *factors) {
	if impl.MULX {
		mulxCombineMod4(u, v, m, n, f)
		return
	}
	portableCombineMod4(u, v, m, n, f)
}

func steps31(a, b uint64) (p, q uint64) {
	if impl.MULX {
		return mulxSteps31(a, b)
	}
	return portableSteps31(a, b)
}

// montgomery4 sets z = x * y / 2^256 mod m as mulMont4 does.
func montgomery4(z, x, y, m *[4]uint64, n uint64) {
	if impl.MULX {
		mulxMont4(z, x, y, m, n)
		return
	}
	mulMont4(z, x, y, m, n)
}

// The following functions are in the files *_amd64.s.

//go:noescape
func mulxMulP256A(z, x, y *P256A)

//go:noescape
func mulxSqrP256A(z, x *P256A)

//go:noescape
func mulxMulP256B(z, x, y *P256B)

//go:noescape
func mulxSqrP256B(z, x *P256B)

//go:noescape
func mulxMulP256C(z, x, y *P256C)

//go:noescape
func mulxSqrP256C(z, x *P256C)

//go:noescape
func mulxMulP512A(z, x, y *P512A)

//go:noescape
func mulxSqrP512A(z, x *P512A)

//go:noescape
func mulxMulP512B(z, x, y *P512B)

//go:noescape
func mulxSqrP512B(z, x *P512B)

//go:noescape
func avxLookup4(z, table *[4]uint64, n int, index uint64)

//go:noescape
func avxLookup8(z, table *[8]uint64, n int, index uint64)

//go:noescape
func mulxMont4(z, x, y, m *[4]uint64, n uint64)

//go:noescape
func avxLookupPair4(x, y, tx, ty *[4]uint64, n int, index uint64)

//go:noescape
func avxLookupTriple4(x, y, z, tx, ty, tz *[4]uint64, n int, index uint64)

func mulxSteps31(a, b uint64) (p, q uint64)

//go:noescape
func mulxCombine4(a, b *[4]uint64, f *factors) (na, nb uint64)

//go:noescape
func mulxCombineMod4(u, v, m *[4]uint64, n uint64, f *factors)
