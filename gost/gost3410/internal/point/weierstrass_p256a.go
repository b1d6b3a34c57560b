// SPDX-License-Identifier: Apache-2.0

package point

import (
	"sync"

	"tamga/gost/gost3410/internal/field"
)

const (
	sizeP256A    = 8 * len(field.P256A{})
	windowsP256A = (8*sizeP256A + baseBits - 1) / baseBits // the value of windows(sizeP256A, baseBits)
)

// weierstrassP256A is a curve y^2 = x^3 + a*x + b of prime order.
type weierstrassP256A struct {
	a, b, b3 field.P256A // b3 is 3b
	smallB   uint64      // b if it is below 2^32, else 0
	base     affineP256A
	order    *field.Modulus

	// The table is built at the first use of the base point.
	once  sync.Once
	table *combP256A
	lanes lanesP256A // the table in the order that lanes read
}

// windowP256A holds the odd multiples of some point: 1, 3, ... 2^baseBits - 1 times.
type windowP256A struct {
	x, y [1 << (baseBits - 1)]field.P256A
}

// combP256A is the table of a point, see combOf.
type combP256A [windowsP256A]windowP256A

// affineP256A is a point other than infinity.
type affineP256A struct{ x, y field.P256A }

// projectiveP256A is the point x/z, y/z. Infinity is 0, 1, 0.
type projectiveP256A struct{ x, y, z field.P256A }

// jacobianP256A is the point x/z^2, y/z^3. Infinity has z = 0. Its formulas are fast,
// but have exceptions. So secrets use them only where no exception can occur.
type jacobianP256A struct{ x, y, z field.P256A }

func newWeierstrassP256A(p parameters) *weierstrassP256A {
	c := &weierstrassP256A{order: p.modulus(sizeP256A)}
	p.read(sizeP256A, c.a.SetBytes, p.a)
	p.read(sizeP256A, c.b.SetBytes, p.b)
	p.read(sizeP256A, c.base.x.SetBytes, p.x)
	p.read(sizeP256A, c.base.y.SetBytes, p.y)
	c.b3.MulSmall(&c.b, 3)
	c.smallB = p.smallB
	return c
}

func (c *weierstrassP256A) Size() int             { return sizeP256A }
func (c *weierstrassP256A) Order() *field.Modulus { return c.order }
func (c *weierstrassP256A) Cofactor() uint64      { return 1 }

// contains reports whether the point is on the curve.
func (c *weierstrassP256A) contains(p *affineP256A) bool {
	var l, r field.P256A
	r.Sqr(&p.x)
	r.Add(&r, &c.a)
	r.Mul(&r, &p.x)
	r.Add(&r, &c.b)
	l.Sqr(&p.y)
	l.Sub(&l, &r)
	return l.IsZero() == 1
}

func (c *weierstrassP256A) Parse(xy []byte) (Point, error) {
	k := &keyP256A{c: c}
	if !k.p.x.SetBytes(xy[:sizeP256A]) || !k.p.y.SetBytes(xy[sizeP256A:2*sizeP256A]) {
		return nil, ErrRange
	}
	if !c.contains(&k.p) {
		return nil, ErrCurve
	}
	return k, nil // the order of the curve is prime, so every point is in the group of G
}

// ParseMultiple is Parse, because Parse does no more than ParseMultiple must do.
func (c *weierstrassP256A) ParseMultiple(xy []byte) (Point, error) { return c.Parse(xy) }

// write writes the affine coordinates of p and reports whether they are a point of the
// curve. Infinity gives 0, 0, which is not on any of the curves.
func (c *weierstrassP256A) write(xy []byte, p *projectiveP256A) bool {
	var z field.P256A
	var a affineP256A
	z.Invert(&p.z)
	a.x.Mul(&p.x, &z)
	a.y.Mul(&p.y, &z)
	a.x.PutBytes(xy[:sizeP256A])
	a.y.PutBytes(xy[sizeP256A : 2*sizeP256A])
	return c.contains(&a)
}

