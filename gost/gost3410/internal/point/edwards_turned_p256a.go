// SPDX-License-Identifier: Apache-2.0

package point

import (
	"sync"

	"tamga/gost/gost3410/internal/field"
)

// Multiples of the base point are added up in another form of the curve, in which an
// addition has seven products instead of eight. With r^2 = -d,
//
//	x = r*u,  y = 1/v,  -x^2 + y^2 = 1 - x^2*y^2/d
//
// Here a sum of two points has no denominator of zero, because they are multiples of
// the base point P, Q: a denominator is 0 only if v of P+Q or of P-Q is 0. Points with
// v = 0 have order 4, and the order of the base point is odd. For the same reason 1/v
// exists.

// edTurnedP256A is a point with the denominator 1, prepared for addition.
type edTurnedP256A struct {
	minus, plus field.P256A // y-x, y+x
	dxy         field.P256A // -2*x*y/d
}

// edTurnedWindowP256A holds what edWindowP256A holds.
type edTurnedWindowP256A struct {
	minus, plus, dxy [1 << (baseBits - 1)]field.P256A
}

// edTurnsP256A is the table of the base point. It is built at the first use.
type edTurnsP256A struct {
	once  sync.Once
	table *[edWindowsP256A]edTurnedWindowP256A
	root  field.P256A // 1/r
}

func (c *edwardsP256A) turned() *[edWindowsP256A]edTurnedWindowP256A {
	c.turns.once.Do(func() {
		var zero, d, r, factor field.P256A
		d.Sub(&zero, &c.d)
		r = rootP256A(&d)
		c.turns.root.Invert(&r)
		factor.Invert(&d) // -2/d
		factor.Add(&factor, &factor)

		table := new([edWindowsP256A]edTurnedWindowP256A)
		for i, w := range c.comb() {
			t := &table[i]
			// products[j] is the product of all v before entry j, product that of all.
			var products [len(w.v)]field.P256A
			var product field.P256A
			product.SetSmall(1)
			for j := range w.v {
				products[j] = product
				product.Mul(&product, &w.v[j])
			}
			product.Invert(&product)
			for j := len(w.v) - 1; j >= 0; j-- {
				var x, y field.P256A
				x.Mul(&w.u[j], &r)
				y.Mul(&product, &products[j])
				product.Mul(&product, &w.v[j])
				t.minus[j].Sub(&y, &x)
				t.plus[j].Add(&y, &x)
				t.dxy[j].Mul(&x, &y)
				t.dxy[j].Mul(&t.dxy[j], &factor)
			}
		}
		c.turns.table = table
	})
	return c.turns.table
}

// rootP256A returns a square root of x, which must be a square: x^((p+1)/4), because p is
// 3 modulo 4. It takes variable time in p only.
func rootP256A(x *field.P256A) (z field.P256A) {
	var one field.P256A
	one.SetSmall(1)
	z.Sub(&z, &one)
	var b [edSizeP256A]byte // p-1, of which the bits from 2 on are (p+1)/4 - 1
	z.PutBytes(b[:])
	z = one
	for i := 8*len(b) - 1; i >= 2; i-- {
		z.Sqr(&z)
		if b[i/8]>>(i%8)&1 == 1 {
			z.Mul(&z, x)
		}
	}
	z.Mul(&z, x)
	var square field.P256A
	square.Sqr(&z)
	if square.Sub(&square, x); square.IsZero() == 0 {
		panic("point: no square root")
	}
	return z
}

// pick sets e to the entry at index, or to its opposite where negative is all ones. It
// reads all entries.
func (w *edTurnedWindowP256A) pick(e *edTurnedP256A, index, negative uint64) {
	field.LookupTripleP256A(&e.minus, &e.plus, &e.dxy, w.minus[:], w.plus[:], w.dxy[:], index)
	var dxy field.P256A
	dxy.Sub(&dxy, &e.dxy)
	e.dxy.Assign(&dxy, negative)
	minus := e.minus
	e.minus.Assign(&e.plus, negative)
	e.plus.Assign(&minus, negative)
}

// extended returns the point with the denominator 4.
func (e *edTurnedP256A) extended() (p edExtendedP256A) {
	var x, y field.P256A // twice the coordinates
	x.Sub(&e.plus, &e.minus)
	y.Add(&e.plus, &e.minus)
	p.u.Add(&x, &x)
	p.v.Add(&y, &y)
	p.z.SetSmall(4)
	p.t.Mul(&x, &y)
	return p
}

// mulBaseOne is MulBase without lanes.
func (c *edwardsP256A) mulBaseOne(xy []byte, k *field.Scalar) bool {
	table := c.turned()
	var digits [edWindowsP256A]int8
	recode(digits[:], k, c.order, baseBits)
	var e edTurnedP256A
	index, negative := split(digits[0])
	table[0].pick(&e, index, negative)
	sum := e.extended()
	index, negative = split(digits[1])
	table[1].pick(&e, index, negative)
	for i := 2; i < len(digits); i++ {
		index, negative = split(digits[i])
		c.addThenPick(&sum, &e, &table[i], index, negative)
	}
	c.addThenPick(&sum, &e, &table[0], 0, 0) // the last addition; nothing uses this entry
	clear(digits[:])

	// u = x/(r*z) and v = z/y have the denominator y*z.
	var p edExtendedP256A
	p.u.Mul(&sum.u, &sum.v)
	p.u.Mul(&p.u, &c.turns.root)
	p.v.Sqr(&sum.z)
	p.z.Mul(&sum.z, &sum.v)
	return c.write(xy, &p)
}
