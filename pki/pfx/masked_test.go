// SPDX-License-Identifier: Apache-2.0

package pfx

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// A file with a masked key (RFC 9548, section 5.1) can be read, and its certificate is found
// by the unmasked key. A changed mask gives another key and no certificate.
func TestMaskedKey(t *testing.T) {
	su := suite.GOST2012x256
	key, err := gost3410.GenerateKey(gost3410.CryptoProA, counter{})
	if err != nil {
		t.Fatal(err)
	}
	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "masked"}})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	certificate, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: subject, SerialNumber: []byte{1}, NotBefore: from, NotAfter: from.AddDate(1, 0, 0),
	}, nil, key.Public(), su, su, x509gost.SignWith(counter{}, key, su))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := x509gost.MarshalPrivateKey(key, su)
	if err != nil {
		t.Fatal(err)
	}
	var seq, algorithm cryptobyte.String
	in := cryptobyte.String(plain)
	if !in.ReadASN1(&seq, asn1.SEQUENCE) || !seq.SkipASN1(asn1.INTEGER) || !seq.ReadASN1Element(&algorithm, asn1.SEQUENCE) {
		t.Fatal("the key was written in another form")
	}
	for _, c := range []struct {
		name         string
		used, stored int64
		found        bool
	}{{"its mask", 77, 77, true}, {"another mask", 77, 78, false}} {
		t.Run(c.name, func(t *testing.T) {
			sequence := append(masked(key, c.used), number(big.NewInt(c.stored))...)
			pkcs8 := &cryptobyte.Builder{}
			pkcs8.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1Uint64(0)
				b.AddBytes(algorithm)
				b.AddASN1OctetString(sequence)
			})
			sealed, content, err := encipher(counter{}, Options{Iterations: 2}, "x", pkcs8.BytesOrPanic())
			if err != nil {
				t.Fatal(err)
			}
			safe := &cryptobyte.Builder{}
			safe.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				addCertificate(b, certificate, "name", []byte{1})
				addBag(b, oidShroudedBag, "name", []byte{1}, func(b *cryptobyte.Builder) {
					b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
						b.AddBytes(sealed)
						b.AddASN1OctetString(content)
					})
				})
			})
			r := &reader{password: "x", budget: 1000}
			if err := r.safe(safe.BytesOrPanic(), 0); err != nil {
				t.Fatal(err)
			}
			got, err := r.bundle()
			if err != nil {
				t.Fatal(err)
			}
			if found := got.Certificate != nil; found != c.found || sameKey(key.Public(), got.Key.Public()) != c.found {
				t.Errorf("the certificate of the key was found: %t", found)
			}
		})
	}
}

// masked returns the number of a key times the inverse of a mask.
func masked(key *gost3410.PrivateKey, mask int64) []byte {
	// The order of the group of CryptoPro-A (RFC 4357, section 11.4).
	q, _ := new(big.Int).SetString("ffffffffffffffffffffffffffffffff6c611070995ad10045841b09b761b893", 16)
	b := key.Bytes()
	slices.Reverse(b)
	n := new(big.Int).Mul(new(big.Int).SetBytes(b), new(big.Int).ModInverse(big.NewInt(mask), q))
	return number(n.Mod(n, q))
}

// number returns a number as a GOST key encodes it.
func number(n *big.Int) []byte {
	b := n.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	return b
}

// counter is a source of fixed bytes for repeatable tests.
type counter struct{}

func (counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i + 1)
	}
	return len(p), nil
}
