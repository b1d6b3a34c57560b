// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// MulBase spreads one scalar over the lanes if the processor supports it.
func (c *weierstrassP256A) MulBase(xy []byte, k *field.Scalar) bool {
	// mulBaseSpread fails for k = 0, for a few k (a probability of 2^-250) and after a
	// hardware fault. mulBaseOne then decides.
	return impl.IFMA && c.mulBaseSpread(xy, k) || c.mulBaseOne(xy, k)
}

// mulBaseSpread writes k*G to xy and reports whether it is a point of the curve. It
// runs in constant time. Lane l adds up windows l, l+8, l+16... Then the lanes are
// added up in three steps.
//
// An addition that meets an exception sets the denominator to 0, where it stays, so
// mulBaseSpread returns false for this k. That is very rare. As integers, the summands
// in a lane differ for the reasons given in mulBaseOne. The sum of lane l is an odd
// multiple of 2^(baseBits*l), so no two lanes are equal or opposite as integers. Modulo
// q they are equal or opposite only for a few k.
func (c *weierstrassP256A) mulBaseSpread(xy []byte, k *field.Scalar) bool {
	v := new(spreadP256AWork)
	v.addWindows(c.combLanes(), k, c.order)
	v.addLanes()
	sum := v.lane(0)
	*v = spreadP256AWork{}

	var z, zz field.P256A
	z.Invert(&sum.z)
	zz.Sqr(&z)
	a := affineP256A{}
	a.x.Mul(&sum.x, &zz)
	zz.Mul(&zz, &z)
	a.y.Mul(&sum.y, &zz)
	a.x.PutBytes(xy[:sizeP256A])
	a.y.PutBytes(xy[sizeP256A : 2*sizeP256A])
	return c.contains(&a) // false for a denominator of 0, which gives 0, 0
}

// addWindows adds k times the point of a table to the sum of all lanes. Each lane adds
// up its own windows.
func (v *spreadP256AWork) addWindows(table *[windowsP256A]windowLanesP256A, k *field.Scalar, order *field.Modulus) {
	var digits [windowsP256A]int8
	recode(digits[:], k, order, baseBits)
	for first := 0; first < len(digits); first += lanes {
		n := min(lanes, len(digits)-first)
		for l := range n {
			v.index[l], v.negative[l] = split(digits[first+l])
		}
		const step = len(table[0]) * len(rowP256A{}) * 8
		ifmaSpreadP256A(&v.e[0], &table[first][0], step, n, &v.index)
		ifmaSpreadP256A(&v.e[1], &table[first][limbsP256A], step, n, &v.index)
		ifmaNegateP256A(&v.e[1], &v.negative)
		if !v.begun {
			v.begin()
			v.begun = true
			continue
		}
		v.other = v.sum
		ifmaChordP256A(&v.sum, &v.sum, &v.e)
		for l := n; l < lanes; l++ { // lanes without a window
			v.sum.copyLane(l, &v.other, l)
		}
	}
	clear(digits[:])
}

// addLanes adds all lanes to the first lane.
func (v *spreadP256AWork) addLanes() {
	for n := lanes / 2; n > 0; n /= 2 {
		for l := range n {
			v.other.copyLane(l, &v.sum, n+l)
		}
		v.addOther()
	}
}

// sumSpread sets sum to s*G + t*P if P has a table for lanes, and reports whether it
// did. It also reports false if an addition met an exception, which sets the
// denominator to 0.
func (k *keyP256A) sumSpread(sum *jacobianP256A, s, t *field.Scalar) bool {
	if !impl.IFMA || k.lanes.table == nil {
		return false
	}
	v := new(spreadP256AWork)
	v.addWindows(k.c.combLanes(), s, k.c.order)
	v.addWindows(k.lanes.table, t, k.c.order)
	v.addLanes()
	lane := v.lane(0)
	if lane.z.IsZero() == 1 {
		return false
	}
	*sum = lane
	return true
}

// lanesP256APoint are eight points in Jacobian coordinates.
type lanesP256APoint [3]laneP256A

// copyLane sets the point in a lane to the point in the lane from of q.
func (p *lanesP256APoint) copyLane(lane int, q *lanesP256APoint, from int) {
	for i := range p {
		for j := range p[i] {
			p[i][j][lane] = q[i][j][from]
		}
	}
}

// spreadP256AWork holds the variables of a multiplication spread over lanes.
type spreadP256AWork struct {
	lanesP256AWork
	other                             lanesP256APoint
	pz, qz, u, s, h, r, hh, hhh, diff laneP256A
	begun                             bool // the lanes hold a sum; the last field, for the alignment of the others
}

// addOther adds other to the sum in all lanes. It has the operations of
// addJacobianP256A and finishP256A, but no branch. In an exception the sum gets the
// denominator 0.
func (v *spreadP256AWork) addOther() {
	p, q := &v.sum, &v.other
	ifmaSqrP256A(&v.pz, &p[2])
	ifmaSqrP256A(&v.qz, &q[2])
	ifmaMulP256A(&v.u, &p[0], &v.qz)
	ifmaMulP256A(&v.h, &q[0], &v.pz)
	ifmaMulP256A(&v.s, &p[1], &q[2])
	ifmaMulP256A(&v.s, &v.s, &v.qz)
	ifmaMulP256A(&v.r, &q[1], &p[2])
	ifmaMulP256A(&v.r, &v.r, &v.pz)
	ifmaSubP256A(&v.h, &v.h, &v.u)
	ifmaSubP256A(&v.r, &v.r, &v.s)
	ifmaMulP256A(&v.pz, &p[2], &q[2])
	ifmaSqrP256A(&v.hh, &v.h)
	ifmaMulP256A(&v.hhh, &v.hh, &v.h)
	ifmaMulP256A(&v.u, &v.u, &v.hh)
	ifmaMulP256A(&p[2], &v.pz, &v.h)
	ifmaSqrP256A(&p[0], &v.r)
	ifmaSubP256A(&p[0], &p[0], &v.hhh)
	ifmaSubP256A(&p[0], &p[0], &v.u)
	ifmaSubP256A(&p[0], &p[0], &v.u)
	ifmaSubP256A(&v.diff, &v.u, &p[0])
	ifmaMulP256A(&v.diff, &v.diff, &v.r)
	ifmaMulP256A(&v.hhh, &v.hhh, &v.s)
	ifmaSubP256A(&p[1], &v.diff, &v.hhh)
}
