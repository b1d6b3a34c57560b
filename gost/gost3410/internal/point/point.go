// Package point owns the elliptic curves of GOST R 34.10: their parameters, their
// points and the multiplications a signature scheme needs, at the level of
// whole operations, so that callers know neither primes nor coordinates.
//
// Most curves are computed with in short Weierstrass form with the complete
// formulas of Renes, Costello and Batina (eprint 2015/1060). Those ask for a group
// without points of order two, and these curves have prime order. The two curves
// of cofactor 4 have such points; they are computed with in the twisted Edwards
// form RFC 7836 gives them, whose unified addition is complete because its d is
// no square. Where the summands cannot be equal or opposite, which is all but the
// last addition of a multiplication, the cheaper Jacobian formulas take the place of
// the complete ones. Either way no input is exceptional and secrets meet no branch.
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
//	weierstrass_p256a_formulas.go  P256B P256C P512A P512B       formulas for a = -3
//	weierstrass_p256a_amd64.s      P256B P256C P512A P512B
//	weierstrass_p256t_formulas.go  P512T                         formulas for any a
//	edwards_p256a.go               P512A
//	edwards_p256a_formulas.go      P512A                         formulas
//	edwards_p256a_amd64.s          P512A
//	lanes_p256a_amd64.go           P512A                         eight scalars at a time
//	edwards_lanes_p256a_amd64.go   P512A                         the same in Edwards form
//	sums_p256a_amd64.go            P512A                         eight checks at a time
//	edwards_sums_p256a_amd64.go    P512A                         the same in Edwards form
//	edwards_quad_p256a_amd64.go    P512A                         one point, its coordinates in lanes
//
// Run go generate here after a change; a test says when a copy is stale.
//
// # Tables
//
// A base point's table is built at its first use: 86 KiB (129 KiB for Edwards) in
// under a millisecond for 256 bits, four times that memory and 4 ms for 512.
// Sets with the same curve share it; MulBaseMany keeps it once more, a quarter larger,
// in the order of its lanes. A table of another point is as large and belongs to
// whoever asked for it. Every multiplication by a secret reads all entries of a
// window.
//
// # Twins
//
// The formulas multiplications are made of, whole additions and doublings of points,
// have two twins each, Go and assembly (*_amd64.s); the files twins_*.go choose by what
// package twin says. In assembly a formula is one text for all primes, a file
// *_amd64.h included with the operations of the prime, those of package field, and
// their order is that of the portable twin.
//
// Where there is AVX-512 IFMA, MulBaseMany computes eight multiples of the base point
// in the lanes of vectors, with the same text of the addition and operations of
// lanes_*_amd64.s. Secret digits pick table entries there by VPERMI2Q from registers
// into which the whole window was loaded. On the curves in Edwards form a single point is
// multiplied with its four coordinates in lanes, by the formulas of quad_*_amd64.s: a
// chain of doublings has nothing else to do side by side.
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

	// MulBaseMany does MulBase for each scalar: k[i]*G goes to xy[i], the report to
	// ok[i]. Where the processor and the curve allow it takes several scalars at
	// once.
	MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool)

	// SumsHaveX does SumHasX for each of the points, which Parse of this curve made:
	// the report goes to ok[i]. Where the processor and the curve allow it takes
	// several sums at once. Variable time, for public values only.
	SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool)

	// Parse reads a point and checks that it is in the group of G. The errors
	// are those above. It takes variable time.
	Parse(xy []byte) (Point, error)

	// ParseMultiple is Parse for a point that MulBase wrote: it is in the group of G
	// when it is on the curve, which is all that is checked.
	ParseMultiple(xy []byte) (Point, error)
}

// A Point is a point of prime order on its Curve.
type Point interface {
	// Mul writes k times the point to xy as MulBase does.
	Mul(xy []byte, k *field.Scalar) bool

	// Precompute returns the same point with a table of its own, as large as that of
	// a base point, which makes SumHasX several times as fast.
	Precompute() Point

	// SumHasX reports whether s*G + t*P has an x that is r modulo q, for r, s
	// and t below q. It takes variable time: for public values only.
	SumHasX(r, s, t *field.Scalar) bool
}

// mulBaseEach is MulBaseMany one at a time.
func mulBaseEach(c Curve, xy [][]byte, k []field.Scalar, ok []bool) {
	for i := range k {
		ok[i] = c.MulBase(xy[i], &k[i])
	}
}

// sumEach is SumsHaveX one at a time.
func sumEach(points []Point, r, s, t []field.Scalar, ok []bool) {
	for i, p := range points {
		ok[i] = p.SumHasX(&r[i], &s[i], &t[i])
	}
}