// comb returns the table of the base point.
func (c *weierstrassP256A) comb() *combP256A {
	c.once.Do(func() { c.table = c.combOf(c.base) })
	return c.table
}

// combOf makes a table: window i holds the odd multiples of 2^(baseBits*i) times the
// point, so that a scalar needs one addition a window and no doubling.
func (c *weierstrassP256A) combOf(first affineP256A) *combP256A {
	table := new(combP256A)
	for i := range table {
		// The odd multiples, and the even one with which the next window begins.
		var p [1<<(baseBits-1) + 1]projectiveP256A
		p[0] = first.projective()
		var twice projectiveP256A
		c.double(&twice, &p[0])
		for j := 1; j < len(p)-1; j++ {
			c.add(&p[j], &p[j-1], &twice)
		}
		c.addMixed(&p[len(p)-1], &p[len(p)-2], &first)
		var a [len(p)]affineP256A
		normalizeP256A(a[:], p[:])
		for j := range a[:len(a)-1] {
			table[i].x[j], table[i].y[j] = a[j].x, a[j].y
		}
		first = a[len(a)-1]
	}
	return table
}

func (p *affineP256A) projective() (q projectiveP256A) {
	q.x, q.y = p.x, p.y
	q.z.SetSmall(1)
	return q
}

// normalizeP256A sets a to the affine coordinates of p. No point may be infinity. It
// needs only one inversion, that of the product of all z.
func normalizeP256A(a []affineP256A, p []projectiveP256A) {
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
		a[i].x.Mul(&p[i].x, &z)
		a[i].y.Mul(&p[i].y, &z)
	}
}

// mulBaseOne is MulBase without lanes.
func (c *weierstrassP256A) mulBaseOne(xy []byte, k *field.Scalar) bool {
	table := c.comb()
	var digits [windowsP256A]int8
	recode(digits[:], k, c.order, baseBits)
	var sum jacobianP256A
	var last projectiveP256A
	for i, d := range digits {
		index, negative := split(d)
		var e affineP256A
		field.LookupPairP256A(&e.x, &e.y, table[i].x[:], table[i].y[:], index)
		e.negateIf(negative)
		switch i {
		case 0:
			sum = e.jacobian()
		case len(digits) - 1:
			// Only here can the sum and e be equal or opposite modulo q.
			last = sum.projective()
			c.addMixed(&last, &last, &e)
		default:
			// The sum so far is an odd multiple of G, less than 2^(baseBits*i) in
			// magnitude. e is a multiple of at least that magnitude. Together they are
			// below 2^(baseBits*(i+1)), which is below q. So they are neither equal
			// nor opposite.
			c.addDistinct(&sum, &sum, &e)
		}
	}
	clear(digits[:])
	return c.write(xy, &last)
}

// negateIf sets p = -p if mask is all ones and does not change p if mask is 0.
func (p *affineP256A) negateIf(mask uint64) {
	var minus field.P256A
	minus.Sub(&minus, &p.y)
	p.y.Assign(&minus, mask)
}

// jacobian returns p with the denominator 1.
func (p *affineP256A) jacobian() (q jacobianP256A) {
	q.x, q.y = p.x, p.y
	q.z.SetSmall(1)
	return q
}

// projective returns p as x*z, y, z^3. Infinity becomes 0, y, 0.
func (p *jacobianP256A) projective() (q projectiveP256A) {
	q.x.Mul(&p.x, &p.z)
	q.y = p.y
	q.z.Sqr(&p.z)
	q.z.Mul(&q.z, &p.z)
	return q
}

// chordP256A sets z = p + q. The points must not be infinity, equal or opposite. In
// these exceptions it sets z.z to 0, without a branch.
func chordP256A(z, p *jacobianP256A, q *affineP256A) {
	var zz, h, r, hh, hhh, v, t field.P256A
	zz.Sqr(&p.z)
	h.Mul(&q.x, &zz)
	t.Mul(&p.z, &zz)
	h.Sub(&h, &p.x)
	r.Mul(&q.y, &t)
	hh.Sqr(&h)
	r.Sub(&r, &p.y)
	hhh.Mul(&hh, &h)
	v.Mul(&p.x, &hh)
	t.Sqr(&r)
	t.Sub(&t, &hhh)
	t.Sub(&t, &v)
	hhh.Mul(&p.y, &hhh)
	z.z.Mul(&p.z, &h)
	z.x.Sub(&t, &v)
	v.Sub(&v, &z.x)
	v.Mul(&v, &r)
	z.y.Sub(&v, &hhh)
}

