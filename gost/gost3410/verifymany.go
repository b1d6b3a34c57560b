// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/point"
)

// A VerifyItem is one signature, with the key and the digest to check it against.
type VerifyItem struct {
	Key               *PublicKey
	Digest, Signature []byte
}

// VerifyMany returns for each item what its Key.Verify returns. Where the processor
// supports it, items of one curve are computed in vector lanes. Items of one key after
// Precompute, one after another, are faster than others. Each signature is checked
// completely and by itself. Signatures are not added up, so a bad one cannot
// hide behind others.
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
	places  []int // indices of the items
	points  []point.Point
	r, s, e []field.Scalar
}

// divide sets s to s/e and e to -r/e. It needs one inversion for all signatures: that
// of the product of all e. No e is 0.
func (g *sums) divide(order *field.Modulus) {
	before := make([]field.Scalar, len(g.e)) // before[i] is the product of e[0] to e[i-1]
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
