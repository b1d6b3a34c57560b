// SPDX-License-Identifier: Apache-2.0

package point

import "tamga/gost/gost3410/internal/field"

// addEdwardsP256A sets z = p + q (add-2008-hwcd with a = 1). It is complete.
func addEdwardsP256A(z, p *edExtendedP256A, q *edCachedP256A) {
	var zz field.P256A
	zz.Mul(&p.z, &q.z)
	finishEdwardsP256A(z, p, &q.u, &q.v, &q.dt, &zz)
}

// addEdMixedP256A sets z = p + q for q with the denominator 1. It is complete.
func addEdMixedP256A(z, p *edExtendedP256A, q *edAffineP256A) {
	zz := p.z
	finishEdwardsP256A(z, p, &q.u, &q.v, &q.duv, &zz)
}

// addTurnedP256A sets sum = sum + q in the turned form (madd-2008-hwcd-3).
func addTurnedP256A(sum *edExtendedP256A, q *edTurnedP256A) {
	var a, b, c, d, e, f, g, h field.P256A
	a.Sub(&sum.v, &sum.u)
	a.Mul(&a, &q.minus)
	b.Add(&sum.v, &sum.u)
	b.Mul(&b, &q.plus)
	c.Mul(&sum.t, &q.dxy)
	d.Add(&sum.z, &sum.z)
	e.Sub(&b, &a)
	f.Sub(&d, &c)
	g.Add(&d, &c)
	h.Add(&b, &a)
	sum.u.Mul(&e, &f)
	sum.v.Mul(&g, &h)
	sum.t.Mul(&e, &h)
	sum.z.Mul(&f, &g)
}

// addThenPickP256A adds q to sum and sets q to an entry of the next window.
func addThenPickP256A(sum *edExtendedP256A, q *edTurnedP256A, next *edTurnedWindowP256A, index, negative uint64) {
	addTurnedP256A(sum, q)
	next.pick(q, index, negative)
}

func finishEdwardsP256A(z, p *edExtendedP256A, u, v, dt, zz *field.P256A) {
	var uu, vv, tt, e, f, g, h field.P256A
	uu.Mul(&p.u, u)
	vv.Mul(&p.v, v)
	tt.Mul(&p.t, dt)
	e.Add(&p.u, &p.v)
	f.Add(u, v)
	e.Mul(&e, &f)
	e.Sub(&e, &uu)
	e.Sub(&e, &vv)
	f.Sub(zz, &tt)
	g.Add(zz, &tt)
	h.Sub(&vv, &uu)
	z.u.Mul(&e, &f)
	z.v.Mul(&g, &h)
	z.t.Mul(&e, &h)
	z.z.Mul(&f, &g)
}

// doubleEdwardsP256A sets z = 2p (dbl-2008-hwcd with a = 1). It is complete.
func doubleEdwardsP256A(z, p *edExtendedP256A) {
	e, h := doubleUVZP256A(z, p)
	z.t.Mul(&e, &h)
}

// doubleWithoutTP256A is doubleEdwardsP256A, but does not compute t. Use it before
// another doubling, which does not read t.
func doubleWithoutTP256A(z, p *edExtendedP256A) { doubleUVZP256A(z, p) }

// doubleUVZP256A sets u, v and z of 2p and returns the factors of t.
func doubleUVZP256A(z, p *edExtendedP256A) (e, h field.P256A) {
	var uu, vv, zz, f, g field.P256A
	uu.Sqr(&p.u)
	vv.Sqr(&p.v)
	zz.Sqr(&p.z)
	zz.Add(&zz, &zz)
	e.Add(&p.u, &p.v)
	e.Sqr(&e)
	g.Add(&uu, &vv)
	e.Sub(&e, &g)
	f.Sub(&g, &zz)
	h.Sub(&uu, &vv)
	z.u.Mul(&e, &f)
	z.v.Mul(&g, &h)
	z.z.Mul(&f, &g)
	return e, h
}
