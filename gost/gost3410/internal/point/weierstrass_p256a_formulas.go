// SPDX-License-Identifier: Apache-2.0

package point

import "tamga/gost/gost3410/internal/field"

// The formulas for a = -3.

// timesB sets z = x * b. With a small b, as in CryptoPro A, it takes a third of the
// time.
func (c *weierstrassP256A) timesB(z, x *field.P256A) {
	if c.smallB != 0 { // a constant of the curve, not secret
		z.MulSmall(x, c.smallB)
	} else {
		z.Mul(x, &c.b)
	}
}

// add sets z = p + q by algorithm 4 of eprint 2015/1060. It is complete on curves of
// odd order.
func (c *weierstrassP256A) add(z, p, q *projectiveP256A) {
	var xx, yy, zz, xy, yz, xz, t field.P256A
	xx.Mul(&p.x, &q.x)
	yy.Mul(&p.y, &q.y)
	zz.Mul(&p.z, &q.z)
	xy.Add(&p.x, &p.y) // xy = x1*y2 + x2*y1
	t.Add(&q.x, &q.y)
	xy.Mul(&xy, &t)
	t.Add(&xx, &yy)
	xy.Sub(&xy, &t)
	yz.Add(&p.y, &p.z) // yz = y1*z2 + y2*z1
	t.Add(&q.y, &q.z)
	yz.Mul(&yz, &t)
	t.Add(&yy, &zz)
	yz.Sub(&yz, &t)
	xz.Add(&p.x, &p.z) // xz = x1*z2 + x2*z1
	t.Add(&q.x, &q.z)
	xz.Mul(&xz, &t)
	t.Add(&xx, &zz)
	xz.Sub(&xz, &t)
	c.finishAdd(z, &xx, &yy, &zz, &xy, &yz, &xz)
}

// addMixed sets z = p + q by algorithm 5. It is complete for every p.
func (c *weierstrassP256A) addMixed(z, p *projectiveP256A, q *affineP256A) {
	var xx, yy, zz, xy, yz, xz, t field.P256A
	xx.Mul(&p.x, &q.x)
	yy.Mul(&p.y, &q.y)
	xy.Add(&p.x, &p.y)
	t.Add(&q.x, &q.y)
	xy.Mul(&xy, &t)
	t.Add(&xx, &yy)
	xy.Sub(&xy, &t)
	yz.Mul(&q.y, &p.z)
	yz.Add(&yz, &p.y)
	xz.Mul(&q.x, &p.z)
	xz.Add(&xz, &p.x)
	zz = p.z
	c.finishAdd(z, &xx, &yy, &zz, &xy, &yz, &xz)
}

// finishAdd is the second half of an addition, after the products of the coordinates.
// It changes its operands.
func (c *weierstrassP256A) finishAdd(z *projectiveP256A, xx, yy, zz, xy, yz, xz *field.P256A) {
	var m, n, t field.P256A
	c.timesB(&t, zz)
	m.Sub(xz, &t)
	m.Triple(&m) // 3(xz - b*zz)
	n.Sub(yy, &m)
	m.Add(yy, &m)
	zz.Triple(zz)
	c.timesB(xz, xz)
	xz.Sub(xz, zz)
	xz.Sub(xz, xx)
	xz.Triple(xz) // 3(b*xz - 3zz - xx)
	xx.Triple(xx)
	xx.Sub(xx, zz) // 3(xx - zz)

	t.Mul(yz, xz)
	z.x.Mul(xy, &m)
	z.x.Sub(&z.x, &t)
	t.Mul(xx, xz)
	z.y.Mul(&m, &n)
	z.y.Add(&z.y, &t)
	t.Mul(xy, xx)
	z.z.Mul(yz, &n)
	z.z.Add(&z.z, &t)
}

// double sets z = 2p by algorithm 6. It is complete on curves of odd order.
func (c *weierstrassP256A) double(z, p *projectiveP256A) {
	var xx, yy, zz, xy, yz, xz, m, n, t field.P256A
	xx.Sqr(&p.x)
	yy.Sqr(&p.y)
	zz.Sqr(&p.z)
	xy.Mul(&p.x, &p.y)
	xy.Add(&xy, &xy)
	xz.Mul(&p.x, &p.z)
	xz.Add(&xz, &xz)
	yz.Mul(&p.y, &p.z)
	yz.Add(&yz, &yz)
	c.timesB(&m, &zz)
	m.Sub(&m, &xz)
	m.Triple(&m)
	n.Sub(&yy, &m)
	m.Add(&yy, &m)
	zz.Triple(&zz)
	c.timesB(&xz, &xz)
	xz.Sub(&xz, &zz)
	xz.Sub(&xz, &xx)
	xz.Triple(&xz)
	xx.Triple(&xx)
	xx.Sub(&xx, &zz)

	t.Mul(&yz, &xz)
	z.x.Mul(&xy, &n)
	z.x.Sub(&z.x, &t)
	t.Mul(&xx, &xz)
	z.y.Mul(&m, &n)
	z.y.Add(&z.y, &t)
	z.z.Mul(&yz, &yy)
	z.z.Add(&z.z, &z.z)
	z.z.Add(&z.z, &z.z)
}

// tangentP256A sets z = 2p (dbl-2001-b) for a p of odd order.
func tangentP256A(z, p *jacobianP256A) {
	var delta, gamma, beta, alpha, t, sum field.P256A
	delta.Sqr(&p.z)
	gamma.Sqr(&p.y)
	t.Sub(&p.x, &delta)
	alpha.Add(&p.x, &delta)
	beta.Mul(&p.x, &gamma)
	alpha.Mul(&alpha, &t)
	t.Mul(&p.y, &p.z)
	beta.Add(&beta, &beta)
	sum.Add(&alpha, &alpha)
	beta.Add(&beta, &beta) // 4*px*py^2
	alpha.Add(&alpha, &sum)
	z.z.Add(&t, &t)
	sum.Add(&beta, &beta)
	t.Sqr(&alpha)
	gamma.Add(&gamma, &gamma)
	z.x.Sub(&t, &sum)
	gamma.Sqr(&gamma)
	beta.Sub(&beta, &z.x)
	beta.Mul(&beta, &alpha)
	gamma.Add(&gamma, &gamma) // 8*py^4
	z.y.Sub(&beta, &gamma)
}
