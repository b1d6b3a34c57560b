// SPDX-License-Identifier: Apache-2.0

package point

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"tamga/gost/gost3410/internal/field"
	"tamga/internal/testsize"
)

var curves = []struct {
	name string
	Curve
	p, a string // parameters that Curve does not return, written independently of it
}{
	{"Test256", Test256, "8000000000000000000000000000000000000000000000000000000000000431", "7"},
	{"CryptoProA", CryptoProA, "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffd97", "-3"},
	{"CryptoProB", CryptoProB, "8000000000000000000000000000000000000000000000000000000000000c99", "-3"},
	{"CryptoProC", CryptoProC, "9b9f605f5a858107ab1ec85e6b41c8aacf846e86789051d37998f7b9022d759b", "-3"},
	{"TC26256A", TC26256A, "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffd97", "c2173f1513981673af4892c23035a27ce25e2013bf95aa33b22c656f277e7335"},
	{"Test512", Test512, "4531acd1fe0023c7550d267b6b2fee80922b14b2ffb90f04d4eb7c09b5d2d15df1d852741af4704a0458047e80e4546d35b8336fac224dd81664bbf528be6373", "7"},
	{"TC26512A", TC26512A, "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffdc7", "-3"},
	{"TC26512B", TC26512B, "8000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000006f", "-3"},
	{"TC26512C", TC26512C, "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffdc7", "dc9203e514a721875485a529d2c722fb187bc8980eb866644de41c68e143064546e861c0e2c9edd92ade71f46fcf50ff2ad97f951fda9f2a2eb6546f39689bd3"},
}

// group is a textbook implementation to compare with: affine points, math/big, a branch
// for every case.
type group struct{ p, a *big.Int }

type affine struct{ x, y *big.Int } // x nil is infinity

func (g group) mod(n *big.Int) *big.Int { return n.Mod(n, g.p) }

func (g group) add(p, q affine) affine {
	if p.x == nil {
		return q
	}
	if q.x == nil {
		return p
	}
	var n, d *big.Int
	if p.x.Cmp(q.x) == 0 {
		if g.mod(new(big.Int).Add(p.y, q.y)).Sign() == 0 {
			return affine{}
		}
		n = new(big.Int).Mul(p.x, p.x)
		n.Mul(n, big.NewInt(3)).Add(n, g.a)
		d = new(big.Int).Lsh(p.y, 1)
	} else {
		n = new(big.Int).Sub(q.y, p.y)
		d = new(big.Int).Sub(q.x, p.x)
	}
	l := n.Mul(n, d.ModInverse(g.mod(d), g.p))
	x := new(big.Int).Mul(l, l)
	x.Sub(x, p.x)
	g.mod(x.Sub(x, q.x))
	y := new(big.Int).Sub(p.x, x)
	y.Mul(y, l)
	return affine{x, g.mod(y.Sub(y, p.y))}
}

// remembered caches computed multiples, because the tests run once with every
// implementation and need the same multiples each time.
var remembered = map[string]affine{}

// multiples caches, for each point p, the multiples d*16^i*p for all digits d, because
// the tests multiply few points by many numbers.
var multiples = map[string][][16]affine{}

func (g group) mul(k *big.Int, p affine) (r affine) {
	if p.x == nil {
		return p
	}
	point := fmt.Sprintf("%x %x %x %x", g.p, g.a, p.x, p.y)
	name := fmt.Sprintf("%s %x", point, k)
	if r, ok := remembered[name]; ok {
		return r
	}
	rows := multiples[point]
	for i, digits := 0, k.Text(16); i < len(digits); i++ {
		if i == len(rows) {
			one := p
			if i > 0 {
				one = g.add(rows[i-1][15], rows[i-1][1])
			}
			var row [16]affine
			for d := 1; d < 16; d++ {
				row[d] = g.add(row[d-1], one)
			}
			rows = append(rows, row)
		}
		d, err := strconv.ParseUint(digits[len(digits)-1-i:len(digits)-i], 16, 4)
		if err != nil {
			panic(err)
		}
		r = g.add(r, rows[i][d])
	}
	multiples[point], remembered[name] = rows, r
	return r
}

func hexadecimal(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 16)
	if !ok {
		panic(s)
	}
	return n
}

func littleEndian(n *big.Int, size int) []byte {
	b := n.FillBytes(make([]byte, size))
	slices.Reverse(b)
	return b
}

func fromLittleEndian(b []byte) *big.Int {
	b = slices.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b)
}

