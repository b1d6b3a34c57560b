// SPDX-License-Identifier: Apache-2.0

package point

import (
	"sync"

	"tamga/gost/gost3410/internal/field"
)

const (
	edSizeP256A    = 8 * len(field.P256A{})
	edWindowsP256A = (8*edSizeP256A + baseBits - 1) / baseBits // the value of windows(edSizeP256A, baseBits)
)

// edwardsP256A is a curve of cofactor 4. Its API has the form y^2 = x^3 + a*x + b. It
// computes in the form u^2 + v^2 = 1 + d*u^2*v^2 (RFC 7836, section 5.2, with e = 1).
// With s = (1-d)/4 and t = (1+d)/6, the two forms are related by
//
//	u = (x - t) / y              x = s*(1+v)/(1-v) + t
//	v = (x - t - s)/(x - t + s)  y = s*(1+v)/((1-v)*u)
//
// d is not a square, so the addition formulas have no exceptions. They hold for the
// neutral element and for points of even order too.
type edwardsP256A struct {
	a, b, d, s, t field.P256A
	base          edAffineP256A
	order         *field.Modulus

	// The table is built at the first use of the base point.
	once  sync.Once
	table *edCombP256A
	turns edTurnsP256A // the table in the turned form
	lanes edLanesP256A // the table in the order that lanes read
	quads edQuadsP256A
}

// edWindowP256A holds the odd multiples of some point: 1, 3, ... 2^baseBits - 1 times.
type edWindowP256A struct {
	u, v, duv [1 << (baseBits - 1)]field.P256A
}

// edCombP256A is the table of a point, see combOf.
type edCombP256A [edWindowsP256A]edWindowP256A

// edAffineP256A is the point u, v with duv = d*u*v. The neutral element is 0, 1, 0.
type edAffineP256A struct{ u, v, duv field.P256A }

// edExtendedP256A is the point u/z, v/z, where t = u*v/z.
type edExtendedP256A struct{ u, v, z, t field.P256A }

// edCachedP256A is a point prepared for addition: t is multiplied by d.
type edCachedP256A struct{ u, v, z, dt field.P256A }

func newEdwardsP256A(p parameters) *edwardsP256A {
	c := &edwardsP256A{order: p.modulus(edSizeP256A)}
	p.read(edSizeP256A, c.a.SetBytes, p.a)
	p.read(edSizeP256A, c.b.SetBytes, p.b)
	p.read(edSizeP256A, c.d.SetBytes, p.d)
	var one, n field.P256A
	one.SetSmall(1)
	n.SetSmall(4)
	n.Invert(&n)
	c.s.Sub(&one, &c.d)
	c.s.Mul(&c.s, &n)
	n.SetSmall(6)
	n.Invert(&n)
	c.t.Add(&one, &c.d)
	c.t.Mul(&c.t, &n)
	var x, y field.P256A
	p.read(edSizeP256A, x.SetBytes, p.x)
	p.read(edSizeP256A, y.SetBytes, p.y)
	if !c.enter(&c.base, &x, &y) {
		panic("point: the base point has no Edwards form")
	}
	return c
}

func (c *edwardsP256A) Size() int             { return edSizeP256A }
func (c *edwardsP256A) Order() *field.Modulus { return c.order }
func (c *edwardsP256A) Cofactor() uint64      { return 4 }

// contains reports whether x, y is on the curve.
func (c *edwardsP256A) contains(x, y *field.P256A) bool {
	var l, r field.P256A
	r.Sqr(x)
	r.Add(&r, &c.a)
	r.Mul(&r, x)
	r.Add(&r, &c.b)
	l.Sqr(y)
	l.Sub(&l, &r)
	return l.IsZero() == 1
}

// enter sets p to the point x, y and reports whether the formulas give it an Edwards
// form. They give none to the point of order two (y = 0), which nothing needs.
func (c *edwardsP256A) enter(p *edAffineP256A, x, y *field.P256A) bool {
	var m, n, w, inverse field.P256A
	m.Sub(x, &c.t)
	n.Add(&m, &c.s)
	w.Mul(y, &n)
	if w.IsZero() == 1 {
		return false
	}
	inverse.Invert(&w)
	p.u.Mul(&m, &n)
	p.u.Mul(&p.u, &inverse)
	m.Sub(&m, &c.s)
	p.v.Mul(&m, y)
	p.v.Mul(&p.v, &inverse)
	p.duv.Mul(&p.u, &p.v)
	p.duv.Mul(&p.duv, &c.d)
	return true
}

// write writes x and y of p and reports whether they are a point of the curve. It
// reports false for infinity (u = 0, v = 1) and for the point of order two (u = 0,
// v = -1).
func (c *edwardsP256A) write(xy []byte, p *edExtendedP256A) bool {
	var plus, minus, w, x, y field.P256A
	plus.Add(&p.z, &p.v)
	plus.Mul(&plus, &c.s)
	minus.Sub(&p.z, &p.v)
	w.Mul(&minus, &p.u)
	w.Invert(&w)
	x.Mul(&plus, &p.u)
	x.Mul(&x, &w)
	x.Add(&x, &c.t)
	y.Mul(&plus, &p.z)
	y.Mul(&y, &w)
	x.PutBytes(xy[:edSizeP256A])
	y.PutBytes(xy[edSizeP256A : 2*edSizeP256A])
	return p.u.IsZero() == 0 && c.contains(&x, &y)
}

