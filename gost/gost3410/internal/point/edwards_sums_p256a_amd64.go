// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// SumsHaveX uses lanes for eight sums at a time. With 4 sums or more, lanes are faster
// than single sums.
func (c *edwardsP256A) SumsHaveX(points []Point, r, s, t []field.Scalar, ok []bool) {
	for impl.IFMA && len(points) >= 4 {
		n := min(lanes, len(points))
		c.sumLanes(points[:n], r[:n], s[:n], t[:n], ok[:n])
		points, r, s, t, ok = points[n:], r[n:], s[n:], t[n:], ok[n:]
	}
	sumEach(points, r, s, t, ok)
}

// sumsEdP256AWork holds the variables of a check of sums in lanes. It must be on the
// heap, where the allocator puts objects of this size at multiples of 64.
type sumsEdP256AWork struct {
	sum      lanesEdP256APoint
	odd      [1 << (pointBits - 1)]lanesEdP256APoint // 1, 3, 5... times the points, prepared for addition
	e        lanesEdP256APoint                       // the summand
	affine   [3]laneP256A                            // the points
	negative [lanes]uint64
}

// sumLanes is SumsHaveX for at most eight points. Lanes without a point repeat the
// first one. It computes s*G with the comb and t times the point with windows. Every
// addition is complete, so no lane meets an exception.
func (c *edwardsP256A) sumLanes(points []Point, r, s, t []field.Scalar, ok []bool) {
	v := new(sumsEdP256AWork)
	var of [lanes]int
	for l := range points {
		of[l] = l
	}
	base := &c.combSums(s).sum
	c.oddLanes(v, points, &of)

	const count = (8*edSizeP256A + pointBits - 1) / pointBits
	var digits [lanes][count]int8
	for l, i := range of {
		recode(digits[l][:], &t[i], c.order, pointBits)
	}
	for i := count - 1; i >= 0; i-- {
		for l := range lanes {
			var index uint64
			index, v.negative[l] = split(digits[l][i])
			from := &v.odd[index]
			for j := range from {
				for k := range from[j] {
					v.e[j][k][l] = from[j][k][l]
				}
			}
		}
		ifmaNegateP256A(&v.e[0], &v.negative)
		ifmaNegateP256A(&v.e[3], &v.negative)
		if i == count-1 {
			v.sum[0], v.sum[1], v.sum[2] = v.e[0], v.e[1], v.e[2] // the next operation is a doubling, which does not read t
			continue
		}
		for range pointBits - 1 {
			ifmaEdDoubleWithoutTP256A(&v.sum, &v.sum)
		}
		ifmaEdDoubleP256A(&v.sum, &v.sum)
		ifmaEdAddP256A(&v.sum, &v.sum, &v.e)
	}
	ifmaMulP256A(&base[3], &base[3], &c.lanes.d)
	ifmaEdAddP256A(&v.sum, &v.sum, base)
	for l := range points {
		sum := edExtendedP256A{u: v.sum[0].get(l), v: v.sum[1].get(l), z: v.sum[2].get(l)}
		ok[l] = c.hasX(&sum, &r[l])
	}
}

// begin sets p to affine points.
func (p *lanesEdP256APoint) begin(a *[3]laneP256A) {
	p[0], p[1], p[2] = a[0], a[1], laneP256A{}
	for l := range lanes {
		p[2][0][l] = 1
	}
	ifmaMulP256A(&p[3], &p[0], &p[1])
}

// oddLanes sets v.odd to odd multiples of the points.
func (c *edwardsP256A) oddLanes(v *sumsEdP256AWork, points []Point, of *[lanes]int) {
	for l, i := range of {
		p := &points[i].(*edKeyP256A).p
		v.affine[0].set(l, &p.u)
		v.affine[1].set(l, &p.v)
	}
	v.sum.begin(&v.affine)
	var twice lanesEdP256APoint
	ifmaEdDoubleP256A(&twice, &v.sum)
	ifmaMulP256A(&twice[3], &twice[3], &c.lanes.d)
	for j := range v.odd {
		if j > 0 {
			ifmaEdAddP256A(&v.sum, &v.sum, &twice)
		}
		v.odd[j] = v.sum
		ifmaMulP256A(&v.odd[j][3], &v.sum[3], &c.lanes.d)
	}
}
