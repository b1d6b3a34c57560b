package gost3410

import (
	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/point"
)

// A VerifyItem is one signature to be checked under a key of its own.
type VerifyItem struct {
	Key               *PublicKey
	Digest, Signature []byte
}

// VerifyMany reports of each item what its Key.Verify says. Items of one curve are
// computed side by side where the processor can, each of them whole: there is no
// sum of signatures that could hide a bad one.
func VerifyMany(items []VerifyItem) []bool {
	ok := make([]bool, len(items))
	groups := map[point.Curve]*sums{}
	for i, it := range items {
		r, s, good := it.Key.readSignature(it.Digest, it.Signature)
		if !good {
			continue
		}
		curve := it.Key.set.curve
		g := groups[curve]
		if g == nil {
			g = new(sums)
			groups[curve] = g
		}
		g.places = append(g.places, i)
		g.points = append(g.points, it.Key.point)
		g.r, g.s = append(g.r, r), append(g.s, s)
		g.e = append(g.e, digestScalar(curve.Order(), it.Digest))
	}
	for curve, g := range groups {
		reports := make([]bool, len(g.places))
		g.divide(curve.Order())
		curve.SumsHaveX(g.points, g.r, g.s, g.e, reports)
		for j, i := range g.places {
			ok[i] = reports[j]
		}
	}
	return ok
}

// sums are signatures of one curve: x of (s/e)*G - (r/e)*P must be r.
type sums struct {
	places  []int // among the items
	points  []point.Point
	r, s, e []field.Scalar
}

// divide sets s to s/e and e to -r/e. One inversion does for all: of the product of
// the e, none of which is 0.
func (g *sums) divide(order *field.Modulus) {
	before := make([]field.Scalar, len(g.e)) // products of the e before each
	product := field.Scalar{1}
	for i := range g.e {
		before[i] = product
		order.Mul(&product, &product, &g.e[i])
	}
	order.Invert(&product, &product)
	for i := len(g.e) - 1; i >= 0; i-- {
		var v field.Scalar
		order.Mul(&v, &product, &before[i])
		order.Mul(&product, &product, &g.e[i])
		order.Mul(&g.s[i], &g.s[i], &v)
		order.Mul(&v, &g.r[i], &v)
		order.Negate(&g.e[i], &v)
	}
}
