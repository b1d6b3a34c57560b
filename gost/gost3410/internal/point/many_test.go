// SPDX-License-Identifier: Apache-2.0

package point

import (
	"bytes"
	"math/big"
	"testing"

	"tamga/gost/gost3410/internal/field"
)

// TestMulBaseMany compares MulBaseMany with MulBase for every number of scalars from
// none to more than two fills of the lanes. The scalars are edge cases, among them
// those for which the last addition of a comb has equal points, and 0, for which it has
// opposite points.
func TestMulBaseMany(t *testing.T) {
	for _, c := range curves {
		t.Run(c.name, func(t *testing.T) {
			q, size := order(c), c.Size()
			all := append(scalars(q, 9), new(big.Int))
			for n, from := 0, 0; from < len(all); n++ {
				count := min(n, 19, len(all)-from)
				k := make([]field.Scalar, count)
				xy, ok := make([][]byte, count), make([]bool, count)
				for i := range k {
					k[i] = toScalar(all[from+i])
					xy[i] = make([]byte, 2*size)
				}
				c.MulBaseMany(xy, k, ok)
				for i := range k {
					want := make([]byte, 2*size)
					if good := c.MulBase(want, &k[i]); good != ok[i] || good == (all[from+i].Sign() == 0) || good && !bytes.Equal(want, xy[i]) {
						t.Fatalf("scalar %d of %d, %x: got %v, %x, want %v, %x", i, count, all[from+i], ok[i], xy[i], good, want)
					}
				}
				from += count
			}
		})
	}
}

func BenchmarkMulBaseMany(b *testing.B) {
	for i, c := range curves {
		b.Run(c.name, func(b *testing.B) {
			base(b, i)
			k := make([]field.Scalar, 8)
			xy, ok := make([][]byte, 8), make([]bool, 8)
			for i := range k {
				k[i] = c.Order().Value()
				k[i][0] -= uint64(i + 12345)
				xy[i] = make([]byte, 2*c.Size())
			}
			for b.Loop() {
				c.MulBaseMany(xy, k, ok)
			}
		})
	}
}

// TestSumsHaveX compares SumsHaveX with group: sums that are infinity, equal and
// opposite summands, scalars 0, wrong x, different points in the lanes, points with a table.
func TestSumsHaveX(t *testing.T) {
	for i, c := range curves {
		t.Run(c.name, func(t *testing.T) {
			g, G := base(t, i)
			q, size := order(c), c.Size()
			random := scalars(q, 3)
			var points []Point
			var r, s, u []field.Scalar
			var want []bool
			add := func(p Point, m, a, b *big.Int) {
				k := new(big.Int).Mul(b, m)
				R := g.mul(k.Add(k, a).Mod(k, q), G)
				good := R.x != nil
				if !good {
					R.x = new(big.Int)
				}
				for _, wrong := range []uint64{0, 1} {
					x := toScalar(new(big.Int).Mod(R.x, q))
					x[0] ^= wrong
					points, r, s, u = append(points, p), append(r, x), append(s, toScalar(a)), append(u, toScalar(b))
					want = append(want, good && wrong == 0)
				}
			}
			minus := func(n int64) *big.Int { return new(big.Int).Sub(q, big.NewInt(n)) }
			for _, table := range []bool{false, true} {
				for _, m := range []*big.Int{big.NewInt(1), minus(1), big.NewInt(2), random[len(random)-1]} {
					p, err := c.Parse(encode(g.mul(m, G), size))
					if err != nil {
						t.Fatal(err)
					}
					if table {
						p = p.Precompute()
					}
					add(p, m, random[len(random)-2], random[len(random)-3])
					add(p, m, new(big.Int), big.NewInt(5))
					add(p, m, big.NewInt(5), new(big.Int))
					add(p, m, new(big.Int), new(big.Int))
					add(p, m, big.NewInt(1), big.NewInt(1))
					add(p, m, big.NewInt(1), minus(1))
					add(p, m, big.NewInt(2), big.NewInt(1))
					add(p, m, minus(2), minus(62))
				}
			}
			for n, from := 0, 0; from < len(points); n++ {
				count := min(n, 19, len(points)-from)
				to := from + count
				ok := make([]bool, count)
				c.SumsHaveX(points[from:to], r[from:to], s[from:to], u[from:to], ok)
				for j := range ok {
					if ok[j] != want[from+j] {
						t.Fatalf("sum %d, at index %d of %d: got %v, want %v", from+j, j, count, ok[j], want[from+j])
					}
				}
				from = to
			}
		})
	}
}