func encode(p affine, size int) []byte {
	return append(littleEndian(p.x, size), littleEndian(p.y, size)...)
}

func toScalar(n *big.Int) (k field.Scalar) {
	k.SetBytes(littleEndian(n, 64))
	return k
}

func order(c Curve) *big.Int {
	q := c.Order().Value()
	var b [64]byte
	q.PutBytes(b[:])
	return fromLittleEndian(b[:])
}

// base returns the group of the curve, and G as the curve computes it from k = 1.
func base(t testing.TB, i int) (group, affine) {
	c := curves[i]
	g := group{p: hexadecimal(c.p), a: hexadecimal(c.a)}
	g.mod(g.a)
	xy := make([]byte, 2*c.Size())
	if !c.MulBase(xy, &field.Scalar{1}) {
		t.Fatal("MulBase reports that 1*G is not a point of the curve")
	}
	return g, affine{fromLittleEndian(xy[:c.Size()]), fromLittleEndian(xy[c.Size():])}
}

// scalars returns edge scalars and a few random ones, all in 1..q-1.
func scalars(q *big.Int, random int) []*big.Int {
	r := rand.New(rand.NewChaCha8([32]byte{2}))
	var all []*big.Int
	add := func(n *big.Int) {
		if n.Sign() > 0 && n.Cmp(q) < 0 {
			all = append(all, n)
		}
	}
	for i := int64(1); i < 4; i++ {
		add(big.NewInt(i))
		add(new(big.Int).Sub(q, big.NewInt(i)))
	}
	// Digits at the bounds of windows, and carries through all windows.
	for _, i := range []int64{15, 16, 17, 31, 32, 33, 63, 64, 65} {
		add(big.NewInt(i))
	}
	for _, bits := range []int{baseBits, pointBits} {
		for _, digit := range []int64{1, 1<<(bits-1) - 1, 1 << (bits - 1), 1<<(bits-1) + 1, 1<<bits - 1} {
			n := new(big.Int)
			for n.BitLen() < q.BitLen()-bits {
				n.Lsh(n, uint(bits)).Add(n, big.NewInt(digit))
			}
			add(n)
		}
	}
	// Scalars for which the last addition of a multiplication has equal points. In the
	// comb the other summand is d*2^top, in the ladder it is d or -d.
	top := uint(baseBits * (windows((q.BitLen()+7)/8, baseBits) - 1))
	for d := int64(1); d < 64; d += 2 {
		n := new(big.Int).Lsh(big.NewInt(2*d), top)
		add(new(big.Int).Sub(n, q))
		add(new(big.Int).Sub(n, new(big.Int).Lsh(q, 1)))
		add(n.Mod(n, q))
		add(new(big.Int).Sub(q, n))
	}
	for d := int64(1); d < 1<<pointBits; d += 2 {
		add(big.NewInt(2 * d))
		add(new(big.Int).Sub(q, big.NewInt(2*d)))
	}
	half := new(big.Int).Rsh(q, 1)
	add(half)
	add(new(big.Int).Add(half, big.NewInt(1)))
	for e := 32; e < q.BitLen(); e += 96 {
		add(new(big.Int).Lsh(big.NewInt(1), uint(e)))
		add(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(e)), big.NewInt(1)))
	}
	for range random {
		b := make([]byte, 64)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		add(new(big.Int).Mod(new(big.Int).SetBytes(b), q))
	}
	return all
}

func TestMulAgainstTextbook(t *testing.T) {
	for i, c := range curves {
		t.Run(c.name, func(t *testing.T) {
			g, G := base(t, i)
			q := order(c)
			if !q.ProbablyPrime(20) {
				t.Fatal("the order is not prime")
			}
			if r := g.mul(q, G); r.x != nil {
				t.Fatal("q*G is not infinity")
			}
			// The bound of Hasse: the curve has cofactor*q points.
			n := new(big.Int).Mul(q, new(big.Int).SetUint64(c.Cofactor()))
			n.Sub(n, g.p).Sub(n, big.NewInt(1))
			if n.Mul(n, n).Cmp(new(big.Int).Lsh(g.p, 2)) > 0 {
				t.Fatal("cofactor*q is outside of the bound of Hasse")
			}
			size := c.Size()
			P := g.mul(big.NewInt(12345), G)
			p, err := c.Parse(encode(P, size))
			if err != nil {
				t.Fatal(err)
			}
			xy := make([]byte, 2*size)
			for j, k := range scalars(q, 3) {
				if testsize.Of() < testsize.Whole && j%3 != 0 {
					continue
				}
				s := toScalar(k)
				if !c.MulBase(xy, &s) || !slices.Equal(xy, encode(g.mul(k, G), size)) {
					t.Fatalf("%x * G is wrong", k)
				}
				if !p.Mul(xy, &s) || !slices.Equal(xy, encode(g.mul(k, P), size)) {
					t.Fatalf("%x * P is wrong", k)
				}
			}
			if c.MulBase(xy, &field.Scalar{}) || p.Mul(xy, &field.Scalar{}) {
				t.Fatal("MulBase reports that 0*G is a point")
			}
		})
	}
}