// keyP256A is a point with its curve. If known is true, it also has a table: in the
// field lanes if the processor supports lanes, else in the field table.
type keyP256A struct {
	c     *weierstrassP256A
	p     affineP256A
	known bool
	table *combP256A
	lanes lanesP256A
}

func (k *keyP256A) Precompute() Point {
	if k.known {
		return k
	}
	known := &keyP256A{c: k.c, p: k.p, known: true}
	if table := k.c.combOf(k.p); !known.lanes.take(table) {
		known.table = table
	}
	return known
}

func (k *keyP256A) Mul(xy []byte, n *field.Scalar) bool {
	c := k.c
	var odd [1 << (pointBits - 1)]projectiveP256A // 1, 3, 5... times the point
	odd[0] = k.p.projective()
	var twice projectiveP256A
	c.double(&twice, &odd[0])
	for j := 1; j < len(odd); j++ {
		c.add(&odd[j], &odd[j-1], &twice)
	}
	var a [len(odd)]affineP256A
	normalizeP256A(a[:], odd[:])
	var table [2][len(odd)]field.P256A
	for j := range a {
		table[0][j], table[1][j] = a[j].x, a[j].y
	}
	var buf [maxDigits]int8
	digits := buf[:windows(sizeP256A, pointBits)]
	recode(digits, n, c.order, pointBits)
	var sum jacobianP256A
	for i := len(digits) - 1; ; i-- {
		index, negative := split(digits[i])
		var e affineP256A
		field.LookupPairP256A(&e.x, &e.y, table[0][:], table[1][:], index)
		e.negateIf(negative)
		if i == len(digits)-1 {
			sum = e.jacobian()
			continue
		}
		for range pointBits {
			c.doubleJacobian(&sum, &sum)
		}
		if i == 0 {
			// Only here can the sum and e be equal or opposite modulo q.
			last := sum.projective()
			c.addMixed(&last, &last, &e)
			clear(digits)
			return c.write(xy, &last)
		}
		// The highest digit is above 0, so the sum is now at least 2^pointBits times
		// the point, and e is less than that. Together they are at most about
		// 2q/2^(pointBits*i) times the point, which is below q. So they are neither
		// equal nor opposite.
		c.addDistinct(&sum, &sum, &e)
	}
}

// keyBitsP256A is the width of the non-adjacent form for a point without a table.
const keyBitsP256A = 5

func (k *keyP256A) SumHasX(r, s, t *field.Scalar) bool {
	var sum jacobianP256A // infinity
	switch {
	case k.sumSpread(&sum, s, t):
	case k.table != nil:
		k.c.comb().accumulate(k.c, &sum, s)
		k.table.accumulate(k.c, &sum, t)
	default:
		sum = k.sum(s, t)
	}
	return hasXP256A(k.c, &sum, r)
}

// accumulate adds n times the point of the table to sum, in variable time.
func (table *combP256A) accumulate(c *weierstrassP256A, sum *jacobianP256A, n *field.Scalar) {
	var digits [windowsP256A]int8
	recode(digits[:], n, c.order, baseBits)
	for i, d := range digits {
		index, negative := split(d)
		e := affineP256A{table[i].x[index], table[i].y[index]}
		e.negateIf(negative)
		addAffineP256A(c, sum, sum, &e)
	}
}

