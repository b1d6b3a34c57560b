// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// oddP256A is the number of odd multiples of the point of a key in a check of sums in
// lanes.
const oddP256A = 1 << (pointBits - 1)

// SumsHaveX uses lanes for eight sums at a time. With 3 sums or more, lanes are faster
// than single sums. With 4 sums or more of one point with a table, so is the table in lanes.
func (c *weierstrassP256A) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	for impl.IFMA && len(points) >= 3 {
		n := min(lanes, len(points))
		switch k := sharedP256A(points[:n]); {
		case k == nil:
			c.sumLanes(points[:n], r[:n], s[:n], t[:n], ok[:n])
		case n < 4:
			sumEach(points[:n], r[:n], s[:n], t[:n], ok[:n])
		default:
			c.sumTables(k, r[:n], s[:n], t[:n], ok[:n])
		}
		points, r, s, t, ok = points[n:], r[n:], s[n:], t[n:], ok[n:]
	}
	sumEach(points, r, s, t, ok)
}

// sharedP256A returns the key of all points if it is one key with a table for lanes, or nil.
func sharedP256A(points []Point) *keyP256A {
	k := points[0].(*keyP256A)
	for _, p := range points[1:] {
		if p != points[0] {
			return nil
		}
	}
	if k.lanes.table == nil {
		return nil
	}
	return k
}

// sumTables is SumsHaveX for at most eight sums of the point k. It adds up entries of the
// comb and of the table of k, without a doubling. A lane with an exception has the denominator
// 0, as in sumLanes, and is computed again by itself.
func (c *weierstrassP256A) sumTables(k *keyP256A, r, s, t []field.Scalar, ok []bool) {
	v := c.combSums(s)
	v.addTable(k.lanes.table, t, c.order, false)
	for l := range r {
		sum := v.lane(l)
		if sum.z.IsZero() == 1 {
			ok[l] = k.SumHasX(&r[l], &s[l], &t[l])
			continue
		}
		ok[l] = hasXP256A(c, &sum, &r[l])
	}
}

// sumLanes is SumsHaveX for at most eight points. It computes s*G with the comb and t
// times the point with windows. An addition that meets an exception sets the
// denominator to 0, where it stays. Such a lane is computed again by itself. That
// happens for t = 0, s = 0 and a few other values.
func (c *weierstrassP256A) sumLanes(points []Point, r, s, t []field.Scalar, ok []bool) {
	base := c.combSums(s)
	v := new(lanesP256AWork)
	table := c.oddLanes(points, v)
	const count = (8*sizeP256A + pointBits - 1) / pointBits
	var digits [lanes][count]int8
	for l := range digits {
		one := &field.Scalar{1}
		if l < len(points) {
			one = &t[l]
		}
		recode(digits[l][:], one, c.order, pointBits)
	}
	for i := count - 1; i >= 0; i-- {
		for l := range lanes {
			index, negative := split(digits[l][i])
			e := &table[l][index]
			y := &e.y
			if negative != 0 {
				y = &e.minus
			}
			for j := range e.x {
				v.e[0][j][l], v.e[1][j][l] = e.x[j], y[j]
			}
		}
		if i == count-1 {
			v.begin()
			continue
		}
		for range pointBits {
			ifmaTangentP256A(&v.sum, &v.sum)
		}
		ifmaChordP256A(&v.sum, &v.sum, &v.e)
	}
	for l, p := range points {
		a, b := base.lane(l), v.lane(l)
		if a.z.IsZero()|b.z.IsZero() == 1 {
			ok[l] = p.SumHasX(&r[l], &s[l], &t[l])
			continue
		}
		addJacobianP256A(c, &a, &a, &b)
		ok[l] = hasXP256A(c, &a, &r[l])
	}
}

// lane returns the sum in a lane.
func (v *lanesP256AWork) lane(l int) jacobianP256A {
	return jacobianP256A{v.sum[0].get(l), v.sum[1].get(l), v.sum[2].get(l)}
}

// entryP256A is an affine point x, y and minus = -y, in limbs of 52 bits.
type entryP256A struct{ x, y, minus [limbsP256A]uint64 }

// oddLanes returns 1, 3, 5... times the point of each lane. A lane without a point has
// the point of the first lane.
//
// Let 2P be X, Y, Z. The map from x, y to x*Z^2, y*Z^3 leads to an isomorphic curve,
// where 2P is X, Y. So 2P has the denominator 1 there and can be added repeatedly. The
// denominators of the multiples on this curve are Z times those on the isomorphic
// curve.
func (c *weierstrassP256A) oddLanes(points []Point, v *lanesP256AWork) *[lanes][oddP256A]entryP256A {
	for l := range lanes {
		p := points[0]
		if l < len(points) {
			p = points[l]
		}
		v.e[0].set(l, &p.(*keyP256A).p.x)
		v.e[1].set(l, &p.(*keyP256A).p.y)
	}
	v.begin()
	var twice, p lanesP256APoint
	var zz, zzz laneP256A
	ifmaTangentP256A(&twice, &v.sum)
	ifmaSqrP256A(&zz, &twice[2])
	ifmaMulP256A(&zzz, &zz, &twice[2])
	ifmaMulP256A(&p[0], &v.e[0], &zz)
	ifmaMulP256A(&p[1], &v.e[1], &zzz)
	p[2] = v.sum[2] // 1
	v.e[0], v.e[1] = twice[0], twice[1]

	var all [lanes * oddP256A]jacobianP256A
	var before [len(all)]field.P256A // before[i] is the product of the denominators before i
	for j := range oddP256A {
		if j > 0 {
			ifmaChordP256A(&p, &p, &v.e)
		}
		var z laneP256A
		ifmaMulP256A(&z, &p[2], &twice[2])
		for l := range lanes {
			all[oddP256A*l+j] = jacobianP256A{p[0].get(l), p[1].get(l), z.get(l)}
		}
	}
	// One inversion for all, as in normalizeP256A. No multiple is infinity.
	var product field.P256A
	product.SetSmall(1)
	for i := range all {
		before[i] = product
		product.Mul(&product, &all[i].z)
	}
	product.Invert(&product)
	table := new([lanes][oddP256A]entryP256A)
	for i := len(all) - 1; i >= 0; i-- {
		var z, zz, x, y, minus field.P256A
		z.Mul(&product, &before[i])
		product.Mul(&product, &all[i].z)
		zz.Sqr(&z)
		x.Mul(&all[i].x, &zz)
		zz.Mul(&zz, &z)
		y.Mul(&all[i].y, &zz)
		minus.Sub(&minus, &y)
		e := &table[i/oddP256A][i%oddP256A]
		for _, n := range []struct {
			limbs []uint64
			of    *field.P256A
		}{{e.x[:], &x}, {e.y[:], &y}, {e.minus[:], &minus}} {
			words := toLaneP256A(n.of)
			split52(n.limbs, words[:])
		}
	}
	return table
}