func (c *edwardsP256A) Parse(xy []byte) (Point, error) {
	k, err := c.read(xy)
	if err != nil {
		return nil, err
	}
	// q times the point must be neutral: u = 0 and v = z.
	q := c.order.Value()
	r := k.sum(&field.Scalar{}, &q)
	r.v.Sub(&r.v, &r.z)
	if r.u.IsZero()&r.v.IsZero() == 0 {
		return nil, ErrSubgroup
	}
	return k, nil
}

func (c *edwardsP256A) ParseMultiple(xy []byte) (Point, error) {
	k, err := c.read(xy)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// read reads a point of the curve, of any order.
func (c *edwardsP256A) read(xy []byte) (*edKeyP256A, error) {
	k := &edKeyP256A{c: c}
	var x, y field.P256A
	if !x.SetBytes(xy[:edSizeP256A]) || !y.SetBytes(xy[edSizeP256A:2*edSizeP256A]) {
		return nil, ErrRange
	}
	if !c.contains(&x, &y) {
		return nil, ErrCurve
	}
	if !c.enter(&k.p, &x, &y) {
		return nil, ErrSubgroup
	}
	return k, nil
}

func (p *edAffineP256A) extended() (q edExtendedP256A) {
	q.u, q.v = p.u, p.v
	q.z.SetSmall(1)
	q.t.Mul(&p.u, &p.v)
	return q
}

func (c *edwardsP256A) cached(p *edExtendedP256A) (q edCachedP256A) {
	q.u, q.v, q.z = p.u, p.v, p.z
	q.dt.Mul(&p.t, &c.d)
	return q
}

func (p *edAffineP256A) negate() {
	var zero field.P256A
	p.u.Sub(&zero, &p.u)
	p.duv.Sub(&zero, &p.duv)
}

// negateIf sets p to its opposite where mask is all ones, in constant time.
func (p *edCachedP256A) negateIf(mask uint64) {
	var u, dt field.P256A
	u.Sub(&u, &p.u)
	dt.Sub(&dt, &p.dt)
	p.u.Assign(&u, mask)
	p.dt.Assign(&dt, mask)
}

func (p *edCachedP256A) negate() {
	var zero field.P256A
	p.u.Sub(&zero, &p.u)
	p.dt.Sub(&zero, &p.dt)
}

// comb returns the table of the base point.
func (c *edwardsP256A) comb() *edCombP256A {
	c.once.Do(func() { c.table = c.combOf(c.base) })
	return c.table
}

// combOf makes a table: window i holds the odd multiples of 2^(baseBits*i) times the
// point, so that a scalar needs one addition a window and no doubling.
func (c *edwardsP256A) combOf(first edAffineP256A) *edCombP256A {
	table := new(edCombP256A)
	for i := range table {
		// The odd multiples, and the even one with which the next window begins.
		var p [1<<(baseBits-1) + 1]edExtendedP256A
		p[0] = first.extended()
		var twice edExtendedP256A
		c.double(&twice, &p[0])
		two := c.cached(&twice)
		for j := 1; j < len(p)-1; j++ {
			c.add(&p[j], &p[j-1], &two)
		}
		c.addMixed(&p[len(p)-1], &p[len(p)-2], &first)
		var a [len(p)]edAffineP256A
		c.normalize(a[:], p[:])
		for j := range a[:len(a)-1] {
			table[i].u[j], table[i].v[j], table[i].duv[j] = a[j].u, a[j].v, a[j].duv
		}
		first = a[len(a)-1]
	}
	return table
}

// normalize sets a to the affine coordinates of p. It needs only one inversion, that of
// the product of all z.
func (c *edwardsP256A) normalize(a []edAffineP256A, p []edExtendedP256A) {
	products := make([]field.P256A, len(p)) // products[i] is the product of the z before p[i]
	var product field.P256A
	product.SetSmall(1)
	for i := range p {
		products[i] = product
		product.Mul(&product, &p[i].z)
	}
	product.Invert(&product)
	for i := len(p) - 1; i >= 0; i-- {
		var z field.P256A
		z.Mul(&product, &products[i])
		product.Mul(&product, &p[i].z)
		a[i].u.Mul(&p[i].u, &z)
		a[i].v.Mul(&p[i].v, &z)
		a[i].duv.Mul(&p[i].t, &z)
		a[i].duv.Mul(&a[i].duv, &c.d)
	}
}

// edKeyP256A is a point with its curve and its table, which may be nil.
type edKeyP256A struct {
	c     *edwardsP256A
	p     edAffineP256A
	table *edCombP256A
}

func (k *edKeyP256A) Precompute() Point {
	if k.table != nil {
		return k
	}
	return &edKeyP256A{k.c, k.p, k.c.combOf(k.p)}
}

// mulOne is Mul without lanes.
func (k *edKeyP256A) mulOne(xy []byte, n *field.Scalar) bool {
	c := k.c
	var u, v, z, dt [1 << (pointBits - 1)]field.P256A // 1, 3, 5... times the point
	p := k.p.extended()
	var twice edExtendedP256A
	c.double(&twice, &p)
	two := c.cached(&twice)
	for j := range u {
		if j > 0 {
			c.add(&p, &p, &two)
		}
		q := c.cached(&p)
		u[j], v[j], z[j], dt[j] = q.u, q.v, q.z, q.dt
	}
	var buf [maxDigits]int8
	digits := buf[:windows(edSizeP256A, pointBits)]
	recode(digits, n, c.order, pointBits)
	var sum edExtendedP256A
	for i := len(digits) - 1; i >= 0; i-- {
		index, negative := split(digits[i])
		var e edCachedP256A
		e.u.Lookup(u[:], index)
		e.v.Lookup(v[:], index)
		e.z.Lookup(z[:], index)
		e.dt.Lookup(dt[:], index)
		e.negateIf(negative)
		if i == len(digits)-1 {
			sum.u, sum.v, sum.z = e.u, e.v, e.z // the next operation is a doubling, which does not read t
			continue
		}
		for range pointBits - 1 {
			c.doubleWithoutT(&sum, &sum)
		}
		c.double(&sum, &sum)
		c.add(&sum, &sum, &e)
	}
	clear(digits)
	return c.write(xy, &sum)
}

// edKeyBitsP256A is the width of the non-adjacent form for a point without a table.
const edKeyBitsP256A = 5

func (k *edKeyP256A) SumHasX(r, s, t *field.Scalar) bool {
	c := k.c
	var sum edExtendedP256A
	if k.table != nil {
		sum.v.SetSmall(1)
		sum.z.SetSmall(1)
		c.comb().accumulate(c, &sum, s)
		k.table.accumulate(c, &sum, t)
	} else {
		sum = k.sum(s, t)
	}
	return c.hasX(&sum, r)
}

// hasX reports whether x of sum is r modulo q.
func (c *edwardsP256A) hasX(sum *edExtendedP256A, r *field.Scalar) bool {
	// Compare x = s*(z+v)/(z-v) + t with r, r+q, ... below p, without a division.
	// For infinity z-v is 0 and s*(z+v) is not, so nothing is equal.
	var plus, minus field.P256A
	plus.Add(&sum.z, &sum.v)
	plus.Mul(&plus, &c.s)
	minus.Sub(&sum.z, &sum.v)
	var b [edSizeP256A]byte
	for x, more := *r, true; more; more = nextCandidate(&x, c.order, edSizeP256A) {
		var f field.P256A
		x.PutBytes(b[:])
		if !f.SetBytes(b[:]) {
			return false
		}
		f.Sub(&f, &c.t)
		f.Mul(&f, &minus)
		f.Sub(&f, &plus)
		if f.IsZero() == 1 {
			return true
		}
	}
	return false
}

// accumulate adds n times the point of the table to sum, in variable time.
func (table *edCombP256A) accumulate(c *edwardsP256A, sum *edExtendedP256A, n *field.Scalar) {
	var digits [edWindowsP256A]int8
	recode(digits[:], n, c.order, baseBits)
	for i, d := range digits {
		index, negative := split(d)
		e := edAffineP256A{table[i].u[index], table[i].v[index], table[i].duv[index]}
		if negative != 0 {
			e.negate()
		}
		c.addMixed(sum, sum, &e)
	}
}

// sumOne returns s*G plus t times the point, in variable time and without a table of
// the point. The scalar t may have any size. The coordinate t of the result is
// undefined.
func (k *edKeyP256A) sumOne(s, t *field.Scalar) edExtendedP256A {
	c := k.c
	base := &c.comb()[0]
	var odd [1 << (edKeyBitsP256A - 2)]edCachedP256A
	p := k.p.extended()
	odd[0] = c.cached(&p)
	var twice edExtendedP256A
	c.double(&twice, &p)
	two := c.cached(&twice)
	for j := 1; j < len(odd); j++ {
		c.add(&p, &p, &two)
		odd[j] = c.cached(&p)
	}
	var ds, dt [maxDigits]int8
	length := max(naf(&ds, s, baseBits+1), naf(&dt, t, edKeyBitsP256A))
	var sum edExtendedP256A
	sum.v.SetSmall(1)
	sum.z.SetSmall(1)
	for i := length - 1; i >= 0; i-- {
		if ds[i]|dt[i] == 0 {
			c.doubleWithoutT(&sum, &sum)
			continue
		}
		c.double(&sum, &sum)
		if d := ds[i]; d != 0 {
			index, negative := split(d)
			e := edAffineP256A{base.u[index], base.v[index], base.duv[index]}
			if negative != 0 {
				e.negate()
			}
			c.addMixed(&sum, &sum, &e)
		}
		if d := dt[i]; d != 0 {
			index, negative := split(d)
			e := odd[index]
			if negative != 0 {
				e.negate()
			}
			c.add(&sum, &sum, &e)
		}
	}
	return sum
}
