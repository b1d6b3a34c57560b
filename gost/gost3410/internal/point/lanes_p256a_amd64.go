// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import (
	"sync"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// laneP256A is eight numbers with limbs of 52 bits, lowest first. Each limb is a vector
// with one lane for each number. See lanes_p256a_amd64.s for the bounds.
type laneP256A [limbsP256A][lanes]uint64

// limbsP256A is the number of limbs of 52 bits of a number.
const limbsP256A = (8*sizeP256A + 51) / 52

// windowLanesP256A is a window of a table in the order that lanes read: for each limb
// of x, then for each limb of y, that limb of all entries.
type windowLanesP256A [2 * limbsP256A]rowP256A

// rowP256A is one limb of all entries.
type rowP256A [1 << (baseBits - 1)]uint64

// lanesP256A is a table in the order that lanes read, a quarter larger than a comb. It
// is a copy of the table of the base point, built at its first use, or the table of a
// key.
type lanesP256A struct {
	once  sync.Once
	table *[windowsP256A]windowLanesP256A
}

// get returns the number in a lane.
func (l *laneP256A) get(lane int) (x field.P256A) {
	var limbs [limbsP256A]uint64
	for i := range limbs {
		limbs[i] = l[i][lane]
	}
	// The highest limb may have bits above the size of the prime. Reduce them.
	const bits = 8*sizeP256A - 52*(limbsP256A-1)
	top := limbs[limbsP256A-1] >> bits
	limbs[limbsP256A-1] &= 1<<bits - 1
	join52(x[:], limbs[:])
	return fromLaneP256A(x, top)
}

// set sets the number in a lane.
func (l *laneP256A) set(lane int, x *field.P256A) {
	var limbs [limbsP256A]uint64
	words := toLaneP256A(x)
	split52(limbs[:], words[:])
	for i := range limbs {
		l[i][lane] = limbs[i]
	}
}

// combLanes returns the table of comb in the order that lanes read.
func (c *weierstrassP256A) combLanes() *[windowsP256A]windowLanesP256A {
	c.lanes.once.Do(func() { c.lanes.table = c.comb().inLanes() })
	return c.lanes.table
}

// inLanes returns the table in the order that lanes read.
func (table *combP256A) inLanes() *[windowsP256A]windowLanesP256A {
	out := new([windowsP256A]windowLanesP256A)
	for i := range table {
		for j := range table[i].x {
			var limbs [2 * limbsP256A]uint64
			x, y := toLaneP256A(&table[i].x[j]), toLaneP256A(&table[i].y[j])
			split52(limbs[:limbsP256A], x[:])
			split52(limbs[limbsP256A:], y[:])
			for k, limb := range limbs {
				out[i][k][j] = limb
			}
		}
	}
	return out
}

// take sets l to the given table in the order that lanes read, and reports whether the
// processor supports lanes. If not, it does nothing.
func (l *lanesP256A) take(table *combP256A) bool {
	if impl.IFMA {
		l.table = table.inLanes()
	}
	return impl.IFMA
}

// mulBaseLanes writes k[i]*G to xy[i] for at most eight scalars and reports in ok[i]
// whether it is a point of the curve. It runs in constant time. It fails for k[i] = 0
// and for the few k[i] that meet an exception of the addition. mulBaseOne avoids the
// exception, because its last addition is complete. mulBaseLanes only reports it in
// ok.
func (c *weierstrassP256A) mulBaseLanes(xy [][]byte, k []field.Scalar, ok []bool) {
	v := c.combSums(k)

	// One inversion for all lanes, that of the product of the denominators. before[l]
	// is the product of those before lane l. A denominator of 0 counts as 1.
	var z, before [lanes]field.P256A
	var failed [lanes]uint64
	var product field.P256A
	product.SetSmall(1)
	for l := range k {
		z[l] = v.sum[2].get(l)
		failed[l] = z[l].IsZero()
		var one field.P256A
		one.SetSmall(1)
		z[l].Assign(&one, -failed[l])
		before[l] = product
		product.Mul(&product, &z[l])
	}
	product.Invert(&product)
	for l := len(k) - 1; l >= 0; l-- {
		var i, ii field.P256A
		i.Mul(&product, &before[l])
		product.Mul(&product, &z[l])
		a := affineP256A{v.sum[0].get(l), v.sum[1].get(l)}
		ii.Sqr(&i)
		a.x.Mul(&a.x, &ii)
		ii.Mul(&ii, &i)
		a.y.Mul(&a.y, &ii)
		a.x.PutBytes(xy[l][:sizeP256A])
		a.y.PutBytes(xy[l][sizeP256A : 2*sizeP256A])
		ok[l] = c.contains(&a) && failed[l] == 0
	}
	*v = lanesP256AWork{}
	clear(z[:])
	clear(before[:])
}

