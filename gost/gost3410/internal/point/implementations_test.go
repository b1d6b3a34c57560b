// SPDX-License-Identifier: Apache-2.0

package point

import (
	"bytes"
	"slices"
	"testing"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/impl"
)

// FuzzImplementations compares k*G, k*P and the check of a sum between all implementations, for
// one scalar and several scalars and sums at a time.
func FuzzImplementations(f *testing.F) {
	for i := range curves {
		f.Add(byte(i), []byte{0}, []byte{2})
		f.Add(byte(i), []byte{1}, []byte{2})
		f.Add(byte(i), bytes.Repeat([]byte{0xff}, 64), bytes.Repeat([]byte{0xff}, 64))
		f.Add(byte(i), bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 8), bytes.Repeat([]byte{0xff, 0}, 32))
	}
	f.Fuzz(func(t *testing.T, which byte, a, b []byte) {
		c := curves[int(which)%len(curves)]
		size, order := c.Size(), c.Order()
		read := func(b []byte) (k field.Scalar) {
			k.SetBytes(b[:min(len(b), size)])
			order.Reduce(&k, &k)
			return k
		}
		k, l := read(a), read(b)
		type results struct {
			base, point, many [128]byte
			ok                [4]bool
		}
		var first results
		impl.Each(func(name string) {
			var r results
			r.ok[0] = c.MulBase(r.base[:], &k)
			xy, ok := make([][]byte, 8), make([]bool, 8)
			scalars := make([]field.Scalar, 8)
			for i := range scalars {
				xy[i] = make([]byte, 2*size)
				scalars[i] = l
			}
			scalars[5], xy[5] = k, r.many[:]
			c.MulBaseMany(xy, scalars, ok)
			r.ok[1] = ok[5]
			if ok[0] { // with the point l*G, compute k times it and k*G plus l times it
				p, err := c.Parse(xy[0])
				if err != nil {
					t.Fatalf("%s: implementation %s computes an invalid point: %v", c.name, name, err)
				}
				r.ok[2] = p.Mul(r.point[:], &k)
				var x field.Scalar
				x.SetBytes(r.base[:size])
				order.Reduce(&x, &x)
				if r.ok[0] && !p.SumHasX(&x, &k, &field.Scalar{}) {
					t.Fatalf("%s: SumHasX of implementation %s reports false for x of k*G", c.name, name)
				}
				r.ok[3] = p.SumHasX(&x, &k, &l)
				want := []bool{r.ok[0], r.ok[3], r.ok[3], p.SumHasX(&x, &l, &k), r.ok[0]}
				sums := make([]bool, len(want))
				c.SumsHaveX([]Point{p, p, p, p, p}, []field.Scalar{x, x, x, x, x},
					[]field.Scalar{k, k, k, l, k}, []field.Scalar{{}, l, l, k, {}}, sums)
				if !slices.Equal(sums, want) {
					t.Fatalf("%s: implementation %s: SumsHaveX reports %v for five sums, SumHasX %v", c.name, name, sums, want)
				}
			}
			if r.ok[0] != r.ok[1] || r.ok[0] && r.base != r.many {
				t.Fatalf("%s: implementation %s: MulBaseMany and MulBase differ", c.name, name)
			}
			if name == "portable" {
				first = r
			} else if r != first {
				t.Fatalf("%s: implementation %s computes %+v, Go %+v", c.name, name, r, first)
			}
		})
	})
}
