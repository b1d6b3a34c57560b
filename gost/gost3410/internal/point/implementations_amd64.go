// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// Whole additions and doublings in one call of assembly, if the processor supports it.
// The complete additions of Weierstrass points have no assembly, because multiplications
// use too few of them.

func (c *weierstrassP256A) addDistinct(z, p *jacobianP256A, q *affineP256A) {
	if impl.MULX {
		mulxChordP256A(z, p, q)
		return
	}
	chordP256A(z, p, q)
}

func (c *weierstrassP256A) doubleJacobian(z, p *jacobianP256A) {
	if impl.MULX {
		mulxTangentP256A(z, p)
		return
	}
	tangentP256A(z, p)
}

func (c *weierstrassP256B) addDistinct(z, p *jacobianP256B, q *affineP256B) {
	if impl.MULX {
		mulxChordP256B(z, p, q)
		return
	}
	chordP256B(z, p, q)
}

func (c *weierstrassP256B) doubleJacobian(z, p *jacobianP256B) {
	if impl.MULX {
		mulxTangentP256B(z, p)
		return
	}
	tangentP256B(z, p)
}

func (c *weierstrassP256C) addDistinct(z, p *jacobianP256C, q *affineP256C) {
	if impl.MULX {
		mulxChordP256C(z, p, q)
		return
	}
	chordP256C(z, p, q)
}

func (c *weierstrassP256C) doubleJacobian(z, p *jacobianP256C) {
	if impl.MULX {
		mulxTangentP256C(z, p)
		return
	}
	tangentP256C(z, p)
}

func (c *weierstrassP512A) addDistinct(z, p *jacobianP512A, q *affineP512A) {
	if impl.MULX {
		mulxChordP512A(z, p, q)
		return
	}
	chordP512A(z, p, q)
}

func (c *weierstrassP512A) doubleJacobian(z, p *jacobianP512A) {
	if impl.MULX {
		mulxTangentP512A(z, p)
		return
	}
	tangentP512A(z, p)
}

func (c *weierstrassP512B) addDistinct(z, p *jacobianP512B, q *affineP512B) {
	if impl.MULX {
		mulxChordP512B(z, p, q)
		return
	}
	chordP512B(z, p, q)
}

func (c *weierstrassP512B) doubleJacobian(z, p *jacobianP512B) {
	if impl.MULX {
		mulxTangentP512B(z, p)
		return
	}
	tangentP512B(z, p)
}

func (c *edwardsP256A) add(z, p *edExtendedP256A, q *edCachedP256A) {
	if impl.MULX {
		mulxEdAddP256A(z, p, q)
		return
	}
	addEdwardsP256A(z, p, q)
}

func (c *edwardsP256A) addMixed(z, p *edExtendedP256A, q *edAffineP256A) {
	if impl.MULX {
		mulxEdMixedP256A(z, p, q)
		return
	}
	addEdMixedP256A(z, p, q)
}

func (c *edwardsP256A) addThenPick(sum *edExtendedP256A, q *edTurnedP256A, next *edTurnedWindowP256A, index, negative uint64) {
	if impl.MULX {
		mulxEdTurnedPickP256A(sum, sum, q, next, index, negative)
		return
	}
	addThenPickP256A(sum, q, next, index, negative)
}

func (c *edwardsP256A) double(z, p *edExtendedP256A) {
	if impl.MULX {
		mulxEdDoubleP256A(z, p)
		return
	}
	doubleEdwardsP256A(z, p)
}

func (c *edwardsP256A) doubleWithoutT(z, p *edExtendedP256A) {
	if impl.MULX {
		mulxEdDoubleWithoutTP256A(z, p)
		return
	}
	doubleWithoutTP256A(z, p)
}

func (c *edwardsP512A) add(z, p *edExtendedP512A, q *edCachedP512A) {
	if impl.MULX {
		mulxEdAddP512A(z, p, q)
		return
	}
	addEdwardsP512A(z, p, q)
}

func (c *edwardsP512A) addMixed(z, p *edExtendedP512A, q *edAffineP512A) {
	if impl.MULX {
		mulxEdMixedP512A(z, p, q)
		return
	}
	addEdMixedP512A(z, p, q)
}

func (c *edwardsP512A) addThenPick(sum *edExtendedP512A, q *edTurnedP512A, next *edTurnedWindowP512A, index, negative uint64) {
	if impl.MULX {
		mulxEdTurnedPickP512A(sum, sum, q, next, index, negative)
		return
	}
	addThenPickP512A(sum, q, next, index, negative)
}

func (c *edwardsP512A) double(z, p *edExtendedP512A) {
	if impl.MULX {
		mulxEdDoubleP512A(z, p)
		return
	}
	doubleEdwardsP512A(z, p)
}

func (c *edwardsP512A) doubleWithoutT(z, p *edExtendedP512A) {
	if impl.MULX {
		mulxEdDoubleWithoutTP512A(z, p)
		return
	}
	doubleWithoutTP512A(z, p)
}

// The curves without lanes.

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

// The following functions are in the files *_amd64.s.

//go:noescape
func mulxChordP256A(z, p *jacobianP256A, q *affineP256A)

//go:noescape
func mulxTangentP256A(z, p *jacobianP256A)

//go:noescape
func mulxChordP256B(z, p *jacobianP256B, q *affineP256B)

//go:noescape
func mulxTangentP256B(z, p *jacobianP256B)

//go:noescape
func mulxChordP256C(z, p *jacobianP256C, q *affineP256C)

//go:noescape
func mulxTangentP256C(z, p *jacobianP256C)

//go:noescape
func mulxChordP512A(z, p *jacobianP512A, q *affineP512A)

//go:noescape
func mulxTangentP512A(z, p *jacobianP512A)

//go:noescape
func mulxChordP512B(z, p *jacobianP512B, q *affineP512B)

//go:noescape
func mulxTangentP512B(z, p *jacobianP512B)

//go:noescape
func mulxEdAddP256A(z, p *edExtendedP256A, q *edCachedP256A)

//go:noescape
func mulxEdMixedP256A(z, p *edExtendedP256A, q *edAffineP256A)

//go:noescape
func mulxEdTurnedPickP256A(z, p *edExtendedP256A, q *edTurnedP256A, next *edTurnedWindowP256A, index, negative uint64)

//go:noescape
func mulxEdDoubleP256A(z, p *edExtendedP256A)

//go:noescape
func mulxEdDoubleWithoutTP256A(z, p *edExtendedP256A)

//go:noescape
func mulxEdAddP512A(z, p *edExtendedP512A, q *edCachedP512A)

//go:noescape
func mulxEdMixedP512A(z, p *edExtendedP512A, q *edAffineP512A)

//go:noescape
func mulxEdTurnedPickP512A(z, p *edExtendedP512A, q *edTurnedP512A, next *edTurnedWindowP512A, index, negative uint64)

//go:noescape
func mulxEdDoubleP512A(z, p *edExtendedP512A)

//go:noescape
func mulxEdDoubleWithoutTP512A(z, p *edExtendedP512A)
