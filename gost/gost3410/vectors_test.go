// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost341194"
	"tamga/gost/streebog"
)

// load reads a JSON file of testdata. Each file names its source.
func load(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// number returns printed hexadecimal as size big-endian bytes.
func number(t testing.TB, printed string, size int) []byte {
	t.Helper()
	if len(printed)%2 != 0 {
		printed = "0" + printed
	}
	b, err := hex.DecodeString(printed)
	if err != nil || len(b) > size {
		t.Fatalf("%q is not a hexadecimal number of up to %d bytes", printed, size)
	}
	return append(make([]byte, size-len(b)), b...)
}

// reversed returns printed hexadecimal as size little-endian bytes.
func reversed(t testing.TB, printed string, size int) []byte {
	t.Helper()
	b := number(t, printed, size)
	slices.Reverse(b)
	return b
}

func setNamed(t testing.TB, name string) *Set {
	t.Helper()
	for _, s := range Sets() {
		if s.Name() == name {
			return s
		}
	}
	t.Fatalf("no set has the name %s", name)
	return nil
}

func TestSets(t *testing.T) {
	var file struct {
		Source, Note string
		SameCurve    map[string]string `json:"same_curve"`
		Curves       []struct{ Name, OID, P, Q, A, B, X, Y string }
	}
	load(t, "curves.json", &file)
	oids := map[string]*Set{
		// The sets that same_curve names in the file, without parameters of their own.
		"1.2.643.2.2.36.0":    CryptoProXchA,
		"1.2.643.2.2.36.1":    CryptoProXchB,
		"1.2.643.7.1.2.1.1.2": TC26256B,
		"1.2.643.7.1.2.1.1.3": TC26256C,
		"1.2.643.7.1.2.1.1.4": TC26256D,
	}
	for _, c := range file.Curves {
		t.Run(c.Name, func(t *testing.T) {
			s := setNamed(t, c.Name)
			oids[c.OID] = s
			size := s.Size()
			q := s.curve.Order().Value()
			b := make([]byte, size)
			putBigEndian(b, &q)
			if !bytes.Equal(b, number(t, c.Q, size)) {
				t.Errorf("the order is %x", b)
			}
			// 1*G is the base point. PublicKey checks that it is on the curve, so a and
			// b are right.
			G := append(reversed(t, c.X, size), reversed(t, c.Y, size)...)
			one := append([]byte{1}, make([]byte, size-1)...)
			d, err := NewPrivateKey(s, one)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(d.PublicKey().Bytes(), G) {
				t.Errorf("the base point is %x", d.PublicKey().Bytes())
			}
			// (q-1)*G is -G, so q is the order of the base point.
			q[0]--
			putBigEndian(b, &q)
			slices.Reverse(b)
			d, err = NewPrivateKey(s, b)
			if err != nil {
				t.Fatal(err)
			}
			minus := d.PublicKey().Bytes()
			if !bytes.Equal(minus[:size], G[:size]) || bytes.Equal(minus[size:], G[size:]) {
				t.Errorf("(q-1)*G is %x", minus)
			}
		})
	}
	if len(oids) != len(Sets()) {
		t.Errorf("the file has %d sets, the package %d", len(oids), len(Sets()))
	}
	for alias, original := range file.SameCurve {
		if !oids[alias].SameCurve(oids[original]) {
			t.Errorf("%s is not the curve of %s", oids[alias], oids[original])
		}
	}
	if CryptoProA.SameCurve(CryptoProB) || TC26256A.SameCurve(CryptoProA) {
		t.Error("SameCurve reports true for different curves")
	}
}

func TestSignatures(t *testing.T) {
	var file struct {
		Source, Note string
		Tests        []struct{ Name, Curve, D, E, K, X, Y, R, S string }
	}
	load(t, "signatures.json", &file)
	sets := map[string]*Set{
		"id-GostR3410-2001-TestParamSet":          TestSet,
		"id-tc26-gost-3410-2012-512-paramSetTest": TC26512Test,
	}
	for _, c := range file.Tests {
		t.Run(c.Name, func(t *testing.T) {
			s := sets[c.Curve]
			size := s.Size()
			d, err := NewPrivateKey(s, reversed(t, c.D, size))
			if err != nil {
				t.Fatal(err)
			}
			xy := append(reversed(t, c.X, size), reversed(t, c.Y, size)...)
			if !bytes.Equal(d.PublicKey().Bytes(), xy) {
				t.Errorf("public key %x, want %x", d.PublicKey().Bytes(), xy)
			}
			digest := reversed(t, c.E, size)
			want := append(number(t, c.S, size), number(t, c.R, size)...)
			got, err := d.signWithNonceForTesting(digest, reversed(t, c.K, size))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("signature\n%x, want\n%x", got, want)
			}
			if !d.PublicKey().Verify(digest, want) {
				t.Error("the signature does not verify")
			}
		})
	}
	if len(file.Tests) != 2 {
		t.Errorf("%d examples, want the 2 of RFC 7091", len(file.Tests))
	}
}

