// Package point owns the elliptic curves of GOST R 34.10: their parameters, their
// points and the multiplications a signature scheme needs, at the level of
// whole operations, so that callers know neither primes nor coordinates.
//
// Most curves are computed with in short Weierstrass form with the complete
// formulas of Renes, Costello and Batina (eprint 2015/1060). Those ask for a group
// without points of order two, and these curves have prime order. The two curves
// of cofactor 4 have such points; they are computed with in the twisted Edwards
// form RFC 7836 gives them, whose unified addition is complete because its d is
// no square. Either way no input is exceptional and secrets meet no branch.
// Outside, a point is always x and y of the Weierstrass form.
//
// # One text, many primes
//
// Go has no generics without indirect calls here, and one per field product is
// too many. So the code exists once for the prime P256A and is repeated by the
// generator in folder generate for the others:
//
//	source                         repeated for
//	weierstrass_p256a.go           P256B P256C P256T P512A P512B P512T
//	weierstrass_p256a_noasm.go     P256B P256C P512A P512B       formulas for a = -3
//	weierstrass_p256t_noasm.go     P512T                         formulas for any a
//	edwards_p256a.go               P512A
//	edwards_p256a_noasm.go         P512A                         formulas
//
// Run go generate here after a change; a test says when a copy is stale.
//
// # Tables
//
// A base point's table is built at its first use: 86 KiB (129 KiB for Edwards) in
// under a millisecond for 256 bits, four times that memory and 4 ms for 512.
// Sets with the same curve share it. Every multiplication by a secret reads all
// entries of a window.
//
// # Where assembly goes
//
// The formulas, whole additions and doublings of points, are alone in the files
// *_noasm.go. An assembly twin declares the same methods in
// weierstrass_p256a_amd64.go and gives the portable file the constraint !amd64.
package point

//go:generate go test ./generate -update

import (
	"errors"

	"tamga/gost/gost3410/internal/field"
)

// What is wrong with the octets of a point.
var (
	ErrRange    = errors.New("a coordinate is not below the prime")
	ErrCurve    = errors.New("the point is not on the curve")
	ErrSubgroup = errors.New("the point is not in the subgroup of the base point")
)

// A Curve is a curve with its base point G of prime order q. Octets of a point
// are x and y, each little-endian in Size octets.
type Curve interface {
	// Size returns the octets of a coordinate, 32 or 64.
	Size() int

	// Order returns arithmetic modulo q.
	Order() *field.Modulus

	// Cofactor returns the order of the whole curve divided by q, 1 or 4.
	Cofactor() uint64

	// MulBase writes k*G to xy, in constant time, for 0 <= k < q. It reports
	// whether the result is a point of the curve: false is k = 0 or a fault of
	// the machine.
	MulBase(xy []byte, k *field.Scalar) bool

	// Parse reads a point and checks that it is in the group of G. The errors
	// are those above. It takes variable time.
	Parse(xy []byte) (Point, error)
}

// A Point is a point of prime order on its Curve.
type Point interface {
	// Mul writes k times the point to xy as MulBase does.
	Mul(xy []byte, k *field.Scalar) bool

	// SumHasX reports whether s*G + t*P has an x that is r modulo q, for r, s
	// and t below q. It takes variable time: for public values only.
	SumHasX(r, s, t *field.Scalar) bool
}
