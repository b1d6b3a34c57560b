// SPDX-License-Identifier: Apache-2.0

package field

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"tamga/internal/testsize"
)

// prime is a prime with the tests and benchmarks of its type.
type prime struct {
	name string
	p    *big.Int
	size int // bytes
	test func(t *testing.T, p *big.Int, values []*big.Int)
	time func(b *testing.B)
}

// element is the method set that all types share. E is the type, P a pointer to it.
type element[E any] interface {
	*E
	Add(x, y *E)
	Sub(x, y *E)
	Mul(x, y *E)
	Sqr(x *E)
	Triple(x *E)
	MulSmall(x *E, k uint64)
	SetSmall(k uint64)
	Invert(x *E)
	SetBytes(b []byte) bool
	PutBytes(b []byte)
	IsZero() uint64
	Assign(x *E, mask uint64)
	Lookup(table []E, index uint64)
}

func number(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 16)
	if !ok {
		panic("not hexadecimal: " + s)
	}
	return n
}

func power(exp uint, c int64) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), exp)
	return n.Add(n, big.NewInt(c))
}

// The primes, written independently of the limbs in the code.
var primes = []prime{
	{"P256A", power(256, -617), 32, testElement[P256A], timeElement[P256A]},
	{"P256B", power(255, 3225), 32, testElement[P256B], timeElement[P256B]},
	{"P256C", number("9b9f605f5a858107ab1ec85e6b41c8aacf846e86789051d37998f7b9022d759b"), 32, testElement[P256C], timeElement[P256C]},
	{"P256T", power(255, 1073), 32, testElement[P256T], timeElement[P256T]},
	{"P512A", power(512, -569), 64, testElement[P512A], timeElement[P512A]},
	{"P512B", power(511, 111), 64, testElement[P512B], timeElement[P512B]},
	{"P512T", number("4531acd1fe0023c7550d267b6b2fee80922b14b2ffb90f04d4eb7c09b5d2d15df1d852741af4704a0458047e80e4546d35b8336fac224dd81664bbf528be6373"), 64, testElement[P512T], timeElement[P512T]},
}

