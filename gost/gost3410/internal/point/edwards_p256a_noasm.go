package point

import "tamga/gost/gost3410/internal/field"

// add sets z = p + q (add-2008-hwcd with a = 1), complete.
func (c *edwardsP256A) add(z, p *edExtendedP256A, q *edCachedP256A) {
	var zz field.P256A
	zz.Mul(&p.z, &q.z)
	c.finishAdd(z, p, &q.u, &q.v, &q.dt, &zz)
}

// addMixed sets z = p + q for q with the denominator 1, complete.
func (c *edwardsP256A) addMixed(z, p *edExtendedP256A, q *edAffineP256A) {
	zz := p.z
	c.finishAdd(z, p, &q.u, &q.v, &q.duv, &zz)
}

func (c *edwardsP256A) finishAdd(z, p *edExtendedP256A, u, v, dt, zz *field.P256A) {
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

// double sets z = 2p (dbl-2008-hwcd with a = 1), complete.
func (c *edwardsP256A) double(z, p *edExtendedP256A) {
	var uu, vv, zz, e, f, g, h field.P256A
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
	z.t.Mul(&e, &h)
	z.z.Mul(&f, &g)
}
