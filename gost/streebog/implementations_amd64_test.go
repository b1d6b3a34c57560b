// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package streebog

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// eachImplementation runs f with every implementation that the processor supports.
func eachImplementation(t *testing.T, f func(t *testing.T)) {
	defer func(v, h bool) { vectorized, halved = v, h }(vectorized, halved)
	if vectorized {
		t.Run("avx512", f)
	} else {
		t.Log("the processor lacks AVX-512 with VBMI and GFNI: its implementation is not tested")
	}
	vectorized = false
	if halved {
		t.Run("avx2", f)
	} else {
		t.Log("the processor lacks AVX2: only the portable implementation is tested")
	}
	halved = false
	t.Run("portable", f)
}

// randomState returns a random state, which no message need have. The implementations
// must agree on every state.
func randomState(r *rand.Rand) (s state) {
	for _, words := range []*[8]uint64{&s.h, &s.n, &s.sigma} {
		for i := range words {
			words[i] = r.Uint64()
		}
	}
	return s
}

func FuzzImplementations(f *testing.F) {
	for n := range 6 {
		f.Add(uint64(n), byte(0), make([]byte, n*BlockSize))
		f.Add(uint64(n), byte(n), make([]byte, 3*n*BlockSize+n))
	}
	f.Fuzz(func(t *testing.T, seed uint64, near byte, data []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, u := randomState(r), randomState(r)
		if near > 0 { // the low word of the bit count overflows within the data
			s.n[0] = math.MaxUint64 - 512*uint64(near) + 1
			s.n[1] = math.MaxUint64
		}
		p := data[:len(data)&^(BlockSize-1)]
		q := make([]byte, len(p))
		for i := range q {
			q[i] = byte(r.Uint32())
		}
		eachImplementation(t, func(t *testing.T) { compareGeneric(t, s, u, p, q) })
	})
}

// compareGeneric compares the implementation in use with blocksGeneric.
func compareGeneric(t *testing.T, s, u state, p, q []byte) {
	t.Helper()
	wantS, wantU := s, u
	blocksGeneric(&wantS, p)
	blocksGeneric(&wantU, q)

	gotS, gotU := s, u
	blocks(&gotS, p)
	if gotS != wantS {
		t.Fatalf("blocks: %x, want %x", gotS, wantS)
	}
	gotS = s
	blocksTwo(&gotS, &gotU, p, q)
	if gotS != wantS || gotU != wantU {
		t.Fatalf("blocksTwo: %x, %x, want %x, %x", gotS, gotU, wantS, wantU)
	}
	gotS, gotU = s, u
	blocksTwo(&gotU, &gotS, q, p)
	if gotS != wantS || gotU != wantU {
		t.Fatalf("blocksTwo, exchanged: %x, %x, want %x, %x", gotS, gotU, wantS, wantU)
	}
}

// TestImplementations does what FuzzImplementations does, on a number of states that a test has time for
// and on data that needs several calls of the assembly.
func TestImplementations(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 300 {
			n := r.IntN(9) * BlockSize
			if i%100 == 0 {
				n = 2*longest + 3*BlockSize
			}
			p, q := make([]byte, n), make([]byte, n)
			for i := range p {
				p[i], q[i] = byte(r.Uint32()), byte(r.Uint32())
			}
			compareGeneric(t, randomState(r), randomState(r), p, q)
		}
	})
}

// TestSplit compares the decomposition of S with the table of the standard.
func TestSplit(t *testing.T) {
	multiply := func(a, b byte) (p byte) { // in the field of 16 elements
		for i := range 4 {
			p ^= a << i * (b >> i & 1)
		}
		for i := 6; i >= 4; i-- {
			p ^= 0b11001 << (i - 4) * (p >> i & 1)
		}
		return p
	}
	for x := range pi {
		y := product(&alphaRows, byte(x))
		l, r := y>>4, y&15
		if r == 0 {
			l = nu0[l]
		} else {
			for i := range byte(16) {
				if multiply(i, r) == l { // i = l/r
					l = nu1[i]
					break
				}
			}
		}
		r = sigma[multiply(r, phi[l])]
		if got := product(&omegaRows, l<<4|r); got != pi[x] {
			t.Errorf("S(%d) is %d, want %d", x, got, pi[x])
		}
	}
}

// TestIsomorphism checks that phi is an isomorphism, and it compares the vectors for L
// and S with the tables of the standard.
func TestIsomorphism(t *testing.T) {
	phi, inverse := isomorphism()
	// The product in Streebog's field: the top bit is the constant term.
	mul := func(a, b byte) (p byte) {
		for ; b > 0; b <<= 1 {
			if b>>7 == 1 {
				p ^= a
			}
			low := a & 1 // x^7, about to become x^8 = x^6+x^5+x^4+1
			a = a>>1 ^ low*0x8e
		}
		return p
	}
	for x := range 256 {
		x := byte(x)
		if inverse[phi[x]] != x {
			t.Fatalf("inverse(phi(%#[1]x)) is not %#[1]x", x)
		}
		for y := range 256 {
			y := byte(y)
			if phi[x^y] != phi[x]^phi[y] {
				t.Fatalf("phi(%#x+%#x) is not the sum", x, y)
			}
			if phi[mul(x, y)] != mulAES(phi[x], phi[y]) {
				t.Fatalf("phi(%#x*%#x) is not the product", x, y)
			}
		}
	}

	factors := linearFactors(phi, inverse)
	v := makeVectors()
	for x := range 256 {
		if got := v.sbox[phi[x]/64][phi[x]%64]; got != phi[pi[x]] {
			t.Fatalf("S(%#x) is %#x, want %#x", x, inverse[got], pi[x])
		}
		for i := range factors {
			for j, factor := range factors[i] {
				got := inverse[mulAES(factor, phi[pi[x]])]
				if want := byte(lpsTable[i][x] >> (8 * j)); got != want {
					t.Fatalf("byte %d = %#x contributes %#[4]x to byte %[3]d of L(S), want %#[5]x", i, x, j, got, want)
				}
			}
		}
	}
}

func TestAlignment(t *testing.T) {
	if a := uintptr(unsafe.Pointer(makeNibbles())); a%32 != 0 {
		t.Errorf("the halves are at address %#x, want a multiple of 32 for speed", a)
	}
	if a := uintptr(unsafe.Pointer(makeVectors())); a%64 != 0 {
		t.Errorf("the vectors are at address %#x, want a multiple of 64 for speed", a)
	}
}
