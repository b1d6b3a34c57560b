// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package point

import "tamga/gost/gost3410/internal/field"

// These functions call the Go formulas, because this build has no assembly.

func (c *weierstrassP256A) addDistinct(z, p *jacobianP256A, q *affineP256A) { chordP256A(z, p, q) }

func (c *weierstrassP256A) doubleJacobian(z, p *jacobianP256A) { tangentP256A(z, p) }

func (c *weierstrassP256B) addDistinct(z, p *jacobianP256B, q *affineP256B) { chordP256B(z, p, q) }

func (c *weierstrassP256B) doubleJacobian(z, p *jacobianP256B) { tangentP256B(z, p) }

func (c *weierstrassP256C) addDistinct(z, p *jacobianP256C, q *affineP256C) { chordP256C(z, p, q) }

func (c *weierstrassP256C) doubleJacobian(z, p *jacobianP256C) { tangentP256C(z, p) }

func (c *weierstrassP512A) addDistinct(z, p *jacobianP512A, q *affineP512A) { chordP512A(z, p, q) }

func (c *weierstrassP512A) doubleJacobian(z, p *jacobianP512A) { tangentP512A(z, p) }

func (c *weierstrassP512B) addDistinct(z, p *jacobianP512B, q *affineP512B) { chordP512B(z, p, q) }

func (c *weierstrassP512B) doubleJacobian(z, p *jacobianP512B) { tangentP512B(z, p) }

func (c *edwardsP256A) add(z, p *edExtendedP256A, q *edCachedP256A) { addEdwardsP256A(z, p, q) }

func (c *edwardsP256A) addMixed(z, p *edExtendedP256A, q *edAffineP256A) { addEdMixedP256A(z, p, q) }

func (c *edwardsP256A) addThenPick(sum *edExtendedP256A, q *edTurnedP256A, next *edTurnedWindowP256A, index, negative uint64) {
	addThenPickP256A(sum, q, next, index, negative)
}

func (c *edwardsP256A) double(z, p *edExtendedP256A) { doubleEdwardsP256A(z, p) }

func (c *edwardsP256A) doubleWithoutT(z, p *edExtendedP256A) { doubleWithoutTP256A(z, p) }

func (c *edwardsP512A) add(z, p *edExtendedP512A, q *edCachedP512A) { addEdwardsP512A(z, p, q) }

func (c *edwardsP512A) addMixed(z, p *edExtendedP512A, q *edAffineP512A) { addEdMixedP512A(z, p, q) }

func (c *edwardsP512A) addThenPick(sum *edExtendedP512A, q *edTurnedP512A, next *edTurnedWindowP512A, index, negative uint64) {
	addThenPickP512A(sum, q, next, index, negative)
}

func (c *edwardsP512A) double(z, p *edExtendedP512A) { doubleEdwardsP512A(z, p) }

func (c *edwardsP512A) doubleWithoutT(z, p *edExtendedP512A) { doubleWithoutTP512A(z, p) }

type lanesP256A struct{}

func (l *lanesP256A) take(*combP256A) bool { return false }

func (k *keyP256A) sumSpread(_ *jacobianP256A, _, _ *field.Scalar) bool { return false }

func (c *weierstrassP256A) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *weierstrassP256A) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *weierstrassP256A) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}

type lanesP256B struct{}

func (l *lanesP256B) take(*combP256B) bool { return false }

func (k *keyP256B) sumSpread(_ *jacobianP256B, _, _ *field.Scalar) bool { return false }

func (c *weierstrassP256B) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *weierstrassP256B) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *weierstrassP256B) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}

type lanesP256C struct{}

func (l *lanesP256C) take(*combP256C) bool { return false }

func (k *keyP256C) sumSpread(_ *jacobianP256C, _, _ *field.Scalar) bool { return false }

func (c *weierstrassP256C) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *weierstrassP256C) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *weierstrassP256C) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}

type lanesP256T struct{}

func (l *lanesP256T) take(*combP256T) bool { return false }

func (k *keyP256T) sumSpread(_ *jacobianP256T, _, _ *field.Scalar) bool { return false }

func (c *weierstrassP256T) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *weierstrassP256T) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *weierstrassP256T) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}

type lanesP512A struct{}

func (l *lanesP512A) take(*combP512A) bool { return false }

func (k *keyP512A) sumSpread(_ *jacobianP512A, _, _ *field.Scalar) bool { return false }

func (c *weierstrassP512A) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *weierstrassP512A) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *weierstrassP512A) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}

type lanesP512B struct{}

func (l *lanesP512B) take(*combP512B) bool { return false }

func (k *keyP512B) sumSpread(_ *jacobianP512B, _, _ *field.Scalar) bool { return false }

func (c *weierstrassP512B) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *weierstrassP512B) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *weierstrassP512B) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}

type lanesP512T struct{}

func (l *lanesP512T) take(*combP512T) bool { return false }

func (k *keyP512T) sumSpread(_ *jacobianP512T, _, _ *field.Scalar) bool { return false }

func (c *weierstrassP512T) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *weierstrassP512T) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *weierstrassP512T) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}

type (
	edLanesP256A struct{}
	edQuadsP256A struct{}
)

func (k *edKeyP256A) Mul(xy []byte, n *field.Scalar) bool { return k.mulOne(xy, n) }

func (k *edKeyP256A) sum(s, t *field.Scalar) edExtendedP256A { return k.sumOne(s, t) }

func (c *edwardsP256A) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *edwardsP256A) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *edwardsP256A) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}

type (
	edLanesP512A struct{}
	edQuadsP512A struct{}
)

func (k *edKeyP512A) Mul(xy []byte, n *field.Scalar) bool { return k.mulOne(xy, n) }

func (k *edKeyP512A) sum(s, t *field.Scalar) edExtendedP512A { return k.sumOne(s, t) }

func (c *edwardsP512A) MulBase(xy []byte, k *field.Scalar) bool { return c.mulBaseOne(xy, k) }

func (c *edwardsP512A) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	mulBaseEach(c, xy, k, ok)
}

func (c *edwardsP512A) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	sumEach(points, r, s, t, ok)
}
