// SPDX-License-Identifier: Apache-2.0

// Package point implements the elliptic curves of GOST R 34.10: their parameters, their
// points and the multiplications that a signature scheme needs. Begin with the curves,
// which are variables of type Curve, and with Curve.Parse, which returns a Point.
// Callers need to know neither primes nor coordinates. Signatures and the choice of
// nonces are not part of the package.
//
// Most curves use the short Weierstrass form with the complete formulas of Renes,
// Costello and Batina (eprint 2015/1060). These formulas need a group without points
// of order two, and these curves have prime order. The two curves of cofactor 4 have
// points of order two. They use the twisted Edwards form of RFC 7836, whose unified
// addition is complete because its d is not a square.
//
// Except in the last addition of a multiplication, the summands cannot be equal or
// opposite. There the Weierstrass curves use the cheaper Jacobian formulas instead of
// the complete ones. In both forms no input is exceptional, and no branch depends on a
// secret. In the API a point is always x and y of the Weierstrass form.
//
// # One source for many primes
//
// Generics in Go would need an indirect call for each field product, which is too
// slow. So the code is written once, for the prime P256A, and the generator in the
// folder generate copies it for the other primes:
//
//	source                         repeated for
//	weierstrass_p256a.go           P256B P256C P256T P512A P512B P512T
//	weierstrass_p256a_formulas.go  P256B P256C P512A P512B       formulas for a = -3
//	weierstrass_p256a_amd64.s      P256B P256C P512A P512B
//	weierstrass_p256t_formulas.go  P512T                         formulas for any a
//	edwards_p256a.go               P512A
//	edwards_p256a_formulas.go      P512A                         formulas
//	edwards_turned_p256a.go        P512A                         multiples of the base point in Edwards form
//	edwards_p256a_amd64.s          P512A
//	edwards_pick_p256a_amd64.s     P512A                         an addition with a look-up inside
//	lanes_p256a_amd64.go           P512A                         eight scalars at a time
//	edwards_lanes_p256a_amd64.go   P512A                         the same in Edwards form
//	sums_p256a_amd64.go            P512A                         eight checks at a time
//	edwards_sums_p256a_amd64.go    P512A                         the same in Edwards form
//	edwards_quad_p256a_amd64.go    P512A                         one point, its coordinates in lanes
//
// Run go generate here after a change. A test fails if a copy is stale.
//
// # Tables
//
// The table of a base point is built at its first use:
//
//	bits  Weierstrass  Edwards  time to build
//	256   86 KiB       129 KiB  under 1 ms
//	512   344 KiB      516 KiB  4 ms
//
// Sets with the same curve share the table. With AVX-512 IFMA there is a second copy,
// a quarter larger, in the order of vector lanes. Without it, curves in Edwards form have
// a second table of the same size, for additions of seven products instead of eight. A
// table of another point is as large as the first and belongs to the Point that
// Precompute returned. Every multiplication by a secret reads all entries of a window.
//
// # Implementations
//
// The formulas, whole additions and doublings of points, have two implementations
// each: Go and assembly (*_amd64.s). The files implementations_*.go choose one by the variables
// of package impl. In assembly a formula has one text for all primes, a file *_amd64.h.
// It is included with the operations of a prime from package field. The operations
// have the same order as in Go.
//
// With AVX-512 IFMA, MulBaseMany computes eight multiples of the base point in the
// lanes of vectors. It uses the same text of the addition with the operations of
// lanes_*_amd64.s. Secret digits pick table entries by VPERMI2Q from registers into
// which the whole window was loaded. On the curves in Edwards form, a multiplication
// of one point has its four coordinates in lanes, by the formulas of quad_*_amd64.s,
// because a chain of doublings has nothing else to compute side by side.
package point

//go:generate go test ./generate -update

import (
	"errors"

	"tamga/gost/gost3410/internal/field"
)

// The errors of Parse and ParseMultiple.
var (
	ErrRange    = errors.New("a coordinate is not below the prime")
	ErrCurve    = errors.New("the point is not on the curve")
	ErrSubgroup = errors.New("the point is not in the subgroup of the base point")
)

// A Curve is a curve with its base point G of prime order q. In bytes, a point is x
// followed by y, each little-endian in Size bytes.
type Curve interface {
	// Size returns the length in bytes of a coordinate, 32 or 64.
	Size() int

	// Order returns arithmetic modulo q.
	Order() *field.Modulus

	// Cofactor returns the order of the whole curve divided by q, 1 or 4.
	Cofactor() uint64

	// MulBase writes k*G to xy, in constant time, for 0 <= k < q. It reports
	// whether the result is a point of the curve. It returns false for k = 0 and
	// after a hardware fault.
	MulBase(xy []byte, k *field.Scalar) bool

	// MulBaseMany does MulBase for each scalar. It writes k[i]*G to xy[i] and what
	// MulBase reports to ok[i]. If the processor and the curve allow it, it computes
	// several multiples at once.
	MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool)

	// SumsHaveX does SumHasX for each point and writes its report to ok[i]. The points
	// must be from Parse of this curve. If the processor and the curve allow it, it
	// computes several sums at once. It takes variable time and is for public values
	// only.
	SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool)

	// Parse reads a point and checks that it is in the group of G. It returns
	// ErrRange, ErrCurve or ErrSubgroup. It takes variable time.
	Parse(xy []byte) (Point, error)

	// ParseMultiple is Parse for a point that MulBase wrote. Such a point is in the
	// group of G if it is on the curve, so only that is checked.
	ParseMultiple(xy []byte) (Point, error)
}

// A Point is a point of prime order on its Curve.
type Point interface {
	// Mul writes k times the point to xy as MulBase does.
	Mul(xy []byte, k *field.Scalar) bool

	// Precompute returns the same point with a table, as large as that of a base
	// point, which makes SumHasX faster.
	Precompute() Point

	// SumHasX reports whether x of s*G + t*P is r modulo q, where P is the point and
	// r, s and t are below q. It takes variable time and is for public values only.
	SumHasX(r, s, t *field.Scalar) bool
}

// mulBaseEach is MulBaseMany, one scalar at a time.
func mulBaseEach(c Curve, xy [][]byte, k []field.Scalar, ok []bool) {
	for i := range k {
		ok[i] = c.MulBase(xy[i], &k[i])
	}
}

// sumEach is SumsHaveX, one sum at a time.
func sumEach(points []Point, r, s, t []field.Scalar, ok []bool) {
	for i, p := range points {
		ok[i] = p.SumHasX(&r[i], &s[i], &t[i])
	}
}
