// SPDX-License-Identifier: Apache-2.0

package point

import "tamga/gost/gost3410/internal/field"

// The formulas for any a. Only the test sets need them, so the code is short, not fast.

// add sets z = p + q by algorithm 1 of eprint 2015/1060. It is complete on curves of
// odd order.
func (c *weierstrassP256T) add(z, p, q *projectiveP256T) {
	var xx, yy, zz, xy, yz, xz, m, n, t field.P256T
	xx.Mul(&p.x, &q.x)
	yy.Mul(&p.y, &q.y)
	zz.Mul(&p.z, &q.z)
	xy.Add(&p.x, &p.y) // xy = x1*y2 + x2*y1
	t.Add(&q.x, &q.y)
	xy.Mul(&xy, &t)
	t.Add(&xx, &yy)
	xy.Sub(&xy, &t)
	xz.Add(&p.x, &p.z) // xz = x1*z2 + x2*z1
	t.Add(&q.x, &q.z)
	xz.Mul(&xz, &t)
	t.Add(&xx, &zz)
	xz.Sub(&xz, &t)
	yz.Add(&p.y, &p.z) // yz = y1*z2 + y2*z1
	t.Add(&q.y, &q.z)
	yz.Mul(&yz, &t)
	t.Add(&yy, &zz)
	yz.Sub(&yz, &t)

	m.Mul(&c.a, &xz)
	t.Mul(&c.b3, &zz)
	m.Add(&m, &t) // a*xz + 3b*zz
	n.Add(&yy, &m)
	m.Sub(&yy, &m)
	zz.Mul(&c.a, &zz)
	xz.Mul(&c.b3, &xz)
	t.Sub(&xx, &zz)
	t.Mul(&c.a, &t)
	xz.Add(&xz, &t) // 3b*xz + a(xx - a*zz)
	t.Add(&xx, &xx)
	xx.Add(&xx, &t)
	xx.Add(&xx, &zz) // 3xx + a*zz

	t.Mul(&yz, &xz)
	z.x.Mul(&xy, &m)
	z.x.Sub(&z.x, &t)
	t.Mul(&xx, &xz)
	z.y.Mul(&m, &n)
	z.y.Add(&z.y, &t)
	t.Mul(&xy, &xx)
	z.z.Mul(&yz, &n)
	z.z.Add(&z.z, &t)
}

// addMixed sets z = p + q. It is complete for every p.
func (c *weierstrassP256T) addMixed(z, p *projectiveP256T, q *affineP256T) {
	e := q.projective()
	c.add(z, p, &e)
}

// addDistinct sets z = p + q as chordP256T does.
func (c *weierstrassP256T) addDistinct(z, p *jacobianP256T, q *affineP256T) { chordP256T(z, p, q) }

// double sets z = 2p by add, which is complete.
func (c *weierstrassP256T) double(z, p *projectiveP256T) { c.add(z, p, p) }

// doubleJacobian sets z = 2p (dbl-2007-bl).
func (c *weierstrassP256T) doubleJacobian(z, p *jacobianP256T) {
	var xx, yy, yyyy, zz, s, m, t field.P256T
	xx.Sqr(&p.x)
	yy.Sqr(&p.y)
	yyyy.Sqr(&yy)
	zz.Sqr(&p.z)
	s.Mul(&p.x, &yy)
	s.Add(&s, &s)
	s.Add(&s, &s)
	m.Add(&xx, &xx)
	m.Add(&m, &xx)
	t.Sqr(&zz)
	t.Mul(&t, &c.a)
	m.Add(&m, &t)
	z.z.Mul(&p.y, &p.z)
	z.z.Add(&z.z, &z.z)
	z.x.Sqr(&m)
	z.x.Sub(&z.x, &s)
	z.x.Sub(&z.x, &s)
	s.Sub(&s, &z.x)
	s.Mul(&s, &m)
	yyyy.Add(&yyyy, &yyyy)
	yyyy.Add(&yyyy, &yyyy)
	yyyy.Add(&yyyy, &yyyy)
	z.y.Sub(&s, &yyyy)
}