// signWithNonceForTesting is Sign with a nonce given as little-endian bytes.
func (k *PrivateKey) signWithNonceForTesting(digest, nonce []byte) ([]byte, error) {
	var n field.Scalar
	n.SetBytes(nonce)
	e := digestScalar(k.set.curve.Order(), digest)
	return k.signWith(&n, &e)
}

func TestVKO(t *testing.T) {
	type agreement struct {
		Curve, UKM, PrvA, PubA, PrvB, PubB, KEK, KEK256, KEK512 string
	}
	var file struct {
		Source, Note string
		New          agreement `json:"vko_2012"`
		Old          agreement `json:"vko_2001"`
	}
	load(t, "vko.json", &file)
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil || len(b) == 0 {
			t.Fatalf("%q is not hexadecimal or is empty", s)
		}
		return b
	}
	for _, c := range []struct {
		name string
		agreement
		hash func() hash.Hash
		want string
	}{
		{"2012-256", file.New, streebog.New256, file.New.KEK256},
		{"2012-512", file.New, streebog.New512, file.New.KEK512},
		{"2001", file.Old, gost341194.NewCryptoPro, file.Old.KEK},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setNamed(t, c.Curve)
			a, errA := NewPrivateKey(s, unhex(c.PrvA))
			b, errB := NewPrivateKey(s, unhex(c.PrvB))
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if c.PubA != "" && (!bytes.Equal(a.PublicKey().Bytes(), unhex(c.PubA)) || !bytes.Equal(b.PublicKey().Bytes(), unhex(c.PubB))) {
				t.Error("the public keys differ")
			}
			for _, pair := range []struct{ own, peer *PrivateKey }{{a, b}, {b, a}} {
				got, err := pair.own.VKO(pair.peer.PublicKey(), unhex(c.UKM), c.hash)
				if err != nil {
					t.Fatal(err)
				}
				if want := unhex(c.want); !bytes.Equal(got, want) {
					t.Errorf("got %x, want %x", got, want)
				}
			}
		})
	}
}

// TestDRBG compares the generator with RFC 6979, appendix A.2.5: P-256 with SHA-256.
// Those nonces are the first output of HMAC_DRBG seeded with the key and the digest.
func TestDRBG(t *testing.T) {
	const key = "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721"
	// digest is SHA-256 of the message. Both digests are below the order of P-256.
	for _, c := range []struct{ message, digest, nonce string }{
		{"sample", "af2bdbe1aa9b6ec1e2ade1d694f41fc71a831d0268e9891562113d8a62add1bf", "A6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60"},
		{"test", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "D16B6AE827F17175E040871A1C7EC3500192C4C92677336EC2537ACAEE0008E0"},
	} {
		b := newDRBG(slices.Concat(number(t, key, 32), number(t, c.digest, 32))).read(32)
		if want := number(t, c.nonce, 32); !bytes.Equal(b, want) {
			t.Errorf("%s: got %X, want %X", c.message, b, want)
		}
	}
	// The output does not depend on the sizes of the reads, and it does not repeat.
	whole, pieces := newDRBG([]byte("seed")), newDRBG([]byte("seed"))
	seen := map[string]bool{}
	for range 20 {
		a := [64]byte(whole.read(64))
		var b [2][32]byte
		for i := range b {
			copy(b[i][:], pieces.read(32))
		}
		if !bytes.Equal(a[:32], b[0][:]) || !bytes.Equal(a[32:], b[1][:]) {
			t.Fatal("reading 32 bytes at a time gives another output than 64")
		}
		if seen[string(b[0][:])] || seen[string(b[1][:])] || b[0] == b[1] {
			t.Fatal("the output repeats")
		}
		seen[string(b[0][:])], seen[string(b[1][:])] = true, true
	}
}