// samples returns numbers below the bound: around zero, around the bound, around
// powers of two at the limbs' edges, with long runs of ones, and random ones.
func samples(bound *big.Int, size, random int) []*big.Int {
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	var all []*big.Int
	add := func(n *big.Int) {
		if n.Sign() >= 0 && n.Cmp(bound) < 0 {
			all = append(all, n)
		}
	}
	for i := int64(0); i < 4; i++ {
		add(big.NewInt(i))
		add(new(big.Int).Sub(bound, big.NewInt(i+1)))
	}
	for e := 31; e <= 8*size; e += 32 {
		for _, c := range []int64{-1, 0, 1} {
			add(power(uint(e), c))
			add(power(uint(e+1), c))
			add(new(big.Int).Sub(bound, power(uint(e+1), c)))
		}
	}
	for range random {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		switch r.IntN(4) { // long runs of ones and zeros make long carries
		case 0:
			copy(b[r.IntN(size):], slices.Repeat([]byte{0xff}, size))
		case 1:
			copy(b[:r.IntN(size)], slices.Repeat([]byte{0xff}, size))
		case 2:
			clear(b[:r.IntN(size)])
		}
		add(new(big.Int).Mod(new(big.Int).SetBytes(b), bound))
	}
	return all
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

func TestPrimes(t *testing.T) {
	for _, p := range primes {
		t.Run(p.name, func(t *testing.T) {
			if !p.p.ProbablyPrime(20) {
				t.Fatal("the modulus is not prime")
			}
			random := 60
			if testsize.Of() < testsize.Whole {
				random = 10
			}
			p.test(t, p.p, samples(p.p, p.size, random))
		})
	}
}

func testElement[E any, P element[E]](t *testing.T, p *big.Int, values []*big.Int) {
	size := (p.BitLen() + 7) / 8
	get := func(x *E) *big.Int {
		b := make([]byte, size)
		P(x).PutBytes(b)
		return fromLittleEndian(b)
	}
	set := func(n *big.Int) *E {
		x := new(E)
		if !P(x).SetBytes(littleEndian(n, size)) {
			t.Fatalf("SetBytes does not accept %x", n)
		}
		return x
	}
	check := func(op string, got *E, want *big.Int, operands ...*big.Int) {
		t.Helper()
		if want = new(big.Int).Mod(want, p); get(got).Cmp(want) != 0 {
			t.Fatalf("%s of %x: got %x, want %x", op, operands, get(got), want)
		}
		if zero := want.Sign() == 0; (P(got).IsZero() == 1) != zero {
			t.Fatalf("%s of %x: IsZero is wrong", op, operands)
		}
	}
	for i, a := range values {
		x := set(a)
		check("SetBytes", x, a, a)
		z := new(E)
		P(z).Sqr(x)
		check("Sqr", z, new(big.Int).Mul(a, a), a)
		P(z).Triple(x)
		check("Triple", z, new(big.Int).Mul(a, big.NewInt(3)), a)
		u := *x
		P(&u).Triple(&u)
		check("Triple over x", &u, new(big.Int).Mul(a, big.NewInt(3)), a)
		P(z).Invert(x)
		if a.Sign() == 0 {
			check("Invert", z, a, a)
		} else {
			check("Invert", z, new(big.Int).ModInverse(a, p), a)
		}
		for _, k := range []uint64{0, 1, 2, 3, 166, 1<<32 - 1} {
			P(z).MulSmall(x, k)
			check("MulSmall", z, new(big.Int).Mul(a, new(big.Int).SetUint64(k)), a)
			P(z).SetSmall(k)
			check("SetSmall", z, new(big.Int).SetUint64(k))
		}
		for j, b := range values {
			if testsize.Of() < testsize.Whole && (i+j)%4 != 0 {
				continue // each value with others
			}
			y := set(b)
			P(z).Add(x, y)
			check("Add", z, new(big.Int).Add(a, b), a, b)
			P(z).Sub(x, y)
			check("Sub", z, new(big.Int).Sub(a, b), a, b)
			P(z).Mul(x, y)
			check("Mul", z, new(big.Int).Mul(a, b), a, b)

			// Results stored over operands.
			u, v := *x, *y
			P(&u).Mul(&u, &v)
			check("Mul over x", &u, new(big.Int).Mul(a, b), a, b)
			u = *x
			P(&v).Sub(&u, &v)
			check("Sub over y", &v, new(big.Int).Sub(a, b), a, b)
			P(&u).Add(&u, &u)
			check("Add over both", &u, new(big.Int).Add(a, a), a)

			// Values above the prime: chains of operations without a reduction.
			s, w := *x, new(big.Int).Set(a)
			for range 3 {
				P(&s).Add(&s, &s)
				P(&s).Sub(&s, y)
				P(&s).MulSmall(&s, 1<<32-1)
				P(&s).Sqr(&s)
				P(&s).Add(&s, y)
				w.Lsh(w, 1).Sub(w, b)
				w.Mul(w, big.NewInt(1<<32-1))
				w.Mul(w, w).Add(w, b).Mod(w, p)
			}
			check("chain", &s, w, a, b)

			u = *x
			P(&u).Assign(y, 0)
			check("Assign 0", &u, a)
			P(&u).Assign(y, ^uint64(0))
			check("Assign 1", &u, b)
		}
	}
	table := make([]E, 32)
	for j := range table {
		table[j] = *set(values[len(values)-1-j])
	}
	for j := range table {
		z := new(E)
		P(z).Lookup(table, uint64(j))
		check("Lookup", z, values[len(values)-1-j])
	}
	top := new(big.Int).Lsh(big.NewInt(1), uint(8*size))
	for _, n := range []*big.Int{p, new(big.Int).Add(p, big.NewInt(1)), new(big.Int).Sub(top, big.NewInt(1))} {
		if P(new(E)).SetBytes(littleEndian(n, size)) {
			t.Errorf("SetBytes accepts %x", n)
		}
	}
}

// TestRedundantLimbs tests limbs at or above the prime. SetBytes does not accept them,
// but sums may have them.
func TestRedundantLimbs(t *testing.T) {
	all := ^uint64(0)
	limbs4 := [][4]uint64{{all, all, all, all}, {0, 0, 0, all}, {p256aPrime[0], all, all, all}, {p256aPrime[0] + 1, all, all, all},
		{p256bPrime[0], 0, 0, 1 << 63}, {2 * 3225, 0, 0, 1 << 63}, {all, all, all, 1<<63 - 1}, {all, all, all, 1 << 63}, {0, 0, 0, 1 << 63}}
	for _, x := range limbs4 {
		for _, y := range limbs4 {
			checkRedundant(t, primes[0].p, x[:], y[:], func(f func(z, x, y *P256A)) []uint64 {
				a, b := P256A(x), P256A(y)
				f(&a, &a, &b)
				l := a.Limbs()
				return l[:]
			})
			checkRedundant(t, primes[1].p, x[:], y[:], func(f func(z, x, y *P256B)) []uint64 {
				a, b := P256B(x), P256B(y)
				f(&a, &a, &b)
				l := a.Limbs()
				return l[:]
			})
			checkRedundant(t, primes[3].p, x[:], y[:], func(f func(z, x, y *P256T)) []uint64 {
				a, b := P256T(x), P256T(y)
				f(&a, &a, &b)
				l := a.Limbs()
				return l[:]
			})
		}
	}
	limbs8 := [][8]uint64{{all, all, all, all, all, all, all, all}, {0, 0, 0, 0, 0, 0, 0, all}, {p512aPrime[0], all, all, all, all, all, all, all},
		{p512bPrime[0], 0, 0, 0, 0, 0, 0, 1 << 63}, {2 * 111, 0, 0, 0, 0, 0, 0, 1 << 63}, {all, all, all, all, all, all, all, 1<<63 - 1},
		{all, all, all, all, all, all, all, 1 << 63}}
	for _, x := range limbs8 {
		for _, y := range limbs8 {
			checkRedundant(t, primes[4].p, x[:], y[:], func(f func(z, x, y *P512A)) []uint64 {
				a, b := P512A(x), P512A(y)
				f(&a, &a, &b)
				l := a.Limbs()
				return l[:]
			})
			checkRedundant(t, primes[5].p, x[:], y[:], func(f func(z, x, y *P512B)) []uint64 {
				a, b := P512B(x), P512B(y)
				f(&a, &a, &b)
				l := a.Limbs()
				return l[:]
			})
		}
	}
}

func toBig(limbs []uint64) *big.Int {
	b := make([]byte, 8*len(limbs))
	putBytes(b, limbs)
	return fromLittleEndian(b)
}

func checkRedundant[E any, P element[E]](t *testing.T, p *big.Int, x, y []uint64, apply func(f func(z, x, y *E)) []uint64) {
	t.Helper()
	a, b := toBig(x), toBig(y)
	for _, op := range []struct {
		name string
		f    func(z, x, y *E)
		want *big.Int
	}{
		{"Add", func(z, x, y *E) { P(z).Add(x, y) }, new(big.Int).Add(a, b)},
		{"Sub", func(z, x, y *E) { P(z).Sub(x, y) }, new(big.Int).Sub(a, b)},
		{"Mul", func(z, x, y *E) { P(z).Mul(x, y) }, new(big.Int).Mul(a, b)},
		{"Sqr", func(z, x, y *E) { P(z).Sqr(x) }, new(big.Int).Mul(a, a)},
		{"MulSmall", func(z, x, y *E) { P(z).MulSmall(x, 1<<32-1) }, new(big.Int).Mul(a, big.NewInt(1<<32-1))},
	} {
		want := new(big.Int).Mod(op.want, p)
		if got := toBig(apply(op.f)); got.Cmp(want) != 0 {
			t.Fatalf("%s of limbs %x and %x modulo %x: got %x, want %x", op.name, x, y, p, got, want)
		}
	}
}

func TestModulus(t *testing.T) {
	moduli := map[string]*big.Int{
		"CryptoPro A": number("ffffffffffffffffffffffffffffffff6c611070995ad10045841b09b761b893"),
		"TC26 256 A":  number("400000000000000000000000000000000fd8cddfc87b6635c115af556c360c67"),
		"TC26 512 B":  number("800000000000000000000000000000000000000000000000000000000000000149a1ec142565a545acfdb77bd9d40cfa8b996712101bea0ec6346c54374f25bd"),
		"TC26 512 C":  number("3fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc98cdba46506ab004c33a9ff5147502cc8eda9e7a769a12694623cef47f023ed"),
	}
	for name, q := range moduli {
		t.Run(name, func(t *testing.T) {
			size := (q.BitLen() + 7) / 8
			var m Scalar
			m.SetBytes(littleEndian(q, size))
			o := NewModulus(&m, size/8)
			if o.BitLen() != q.BitLen() || o.Value() != m {
				t.Fatal("BitLen or Value differs from the modulus")
			}
			scalar := func(n *big.Int) (s Scalar) { s.SetBytes(littleEndian(n, size)); return s }
			check := func(op string, z *Scalar, want *big.Int) {
				t.Helper()
				if got := toBig(z[:]); got.Cmp(want.Mod(want, q)) != 0 {
					t.Fatalf("%s: got %x, want %x", op, got, want)
				}
			}
			values := samples(q, size, 40)
			for _, a := range values {
				x := scalar(a)
				var z Scalar
				if o.Less(&x) != 1 {
					t.Fatalf("Less reports that %x is not below the modulus", a)
				}
				o.Negate(&z, &x)
				check("Negate", &z, new(big.Int).Neg(a))
				if a.Sign() != 0 {
					o.Invert(&z, &x)
					check("Invert", &z, new(big.Int).ModInverse(a, q))
				}
				for _, b := range values {
					y := scalar(b)
					o.Mul(&z, &x, &y)
					check("Mul", &z, new(big.Int).Mul(a, b))
					o.Add(&z, &x, &y)
					check("Add", &z, new(big.Int).Add(a, b))
				}
			}
			for _, a := range samples(power(uint(8*size), 0), size, 100) {
				x := scalar(a)
				if (o.Less(&x) == 1) != (a.Cmp(q) < 0) {
					t.Fatalf("Less is wrong for %x", a)
				}
				o.Reduce(&x, &x)
				check("Reduce", &x, new(big.Int).Set(a))
			}
			if o.Less(&m) != 0 {
				t.Fatal("Less reports that the modulus is below itself")
			}
		})
	}
}

func BenchmarkField(b *testing.B) {
	for _, p := range primes {
		b.Run(p.name, p.time)
	}
}

func timeElement[E any, P element[E]](b *testing.B) {
	// Four independent chains measure the throughput, as in a point formula.
	one := func(f func(z, x *E)) func(b *testing.B) {
		return func(b *testing.B) {
			var v [4]E
			for i := range v {
				P(&v[i]).SetSmall(uint64(3 + i))
				P(&v[i]).Invert(&v[i])
			}
			for i := 0; b.Loop(); i++ {
				f(&v[i&3], &v[(i+1)&3])
			}
		}
	}
	b.Run("Mul", one(func(z, x *E) { P(z).Mul(z, x) }))
	b.Run("Sqr", one(func(z, x *E) { P(z).Sqr(z) }))
	b.Run("Add", one(func(z, x *E) { P(z).Add(z, x) }))
	b.Run("Invert", one(func(z, x *E) { P(z).Invert(z) }))
}
