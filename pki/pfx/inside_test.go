// SPDX-License-Identifier: Apache-2.0

package pfx

import (
	"bytes"
	"testing"

	"golang.org/x/crypto/cryptobyte"

	"tamga/pki/x509gost"
)

// The encrypted part may be as hostile as the rest, because the sender knows the password
// and can make a correct integrity code.
func FuzzInside(f *testing.F) {
	for _, c := range []Cipher{Kuznyechik, Magma, GOST28147, AES256} {
		algorithm, data, err := encipher(zeros{}, Options{Cipher: c, Iterations: 2}, "x", []byte{0x30, 0})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(algorithm, data)
		var bag cryptobyte.Builder
		addBag(&bag, oidCertBag, "name", []byte{1}, func(b *cryptobyte.Builder) { b.AddBytes(data) })
		f.Add(algorithm, derOf(bag.BytesOrPanic()))
	}
	bag := cryptoProBag(f, x509gost.OID{1, 2, 643, 7, 1, 1, 1, 1}, make([]byte, 32), make([]byte, 4), 2)
	f.Add(bag, bag)
	f.Fuzz(func(t *testing.T, algorithm, data []byte) {
		r := &reader{password: "x", budget: 1000}
		_, _, _ = openCryptoPro(make([]byte, 32), bytes.Clone(data))
		_ = (&reader{password: "x", budget: 1000}).bag(oidShroudedBag, algorithm, "", nil, 0)
		in := cryptobyte.String(algorithm)
		if plain, err := r.budget.decipher(&in, "x", data); err == nil && len(plain) > len(data) {
			t.Fatal("the plain text is longer")
		}
		if r.budget < 0 {
			t.Fatal("more iterations were spent than the budget had")
		}
		if err := r.safe(data, 0); err == nil && r.bags > maxBags {
			t.Fatal("more bags than allowed")
		}
		if _, err := r.bundle(); err == nil && r.key == nil {
			t.Fatal("a bundle without a key is accepted")
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func derOf(content []byte) []byte {
	return append([]byte{0x30, byte(len(content))}, content...)
}

// All derivations of a file share one budget of iterations.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		iterations uint64
		blocks     int
		ok         bool
	}{{0, 1, false}, {1, 1, true}, {MaxIterations, 1, false}, {1 << 63, 1, false}, {1000, 2, true}, {MaxIterations / 2, 2, false}, {1000, 1, true}} {
		b := budget(MaxIterations - 1)
		_, err := b.spend(c.iterations, c.blocks)
		if (err == nil) != c.ok {
			t.Errorf("%d times %d: %v", c.iterations, c.blocks, err)
		}
		if want := budget(MaxIterations-1) - budget(c.iterations)*budget(c.blocks); c.ok && b != want {
			t.Errorf("%d left, want %d", b, want)
		}
	}
	b := budget(5000)
	if _, err := b.integrity(oidStreebog512, "x", nil, 2000, nil); err != nil { // two blocks
		t.Fatal(err)
	}
	if _, err := b.integrity(oidStreebog512, "x", nil, 2000, nil); err == nil {
		t.Error("a second derivation went beyond the budget")
	}
	if _, err := b.integrity(x509gost.OID{1, 2, 3}, "x", nil, 1, nil); err == nil {
		t.Error("an unknown digest is accepted")
	}
}
