// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// MulBaseMany uses lanes for eight scalars at a time. With 3 scalars or more, lanes are
// faster than single multiplications.
func (c *edwardsP256A) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	for impl.IFMA && len(k) >= 3 {
		n := min(lanes, len(k))
		c.mulBaseLanes(xy[:n], k[:n], ok[:n])
		xy, k, ok = xy[n:], k[n:], ok[n:]
	}
	mulBaseEach(c, xy, k, ok)
}

// mulBaseLanes is MulBase for at most eight scalars, one in each lane. Every addition
// is complete. It runs in constant time.
func (c *edwardsP256A) mulBaseLanes(xy [][]byte, k []field.Scalar, ok []bool) {
	v := c.combSums(k)

	// This is write for all lanes with one inversion, that of the product of the
	// denominators. before[l] is the product of those before lane l. A denominator of 0,
	// which infinity and the point of order two have, counts as 1.
	var u, z, plus, w, before [lanes]field.P256A
	var none [lanes]uint64
	var zero, one, product field.P256A
	one.SetSmall(1)
	product.SetSmall(1)
	for l := range k {
		var minus field.P256A
		u[l], z[l] = v.sum[0].get(l), v.sum[2].get(l)
		y := v.sum[1].get(l)
		plus[l].Add(&z[l], &y)
		plus[l].Mul(&plus[l], &c.s)
		minus.Sub(&z[l], &y)
		w[l].Mul(&minus, &u[l])
		none[l] = w[l].IsZero()
		w[l].Assign(&one, -none[l])
		before[l] = product
		product.Mul(&product, &w[l])
	}
	product.Invert(&product)
	for l := len(k) - 1; l >= 0; l-- {
		var inverse, x, y field.P256A
		inverse.Mul(&product, &before[l])
		inverse.Assign(&zero, -none[l]) // as Invert does for 0
		product.Mul(&product, &w[l])
		x.Mul(&plus[l], &u[l])
		x.Mul(&x, &inverse)
		x.Add(&x, &c.t)
		y.Mul(&plus[l], &z[l])
		y.Mul(&y, &inverse)
		x.PutBytes(xy[l][:edSizeP256A])
		y.PutBytes(xy[l][edSizeP256A : 2*edSizeP256A])
		ok[l] = none[l] == 0 && c.contains(&x, &y)
	}
	*v = lanesEdP256AWork{}
	for _, secrets := range [][]field.P256A{u[:], z[:], plus[:], w[:], before[:]} {
		clear(secrets)
	}
}

// lanesEdP256AWork holds the variables of a multiplication in lanes. It must be on the
// heap, where the allocator puts objects of this size at multiples of 64.
type lanesEdP256AWork struct {
	sum             lanesEdP256APoint
	e               [3]laneP256A // the affine point to add
	index, negative [lanes]uint64
}

// combSums returns k[i]*G in lane i, and G in lanes without a scalar. It runs in
// constant time.
func (c *edwardsP256A) combSums(k []field.Scalar) *lanesEdP256AWork {
	table := c.combLanes()
	var digits [lanes][edWindowsP256A]int8
	for l := range digits {
		one := &field.Scalar{1}
		if l < len(k) {
			one = &k[l]
		}
		recode(digits[l][:], one, c.order, baseBits)
	}
	v := new(lanesEdP256AWork)
	for i := range table {
		for l := range lanes {
			v.index[l], v.negative[l] = split(digits[l][i])
		}
		for j := range v.e {
			ifmaEntryP256A(&v.e[j], &table[i][j*limbsP256A], &v.index)
		}
		ifmaNegateP256A(&v.e[0], &v.negative)
		ifmaNegateP256A(&v.e[2], &v.negative)
		if i == 0 {
			v.sum.begin(&v.e)
			continue
		}
		ifmaEdMixedP256A(&v.sum, &v.sum, &v.e)
	}
	clear(digits[:])
	return v
}

// The following functions are in edwards_lanes_p256a_amd64.h.

//go:noescape
func ifmaEdMixedP256A(z, p *lanesEdP256APoint, q *[3]laneP256A)

//go:noescape
func ifmaEdAddP256A(z, p, q *lanesEdP256APoint)

//go:noescape
func ifmaEdDoubleP256A(z, p *lanesEdP256APoint)

// ifmaEdDoubleWithoutTP256A does not change the coordinate t of z.
//
//go:noescape
func ifmaEdDoubleWithoutTP256A(z, p *lanesEdP256APoint)