// sum returns s*G plus t times the point, in variable time, without a table of the
// point.
func (k *keyP256A) sum(s, t *field.Scalar) (sum jacobianP256A) {
	c := k.c
	base := &c.comb()[0]
	var odd [1 << (keyBitsP256A - 2)]jacobianP256A
	odd[0] = k.p.jacobian()
	var twice jacobianP256A
	c.doubleJacobian(&twice, &odd[0])
	for j := 1; j < len(odd); j++ {
		addJacobianP256A(c, &odd[j], &odd[j-1], &twice)
	}
	var ds, dt [maxDigits]int8
	length := max(naf(&ds, s, baseBits+1), naf(&dt, t, keyBitsP256A))
	for i := length - 1; i >= 0; i-- {
		c.doubleJacobian(&sum, &sum)
		if d := ds[i]; d != 0 {
			index, negative := split(d)
			e := affineP256A{base.x[index], base.y[index]}
			if negative != 0 {
				e.y.Sub(&field.P256A{}, &e.y)
			}
			addAffineP256A(c, &sum, &sum, &e)
		}
		if d := dt[i]; d != 0 {
			index, negative := split(d)
			e := odd[index]
			if negative != 0 {
				e.y.Sub(&field.P256A{}, &e.y)
			}
			addJacobianP256A(c, &sum, &sum, &e)
		}
	}
	return sum
}

// hasXP256A reports whether x of sum is r modulo q. It reports false for infinity.
func hasXP256A(c *weierstrassP256A, sum *jacobianP256A, r *field.Scalar) bool {
	if sum.z.IsZero() == 1 {
		return false
	}
	// Compare x/z^2 with r, r+q, ... below p, without an inversion.
	var zz field.P256A
	zz.Sqr(&sum.z)
	var b [sizeP256A]byte
	for x, more := *r, true; more; more = nextCandidate(&x, c.order, sizeP256A) {
		var f field.P256A
		x.PutBytes(b[:])
		if !f.SetBytes(b[:]) {
			return false
		}
		f.Mul(&f, &zz)
		f.Sub(&f, &sum.x)
		if f.IsZero() == 1 {
			return true
		}
	}
	return false
}

// addJacobianP256A sets z = p + q (add-2007-bl) for any p and q. It branches on
// exceptions.
func addJacobianP256A(c *weierstrassP256A, z, p, q *jacobianP256A) {
	if p.z.IsZero() == 1 {
		*z = *q
		return
	}
	if q.z.IsZero() == 1 {
		*z = *p
		return
	}
	var pz, qz, u, s, h, r field.P256A
	pz.Sqr(&p.z)
	qz.Sqr(&q.z)
	u.Mul(&p.x, &qz)
	h.Mul(&q.x, &pz)
	s.Mul(&p.y, &q.z)
	s.Mul(&s, &qz)
	r.Mul(&q.y, &p.z)
	r.Mul(&r, &pz)
	h.Sub(&h, &u)
	r.Sub(&r, &s)
	pz.Mul(&p.z, &q.z)
	finishP256A(c, z, p, &u, &s, &h, &r, &pz)
}

// addAffineP256A sets z = p + q for any p and q. It branches on exceptions.
func addAffineP256A(c *weierstrassP256A, z, p *jacobianP256A, q *affineP256A) {
	var sum jacobianP256A
	if c.addDistinct(&sum, p, q); sum.z.IsZero() == 1 {
		e := q.jacobian()
		addJacobianP256A(c, &sum, p, &e)
	}
	*z = sum
}

// finishP256A finishes an addition. u and s are x and y of p, and h and r are the
// differences to x and y of q. All have the common denominator w.
func finishP256A(c *weierstrassP256A, z, p *jacobianP256A, u, s, h, r, w *field.P256A) {
	if h.IsZero() == 1 {
		if r.IsZero() == 1 {
			c.doubleJacobian(z, p)
		} else {
			*z = jacobianP256A{}
		}
		return
	}
	var hh, hhh, v, x field.P256A
	hh.Sqr(h)
	hhh.Mul(&hh, h)
	v.Mul(u, &hh)
	x.Sqr(r)
	x.Sub(&x, &hhh)
	x.Sub(&x, &v)
	x.Sub(&x, &v)
	v.Sub(&v, &x)
	v.Mul(&v, r)
	hhh.Mul(&hhh, s)
	z.x = x
	z.y.Sub(&v, &hhh)
	z.z.Mul(w, h)
}
