// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"sync"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// windowEdLanesP256A is a window of a table in the order that lanes read: for each limb
// of u, then of v, then of d*u*v, that limb of all entries.
type windowEdLanesP256A [3 * limbsP256A]rowP256A

// edLanesP256A is a copy of the table of the base point in the order that lanes read.
// It is built at its first use and a quarter larger than that of comb.
type edLanesP256A struct {
	once  sync.Once
	table *[edWindowsP256A]windowEdLanesP256A
	d     laneP256A // d in all lanes
}

// lanesEdP256APoint are eight points u/z, v/z with t = u*v/z. If they are prepared for
// addition, d*t takes the place of t.
type lanesEdP256APoint [4]laneP256A

// combLanes returns the table of comb in the order that lanes read.
func (c *edwardsP256A) combLanes() *[edWindowsP256A]windowEdLanesP256A {
	c.lanes.once.Do(func() {
		table := c.comb()
		lane := new([edWindowsP256A]windowEdLanesP256A)
		for i := range table {
			for j := range table[i].u {
				for k, f := range []*field.P256A{&table[i].u[j], &table[i].v[j], &table[i].duv[j]} {
					var limbs [limbsP256A]uint64
					words := f.Limbs()
					split52(limbs[:], words[:])
					for m, limb := range limbs {
						lane[i][k*limbsP256A+m][j] = limb
					}
				}
			}
		}
		for l := range lanes {
			c.lanes.d.set(l, &c.d)
		}
		c.lanes.table = lane
	})
	return c.lanes.table
}

// MulBase spreads one scalar over the lanes if the processor supports it.
func (c *edwardsP256A) MulBase(xy []byte, k *field.Scalar) bool {
	if impl.IFMA {
		return c.mulBaseSpread(xy, k)
	}
	return c.mulBaseOne(xy, k)
}

// spreadEdP256AWork holds the variables of a multiplication spread over lanes. It must
// be on the heap, where the allocator puts objects of this size at multiples of 64.
type spreadEdP256AWork struct {
	sum, other      lanesEdP256APoint
	e               [3]laneP256A // the affine point to add
	index, negative [lanes]uint64
}

// mulBaseSpread is mulBaseOne in lanes. Lane l adds up windows l, l+8, l+16... Then the
// lanes are added up in three steps. Every addition is complete. It runs in constant
// time.
func (c *edwardsP256A) mulBaseSpread(xy []byte, k *field.Scalar) bool {
	table := c.combLanes()
	var digits [edWindowsP256A]int8
	recode(digits[:], k, c.order, baseBits)
	v := new(spreadEdP256AWork)
	for first := 0; first < len(digits); first += lanes {
		n := min(lanes, len(digits)-first)
		for l := range n {
			v.index[l], v.negative[l] = split(digits[first+l])
		}
		const step = len(table[0]) * len(rowP256A{}) * 8
		for i := range v.e {
			ifmaSpreadP256A(&v.e[i], &table[first][i*limbsP256A], step, n, &v.index)
		}
		ifmaNegateP256A(&v.e[0], &v.negative)
		ifmaNegateP256A(&v.e[2], &v.negative)
		for l := n; l < lanes; l++ { // lanes without a window add the neutral point 0, 1
			v.e[1][0][l] = 1
			for i := range v.e[0] {
				v.e[0][i][l], v.e[2][i][l] = 0, 0
			}
		}
		if first == 0 {
			v.sum.begin(&v.e)
			continue
		}
		ifmaEdMixedP256A(&v.sum, &v.sum, &v.e)
	}
	for n := lanes / 2; n > 0; n /= 2 {
		for l := range n {
			for i := range v.sum {
				for j := range v.sum[i] {
					v.other[i][j][l] = v.sum[i][j][n+l]
				}
			}
		}
		ifmaMulP256A(&v.other[3], &v.other[3], &c.lanes.d)
		ifmaEdAddP256A(&v.sum, &v.sum, &v.other)
	}
	sum := edExtendedP256A{v.sum[0].get(0), v.sum[1].get(0), v.sum[2].get(0), v.sum[3].get(0)}
	clear(digits[:])
	*v = spreadEdP256AWork{}
	return c.write(xy, &sum)
}
