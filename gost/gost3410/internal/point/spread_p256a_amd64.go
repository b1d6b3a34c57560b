//go:build !purego

package point

import (
	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/twin"
)

// MulBase spreads one scalar over the lanes where the processor can.
func (c *weierstrassP256A) MulBase(xy []byte, k *field.Scalar) bool {
	// What fails is k = 0, a k that no caller has but by a chance of 2^-250, or a fault.
	return twin.IFMA && c.mulBaseSpread(xy, k) || c.mulBaseOne(xy, k)
}

// mulBaseSpread writes k*G to xy and reports whether it is a point of the curve. It
// runs in constant time. Lane l adds up windows l, l+8, l+16..., then the lanes are
// added up in three steps. Additions that meet an exception leave the denominator 0
// for good, so that k is refused. There is none but by chance: as integers, summands
// in a lane differ as mulBaseOne says, and the sum of lane l is an odd multiple of
// 2^(baseBits*l), so no two lanes are equal or opposite; modulo q they may be, for a
// few k.
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
	return c.contains(&a) // with a denominator of 0 it is 0, 0, which is not
}

// addWindows adds k times the point of a table to what the lanes hold together, all
// windows of one lane to that lane.
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

// addLanes adds all lanes to the first.
func (v *spreadP256AWork) addLanes() {
	for n := lanes / 2; n > 0; n /= 2 {
		for l := range n {
			v.other.copyLane(l, &v.sum, n+l)
		}
		v.addOther()
	}
}

// sumSpread sets sum to s*G + t*P where P has a table for lanes, and reports whether it
// did: not where an addition met an exception, which left the denominator 0.
func (k *keyP256A) sumSpread(sum *jacobianP256A, s, t *field.Scalar) bool {
	if !twin.IFMA || k.lanes.table == nil {
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

// copyLane sets the point in a lane to that in a lane of q.
func (p *lanesP256APoint) copyLane(lane int, q *lanesP256APoint, from int) {
	for i := range p {
		for j := range p[i] {
			p[i][j][lane] = q[i][j][from]
		}
	}
}

// spreadP256AWork is what a multiplication spread over lanes works on.
type spreadP256AWork struct {
	lanesP256AWork
	other                             lanesP256APoint
	pz, qz, u, s, h, r, hh, hhh, diff laneP256A
	begun                             bool // the lanes hold something; last, for the others' alignment
}

// addOther adds other to the sum in all lanes, with the operations of
// addJacobianP256A and finishP256A but no branch: a sum that is an exception gets the
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