// lanesP256AWork holds the variables of a multiplication in lanes. It must be on the
// heap, where the allocator puts objects of this size at multiples of 64.
type lanesP256AWork struct {
	sum             lanesP256APoint
	e               [2]laneP256A // the affine point to add
	index, negative [lanes]uint64
}

// combSums returns k[i]*G in lane i, and G in lanes without a scalar. A lane with the
// denominator 0 has failed: it met an exception of the addition, or k[i] is 0.
func (c *weierstrassP256A) combSums(k []field.Scalar) *lanesP256AWork {
	v := new(lanesP256AWork)
	v.addTable(c.combLanes(), k, c.order, true)
	return v
}

// addTable adds k[i] times the point of a table to the sum in lane i, and the point itself in
// lanes without a scalar. first: there is no sum yet.
func (v *lanesP256AWork) addTable(table *[windowsP256A]windowLanesP256A, k []field.Scalar, order *field.Modulus, first bool) {
	var digits [lanes][windowsP256A]int8
	for l := range digits {
		one := &field.Scalar{1}
		if l < len(k) {
			one = &k[l]
		}
		recode(digits[l][:], one, order, baseBits)
	}
	for i := range windowsP256A {
		for l := range lanes {
			v.index[l], v.negative[l] = split(digits[l][i])
		}
		ifmaEntryP256A(&v.e[0], &table[i][0], &v.index)
		ifmaEntryP256A(&v.e[1], &table[i][limbsP256A], &v.index)
		ifmaNegateP256A(&v.e[1], &v.negative)
		if first && i == 0 {
			v.begin()
			continue
		}
		ifmaChordP256A(&v.sum, &v.sum, &v.e)
	}
	clear(digits[:])
}

// begin sets the sum to the point e.
func (v *lanesP256AWork) begin() {
	v.sum[0], v.sum[1] = v.e[0], v.e[1]
	var one field.P256A
	one.SetSmall(1)
	for l := range lanes {
		v.sum[2].set(l, &one)
	}
}

// MulBaseMany uses lanes for eight scalars at a time. With 4 scalars or more, lanes are
// faster than single multiplications.
func (c *weierstrassP256A) MulBaseMany(xy [][]byte, k []field.Scalar, ok []bool) {
	for impl.IFMA && len(k) >= 4 {
		n := min(lanes, len(k))
		c.mulBaseLanes(xy[:n], k[:n], ok[:n])
		for l := range n {
			if !ok[l] { // k is 0, or an exception with a probability of 2^-250, or a hardware fault
				ok[l] = c.MulBase(xy[l], &k[l])
			}
		}
		xy, k, ok = xy[n:], k[n:], ok[n:]
	}
	mulBaseEach(c, xy, k, ok)
}

// The following functions are in lanes_p256a_amd64.s. Those for single operations are
// used by tests too.

//go:noescape
func ifmaChordP256A(z, p *lanesP256APoint, q *[2]laneP256A)

//go:noescape
func ifmaTangentP256A(z, p *lanesP256APoint)

// ifmaEntryP256A sets each lane l of z to the entry index[l] of a table. The table has
// one row for each limb and begins at table.
//
//go:noescape
func ifmaEntryP256A(z *laneP256A, table *rowP256A, index *[lanes]uint64)

// ifmaSpreadP256A sets each lane i < n of z to the entry index[i] of a table of its
// own. A table has one row for each limb. The first table is at tables, each next
// table step bytes further. Other lanes become 0.
//
//go:noescape
func ifmaSpreadP256A(z *laneP256A, tables *rowP256A, step, n int, index *[lanes]uint64)

// ifmaNegateP256A sets z = -z in the lanes where negative is all ones.
//
//go:noescape
func ifmaNegateP256A(z *laneP256A, negative *[lanes]uint64)

//go:noescape
func ifmaMulP256A(z, x, y *laneP256A)

//go:noescape
func ifmaSqrP256A(z, x *laneP256A)

//go:noescape
func ifmaSubP256A(z, x, y *laneP256A)

//go:noescape
func ifmaAddP256A(z, x, y *laneP256A)
