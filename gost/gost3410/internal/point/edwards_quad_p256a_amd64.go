// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"sync"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// quadP256A is one point with its four coordinates u, v, z, t in four lanes. It has
// limbs of 52 bits, lowest first. See quad_p256a_amd64.s for the bounds. In a point
// prepared for addition, d*t takes the place of t.
type quadP256A [limbsP256A][4]uint64

// edQuadsP256A holds the constants of a curve for multiplications of one point. It is
// built at its first use.
type edQuadsP256A struct {
	once    sync.Once
	toAdd   quadP256A                         // 1, 1, 1, d: a point times this is prepared for addition
	base    [2][1 << (baseBits - 1)]quadP256A // odd multiples of the base point, and their opposites
	neutral quadP256A
}

// set sets a lane.
func (q *quadP256A) set(lane int, x *field.P256A) {
	var limbs [limbsP256A]uint64
	words := x.Limbs()
	split52(limbs[:], words[:])
	for i := range limbs {
		q[i][lane] = limbs[i]
	}
}

// get returns the number in a lane.
func (q *quadP256A) get(lane int) field.P256A {
	var l laneP256A
	for i := range q {
		l[i][0] = q[i][lane]
	}
	return l.get(0)
}

func (q *quadP256A) extended() edExtendedP256A {
	return edExtendedP256A{q.get(0), q.get(1), q.get(2), q.get(3)}
}

// quad returns p in lanes.
func (p *edAffineP256A) quad() (q quadP256A) {
	e := p.extended()
	for i, x := range []*field.P256A{&e.u, &e.v, &e.z, &e.t} {
		q.set(i, x)
	}
	return q
}

// prepared returns the constants of the curve for multiplications of one point.
func (c *edwardsP256A) prepared() *edQuadsP256A {
	k := &c.quads
	k.once.Do(func() {
		one := edAffineP256A{v: field.P256A{1}}
		k.neutral = one.quad()
		for i := range 3 {
			k.toAdd[0][i] = 1
		}
		k.toAdd.set(3, &c.d)
		base := c.base.quad()
		c.oddQuads(k.base[0][:], &base)
		for i := range k.base[0] {
			ifmaQuadPickP256A(&k.base[1][i], &k.base[0][i], 1, 0, ^uint64(0))
		}
	})
	return k
}

// oddQuads sets table to 1, 3, 5... times the point, prepared for addition.
func (c *edwardsP256A) oddQuads(table []quadP256A, p *quadP256A) {
	toAdd := &c.quads.toAdd
	sum := *p
	var twice quadP256A
	ifmaQuadDoubleP256A(&twice, p, 1)
	ifmaQuadMulP256A(&twice, &twice, toAdd)
	for i := range table {
		if i > 0 {
			ifmaQuadAddP256A(&sum, &sum, &twice)
		}
		ifmaQuadMulP256A(&table[i], &sum, toAdd)
	}
}

// Mul has the coordinates in lanes if the processor supports it.
func (k *edKeyP256A) Mul(xy []byte, n *field.Scalar) bool {
	if impl.IFMA {
		return k.mulQuads(xy, n)
	}
	return k.mulOne(xy, n)
}

// mulQuads is mulOne with the coordinates in lanes. It runs in constant time.
func (k *edKeyP256A) mulQuads(xy []byte, n *field.Scalar) bool {
	c := k.c
	c.prepared()
	var odd [1 << (pointBits - 1)]quadP256A
	point := k.p.quad()
	c.oddQuads(odd[:], &point)
	var buf [maxDigits]int8
	digits := buf[:windows(edSizeP256A, pointBits)]
	recode(digits, n, c.order, pointBits)
	sum := c.quads.neutral
	var e quadP256A
	for i := len(digits) - 1; i >= 0; i-- {
		index, negative := split(digits[i])
		ifmaQuadPickP256A(&e, &odd[0], len(odd), index, negative)
		if i < len(digits)-1 {
			ifmaQuadDoubleP256A(&sum, &sum, pointBits)
		}
		ifmaQuadAddP256A(&sum, &sum, &e)
	}
	p := sum.extended()
	clear(digits)
	sum, e = quadP256A{}, quadP256A{}
	return c.write(xy, &p)
}

// sum has the coordinates in lanes if the processor supports it.
func (k *edKeyP256A) sum(s, t *field.Scalar) edExtendedP256A {
	if impl.IFMA {
		return k.sumQuads(s, t)
	}
	return k.sumOne(s, t)
}

// sumQuads is sumOne with the coordinates in lanes.
func (k *edKeyP256A) sumQuads(s, t *field.Scalar) edExtendedP256A {
	c := k.c
	base := &c.prepared().base
	var odd [2][1 << (edKeyBitsP256A - 2)]quadP256A
	point := k.p.quad()
	c.oddQuads(odd[0][:], &point)
	for i := range odd[0] {
		ifmaQuadPickP256A(&odd[1][i], &odd[0][i], 1, 0, ^uint64(0))
	}
	var ds, dt [maxDigits]int8
	length := max(naf(&ds, s, baseBits+1), naf(&dt, t, edKeyBitsP256A))
	sum := c.quads.neutral
	doublings := 0 // not done yet
	for i := length - 1; i >= 0; i-- {
		doublings++
		if ds[i]|dt[i] == 0 {
			continue
		}
		ifmaQuadDoubleP256A(&sum, &sum, doublings)
		doublings = 0
		if d := ds[i]; d != 0 {
			index, negative := split(d)
			ifmaQuadAddP256A(&sum, &sum, &base[negative&1][index])
		}
		if d := dt[i]; d != 0 {
			index, negative := split(d)
			ifmaQuadAddP256A(&sum, &sum, &odd[negative&1][index])
		}
	}
	if doublings > 0 {
		ifmaQuadDoubleP256A(&sum, &sum, doublings)
	}
	return sum.extended()
}

// The following functions are in quad_p256a_amd64.s.

// ifmaQuadDoubleP256A doubles p n times, n > 0.
//
//go:noescape
func ifmaQuadDoubleP256A(z, p *quadP256A, n int)

//go:noescape
func ifmaQuadAddP256A(z, p, q *quadP256A)

// ifmaQuadMulP256A sets z = x*y, lane by lane.
//
//go:noescape
func ifmaQuadMulP256A(z, x, y *quadP256A)

// ifmaQuadPickP256A sets z to entry index of a table of n points, or to its opposite if
// negative is all ones. It reads the whole table.
//
//go:noescape
func ifmaQuadPickP256A(z, table *quadP256A, n int, index, negative uint64)