// TestSumHasX tests SumHasX with summands that are different, equal or opposite, with
// one or both summands infinity, and with points for which an intermediate addition
// meets an exception.
func TestSumHasX(t *testing.T) {
	for i, c := range curves {
		t.Run(c.name, func(t *testing.T) {
			g, G := base(t, i)
			q, size := order(c), c.Size()
			for i, m := range []*big.Int{big.NewInt(1), big.NewInt(2), big.NewInt(7), new(big.Int).Sub(q, big.NewInt(1)), big.NewInt(987654321)} {
				P := g.mul(m, G)
				p, err := c.Parse(encode(P, size))
				if err != nil {
					t.Fatal(err)
				}
				fast := p.Precompute()
				small := []*big.Int{big.NewInt(0), big.NewInt(1), big.NewInt(2), big.NewInt(3), big.NewInt(14), new(big.Int).Sub(q, big.NewInt(1))}
				random := scalars(q, 2)
				for j, s := range append(small, random[len(random)-2:]...) {
					for n, u := range append(small, new(big.Int).Sub(q, s)) {
						if testsize.Of() < testsize.Whole && (i+j+n)%3 != 0 {
							continue // each number with others
						}
						u := new(big.Int).Mod(u, q)
						k := new(big.Int).Mul(u, m)
						R := g.mul(k.Add(k, s).Mod(k, q), G)
						a, b := toScalar(s), toScalar(u)
						if R.x == nil {
							if p.SumHasX(&field.Scalar{}, &a, &b) || p.SumHasX(&field.Scalar{1}, &a, &b) ||
								fast.SumHasX(&field.Scalar{}, &a, &b) || fast.SumHasX(&field.Scalar{1}, &a, &b) {
								t.Fatalf("%x*G + %x*%x*G is infinity, but SumHasX reports true", s, u, m)
							}
							continue
						}
						for name, p := range map[string]Point{"": p, " with a table": fast} {
							r := toScalar(new(big.Int).Mod(R.x, q))
							if !p.SumHasX(&r, &a, &b) {
								t.Fatalf("%x*G + %x*%x*G%s: SumHasX reports false for the right x", s, u, m, name)
							}
							r[0] ^= 1
							if p.SumHasX(&r, &a, &b) {
								t.Fatalf("%x*G + %x*%x*G%s: SumHasX reports true for a wrong x", s, u, m, name)
							}
						}
					}
				}
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for i, c := range curves {
		t.Run(c.name, func(t *testing.T) {
			g, G := base(t, i)
			size := c.Size()
			top := new(big.Int).Lsh(big.NewInt(1), uint(8*size))
			refuse := func(what string, p affine, want error) {
				t.Helper()
				if _, err := c.Parse(encode(p, size)); !errors.Is(err, want) {
					t.Errorf("%s: got %v, want %v", what, err, want)
				}
				if _, err := c.ParseMultiple(encode(p, size)); !errors.Is(err, want) {
					t.Errorf("%s, ParseMultiple: got %v, want %v", what, err, want)
				}
			}
			refuse("0, 0", affine{new(big.Int), new(big.Int)}, ErrCurve)
			refuse("x = p", affine{g.p, G.y}, ErrRange)
			refuse("y = p", affine{G.x, g.p}, ErrRange)
			refuse("x = y = 2^n-1", affine{new(big.Int).Sub(top, big.NewInt(1)), new(big.Int).Sub(top, big.NewInt(1))}, ErrRange)
			if x := new(big.Int).Add(G.x, g.p); x.Cmp(top) < 0 {
				refuse("x + p", affine{x, G.y}, ErrRange)
			}
			refuse("y + 1", affine{G.x, new(big.Int).Add(G.y, big.NewInt(1))}, ErrCurve)
			refuse("x + 1", affine{new(big.Int).Add(G.x, big.NewInt(1)), G.y}, ErrCurve)
			if _, err := c.Parse(encode(affine{G.x, new(big.Int).Sub(g.p, G.y)}, size)); err != nil {
				t.Errorf("Parse of -G: %v", err)
			}
		})
	}
}

// TestParseRefusesOtherSubgroups tests the curves of cofactor 4: Parse must refuse
// points of order 2 and 4 and their sums with points of the group, although they are on
// the curve.
func TestParseRefusesOtherSubgroups(t *testing.T) {
	tested := 0
	for i, c := range curves {
		if c.Cofactor() == 1 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			tested++
			g, G := base(t, i)
			q, size := order(c), c.Size()
			// A random point times q has order 1, 2 or 4.
			b := new(big.Int).Mul(G.y, G.y)
			b.Sub(b, new(big.Int).Exp(G.x, big.NewInt(3), nil))
			g.mod(b.Sub(b, new(big.Int).Mul(g.a, G.x)))
			orders := map[int]bool{}
			for x := int64(1); len(orders) < 2 && x < 1000; x++ {
				P := affine{x: big.NewInt(x)}
				r := new(big.Int).Mul(P.x, P.x)
				r.Add(r, g.a).Mul(r, P.x).Add(r, b)
				if P.y = new(big.Int).ModSqrt(g.mod(r), g.p); P.y == nil {
					continue
				}
				T := g.mul(q, P)
				if T.x == nil {
					if _, err := c.Parse(encode(P, size)); err != nil {
						t.Errorf("Parse of a point of the group: %v", err)
					}
					continue
				}
				if _, err := c.Parse(encode(P, size)); !errors.Is(err, ErrSubgroup) {
					t.Errorf("Parse of a point of order n*q: %v", err)
				}
				n := 2
				if g.add(T, T).x != nil {
					n = 4
				}
				orders[n] = true
				for name, p := range map[string]affine{"itself": T, "plus G": g.add(T, G), "plus 5G": g.add(g.mul(big.NewInt(5), G), T)} {
					if _, err := c.Parse(encode(p, size)); !errors.Is(err, ErrSubgroup) {
						t.Errorf("a point of order %d %s: got %v, want %v", n, name, err, ErrSubgroup)
					}
				}
			}
			if !orders[2] || !orders[4] {
				t.Fatal("found no points of order 2 and 4")
			}
		})
	}
	if tested != 2 {
		t.Fatalf("tested %d curves of cofactor 4, want 2", tested)
	}
}

// TestEdwardsComplete checks that d is not a square, because only then the Edwards
// addition is complete.
func TestEdwardsComplete(t *testing.T) {
	for name, d := range map[string]interface{ PutBytes([]byte) }{
		"TC26256A": &TC26256A.(*edwardsP256A).d,
		"TC26512C": &TC26512C.(*edwardsP512A).d,
	} {
		for _, c := range curves {
			if c.name != name {
				continue
			}
			b := make([]byte, c.Size())
			d.PutBytes(b)
			if big.Jacobi(fromLittleEndian(b), hexadecimal(c.p)) != -1 {
				t.Errorf("%s: d is a square", name)
			}
		}
	}
}

// TestWeierstrassFormulas checks the group laws for the formulas, also with results
// stored over operands. The other primes have the same code.
func TestWeierstrassFormulas(t *testing.T) {
	c := CryptoProA.(*weierstrassP256A)
	var table [6]affineP256A
	for j := range table {
		table[j] = affineP256A{c.comb()[0].x[j], c.comb()[0].y[j]}
	}
	var infinity projectiveP256A
	infinity.y.SetSmall(1)
	same := func(p, q projectiveP256A) bool {
		var l, r field.P256A
		l.Mul(&p.x, &q.z)
		r.Mul(&q.x, &p.z)
		l.Sub(&l, &r)
		ok := l.IsZero()
		l.Mul(&p.y, &q.z)
		r.Mul(&q.y, &p.z)
		l.Sub(&l, &r)
		return ok&l.IsZero() == 1 && p.z.IsZero() == q.z.IsZero()
	}
	points := []projectiveP256A{infinity}
	for j := range table {
		p := table[j].projective()
		points = append(points, p)
		p.y.Sub(&field.P256A{}, &p.y)
		c.add(&p, &p, &points[1]) // -(2j+1)G + G, with a denominator other than 1; infinity for j = 0
		points = append(points, p)
	}
	for _, p := range points {
		var d, s projectiveP256A
		c.double(&d, &p)
		c.add(&s, &p, &p)
		if !same(d, s) {
			t.Fatal("2p is not p + p")
		}
		s = p
		if c.double(&s, &s); !same(d, s) {
			t.Fatal("double stored over its operand differs")
		}
		n := p
		n.y.Sub(&field.P256A{}, &n.y)
		if c.add(&s, &p, &n); !same(s, infinity) {
			t.Fatal("p - p is not infinity")
		}
		for j := range table {
			e := table[j].projective()
			c.add(&s, &p, &e)
			if c.addMixed(&d, &p, &table[j]); !same(d, s) {
				t.Fatal("addMixed differs from add")
			}
			d = p
			if c.addMixed(&d, &d, &table[j]); !same(d, s) {
				t.Fatal("addMixed stored over its operand differs")
			}
		}
		for _, q := range points {
			var pq, qp projectiveP256A
			c.add(&pq, &p, &q)
			c.add(&qp, &q, &p)
			if !same(pq, qp) {
				t.Fatal("p + q is not q + p")
			}
			s, d = p, q
			c.add(&s, &s, &q)
			if c.add(&d, &p, &d); !same(s, pq) || !same(d, pq) {
				t.Fatal("add stored over an operand differs")
			}
			for _, r := range points {
				c.add(&s, &pq, &r)
				c.add(&d, &q, &r)
				if c.add(&d, &p, &d); !same(s, d) {
					t.Fatal("(p + q) + r is not p + (q + r)")
				}
			}
		}
	}
}

func TestDigits(t *testing.T) {
	for _, c := range curves {
		q := order(c)
		for _, width := range []int{baseBits, pointBits} {
			for _, k := range append(scalars(q, 20), new(big.Int)) {
				s := toScalar(k)
				digits := make([]int8, windows(c.Size(), width))
				recode(digits, &s, c.Order(), width)
				sum := new(big.Int)
				for i := len(digits) - 1; i >= 0; i-- {
					if d := int(digits[i]); d%2 == 0 || d < -1<<width || d > 1<<width {
						t.Fatalf("digit %d of %x is too large for the table", d, k)
					}
					sum.Lsh(sum, uint(width)).Add(sum, big.NewInt(int64(digits[i])))
				}
				want := k
				if k.Bit(0) == 0 {
					want = new(big.Int).Add(k, q)
				}
				if sum.Cmp(want) != 0 || digits[len(digits)-1] < 0 {
					t.Fatalf("width %d: the digits of %x give %x", width, k, sum)
				}
				var sparse [maxDigits]int8
				n := naf(&sparse, &s, width)
				sum.SetInt64(0)
				for i := maxDigits - 1; i >= 0; i-- {
					d := sparse[i]
					if d != 0 && (d%2 == 0 || i >= n || d > 1<<(width-1) || d < -1<<(width-1)) {
						t.Fatalf("invalid digit %d of %x at index %d of %d", d, k, i, n)
					}
					sum.Lsh(sum, 1).Add(sum, big.NewInt(int64(d)))
				}
				if sum.Cmp(k) != 0 {
					t.Fatalf("width %d: the non-adjacent form of %x gives %x", width, k, sum)
				}
			}
		}
	}
	for d := -63; d <= 63; d += 2 {
		index, negative := split(int8(d))
		if int(2*index+1) != max(d, -d) || (negative == ^uint64(0)) != (d < 0) {
			t.Errorf("split of %d is wrong", d)
		}
	}
}

func BenchmarkMulBase(b *testing.B) {
	for i, c := range curves {
		b.Run(c.name, func(b *testing.B) {
			base(b, i)
			k := c.Order().Value()
			k[0] -= 12345
			xy := make([]byte, 2*c.Size())
			for b.Loop() {
				c.MulBase(xy, &k)
			}
		})
	}
}

// BenchmarkTable measures the time of the first use of a base point, which builds its
// table.
func BenchmarkTable(b *testing.B) {
	b.Run("P256A", func(b *testing.B) {
		for b.Loop() {
			c := weierstrassP256A{a: CryptoProA.(*weierstrassP256A).a, b: CryptoProA.(*weierstrassP256A).b, base: CryptoProA.(*weierstrassP256A).base}
			c.comb()
		}
	})
	b.Run("P512A", func(b *testing.B) {
		for b.Loop() {
			c := weierstrassP512A{a: TC26512A.(*weierstrassP512A).a, b: TC26512A.(*weierstrassP512A).b, base: TC26512A.(*weierstrassP512A).base}
			c.comb()
		}
	})
}
