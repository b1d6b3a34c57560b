// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

var standard = map[*suite.Hash]crypto.Hash{
	suite.SHA1: crypto.SHA1, suite.SHA224: crypto.SHA224, suite.SHA256: crypto.SHA256, suite.SHA384: crypto.SHA384, suite.SHA512: crypto.SHA512,
	suite.SHA3x224: crypto.SHA3_224, suite.SHA3x256: crypto.SHA3_256, suite.SHA3x384: crypto.SHA3_384, suite.SHA3x512: crypto.SHA3_512,
}

// pssParams writes RSASSA-PSS-params in full.
func pssParams(h, mgf suite.OID, salt, trailer int64) []byte {
	var b cryptobyte.Builder
	algorithm := func(b *cryptobyte.Builder, oid suite.OID, more func(*cryptobyte.Builder)) {
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(oid); more(b) })
	}
	null := func(b *cryptobyte.Builder) { b.AddASN1NULL() }
	tag := func(n uint8) cbasn1.Tag { return cbasn1.Tag(n).Constructed().ContextSpecific() }
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(tag(0), func(b *cryptobyte.Builder) { algorithm(b, h, null) })
		b.AddASN1(tag(1), func(b *cryptobyte.Builder) {
			algorithm(b, suite.OID{1, 2, 840, 113549, 1, 1, 8}, func(b *cryptobyte.Builder) { algorithm(b, mgf, null) })
		})
		b.AddASN1(tag(2), func(b *cryptobyte.Builder) { b.AddASN1Int64(salt) })
		b.AddASN1(tag(3), func(b *cryptobyte.Builder) { b.AddASN1Int64(trailer) })
	})
	return b.BytesOrPanic()
}

// TestPSS checks that signatures of the standard library verify with exactly their
// parameters, for moduli of every length modulo 8.
func TestPSS(t *testing.T) {
	for bits := 2048; bits < 2056; bits += 3 {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		k := suite.Key{Public: key.Public()}
		for h, std := range standard {
			for _, salt := range []int{1, 20, h.Size} {
				d := h.Digest([]byte("message"))
				value, err := rsa.SignPSS(rand.Reader, key, std, d.Sum, &rsa.PSSOptions{SaltLength: salt})
				if err != nil {
					t.Fatal(err)
				}
				verify := func(h, mgf *suite.Hash, salt int, value []byte) error {
					s, _, err := suite.SchemeByOID(suite.OIDPSS, pssParams(h.OID, mgf.OID, int64(salt), 1))
					if err != nil {
						t.Fatal(err)
					}
					return s.Verify(k, h.Digest([]byte("message")), value)
				}
				if err := verify(h, h, salt, value); err != nil {
					t.Errorf("%d bits, %s, salt %d: %v", bits, h.Name, salt, err)
				}
				for name, err := range map[string]error{
					"a longer salt": verify(h, h, salt+1, value), "a shorter salt": verify(h, h, salt-1, value),
					"another MGF1": verify(h, otherThan(h), salt, value), "another digest": verify(otherThan(h), h, salt, value),
					"a zero in front": verify(h, h, salt, append([]byte{0}, value...)), "nothing": verify(h, h, salt, nil),
					"a value past the modulus": verify(h, h, salt, new(big.Int).Add(new(big.Int).SetBytes(value), key.N).FillBytes(make([]byte, len(value)+1))),
				} {
					if !errors.Is(err, suite.ErrSignature) {
						t.Errorf("%d bits, %s, salt %d: %s: %v", bits, h.Name, salt, name, err)
					}
				}
				value[7] ^= 1
				if verify(h, h, salt, value) == nil {
					t.Error("a changed value verifies")
				}
			}
		}
	}
}

func otherThan(h *suite.Hash) *suite.Hash {
	if h == suite.SHA256 {
		return suite.SHA384
	}
	return suite.SHA256
}

// TestPSSParameters checks the defaults of RFC 4055 and that other values are refused.
func TestPSSParameters(t *testing.T) {
	sha256 := suite.SHA256.OID
	for name, parameters := range map[string][]byte{
		"absent": nil, "NULL": {5, 0}, "data after the end": append(pssParams(sha256, sha256, 32, 1), 5, 0),
		"another trailer": pssParams(sha256, sha256, 32, 2), "a negative salt": pssParams(sha256, sha256, -1, 1),
		"a huge salt": pssParams(sha256, sha256, 1<<40, 1), "GOST": pssParams(suite.Streebog256.OID, sha256, 32, 1),
		"an unknown digest": pssParams(suite.OID{1, 2, 3}, sha256, 32, 1), "an unknown MGF1": pssParams(sha256, suite.OID{1, 2, 3}, 32, 1),
		"cut": pssParams(sha256, sha256, 32, 1)[:20],
	} {
		if s, _, err := suite.SchemeByOID(suite.OIDPSS, parameters); err == nil {
			t.Errorf("%s: %s", name, s.Name)
		}
	}
	p, err := suite.ParsePSS([]byte{0x30, 0})
	if err != nil || p != (suite.PSS{Hash: suite.SHA1, MGF: suite.SHA1, Salt: 20}) {
		t.Errorf("defaults: %+v, %v", p, err)
	}
}

// TestAlgorithmConfusion checks that a key verifies by its own schemes only, and that a
// SignerInfo with contradicting algorithms never verifies.
func TestAlgorithmConfusion(t *testing.T) {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	g, err := suite.GOST2001.Generate(nil)
	if err != nil {
		t.Fatal(err)
	}
	limit := &suite.PSS{Hash: suite.SHA384, MGF: suite.SHA384, Salt: 32}
	keys := map[string]suite.Key{
		"RSA": {Public: r.Public()}, "PSS": {Public: r.Public(), PSSOnly: true}, "PSS limited": {Public: r.Public(), PSSOnly: true, Limit: limit},
		"ECDSA": {Public: e.Public()}, "Ed25519": {Public: o}, "GOST 2001": {Public: g.Public(), Suite: suite.GOST2001},
		"GOST 2012": {Public: g.Public(), Suite: suite.GOST2012x256}, "GOST without a suite": {Public: g.Public()}, "none": {},
	}
	pss := func(h *suite.Hash, salt int) *suite.Scheme {
		p, err := suite.NewPSS(h, h, salt)
		if err != nil {
			t.Fatal(err)
		}
		return p.Scheme()
	}
	byXML := func(uri string) *suite.Scheme {
		s, ok := suite.SchemeByXML(uri)
		if !ok {
			t.Fatalf("%s is not known", uri)
		}
		return s
	}
	for _, c := range []struct {
		scheme *suite.Scheme
		keys   string
	}{
		{byXML("http://www.w3.org/2001/04/xmldsig-more#rsa-sha512"), "RSA"},
		{pss(suite.SHA256, 32), "RSA, PSS"},
		{pss(suite.SHA384, 48), "RSA, PSS, PSS limited"},
		{pss(suite.SHA384, 31), "RSA, PSS"},
		{byXML("http://www.w3.org/2021/04/xmldsig-more#ecdsa-sha3-512"), "ECDSA"},
		{byXML("http://www.w3.org/2021/04/xmldsig-more#eddsa-ed25519"), "Ed25519"},
		{suite.GOST2001.Scheme(), "GOST 2001"},
		{suite.GOST2012x256.Scheme(), "GOST 2012"},
		{suite.GOST2012x512.Scheme(), ""},
	} {
		for name, k := range keys {
			want := strings.Contains(", "+c.keys+",", ", "+name+",")
			if err := c.scheme.Accepts(k); (err == nil) != want {
				t.Errorf("%s with the key %s: %v", c.scheme.Name, name, err)
			}
		}
	}
	params := pssParams(suite.SHA256.OID, suite.SHA256.OID, 32, 1)
	rsaKey, ecKey := suite.RSASHA256.KeyOID, suite.ECDSAP256.KeyOID
	for _, c := range []struct {
		signature, digest suite.OID
		params            []byte
		want              string // "": refused
	}{
		{rsaKey, suite.SHA512.OID, []byte{5, 0}, "RSA with SHA-512"},
		{ecKey, suite.SHA384.OID, nil, "ECDSA with SHA-384"},
		{suite.OID{1, 2, 840, 113549, 1, 1, 13}, suite.SHA512.OID, nil, "RSA with SHA-512"},
		{suite.OID{1, 2, 840, 113549, 1, 1, 13}, suite.SHA256.OID, nil, ""},
		{suite.OID{1, 2, 840, 10045, 4, 3, 3}, suite.SHA256.OID, nil, ""},
		{suite.OIDPSS, suite.SHA256.OID, params, "RSA-PSS with SHA-256"},
		{suite.OIDPSS, suite.SHA384.OID, params, ""},
		{suite.OIDPSS, suite.SHA256.OID, nil, ""},
		{suite.OIDEd25519, suite.SHA512.OID, nil, "Ed25519"},
		{suite.OIDEd25519, suite.SHA256.OID, nil, ""},
		{rsaKey, suite.Streebog256.OID, nil, ""},
		{suite.GOST2001.KeyOID, suite.Streebog256.OID, nil, ""},
		{suite.GOST2012x512.KeyOID, suite.Streebog256.OID, nil, ""},
	} {
		s, err := suite.SchemeBySigner(c.signature, c.params, c.digest)
		if (err != nil) != (c.want == "") || err == nil && s.Name != c.want {
			t.Errorf("%s with %s: %v, %v", c.signature, c.digest, s, err)
		}
	}
}

// TestKeysAreBounded checks that keys are refused when they are too large to verify
// quickly or too small to prove anything.
func TestKeysAreBounded(t *testing.T) {
	odd := func(bits int) *big.Int {
		n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
		return n.Add(n, big.NewInt(1))
	}
	for name, k := range map[string]crypto.PublicKey{
		"512 bits": &rsa.PublicKey{N: odd(512), E: 65537}, "16384 bits": &rsa.PublicKey{N: odd(16384), E: 65537},
		"an even modulus":  &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 2047), E: 65537},
		"the exponent 1":   &rsa.PublicKey{N: odd(2048), E: 1},
		"an even exponent": &rsa.PublicKey{N: odd(2048), E: 65536}, "a huge exponent": &rsa.PublicKey{N: odd(2048), E: 1<<40 + 1},
		"no curve": &ecdsa.PublicKey{}, "a short Ed25519": ed25519.PublicKey(make([]byte, 31)), "nothing": nil,
	} {
		key := suite.Key{Public: k}
		if err := key.Check(); !errors.Is(err, suite.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	short, long := suite.Key{Public: &rsa.PublicKey{N: odd(1024), E: 65537}}, suite.Key{Public: &rsa.PublicKey{N: odd(2048), E: 3}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := short.Check(); err != nil || !suite.Ends(nil).Key(short).At(now) || suite.Ends(nil).Key(short).At(now.AddDate(-20, 0, 0)) {
		t.Errorf("1024 bits: %v, %+v", err, suite.Ends(nil).Key(short))
	}
	if err := long.Check(); err != nil || suite.Ends(nil).Key(long).At(now) {
		t.Errorf("2048 bits: %v, %+v", err, suite.Ends(nil).Key(long))
	}
}

// TestUnsupportedIsNamed checks that the error names the algorithm.
func TestUnsupportedIsNamed(t *testing.T) {
	for oid, want := range map[string]suite.OID{
		"DSA with SHA-256 (2.16.840.1.101.3.4.3.2)": {2, 16, 840, 1, 101, 3, 4, 3, 2},
		"Ed448 (1.3.101.113)":                       {1, 3, 101, 113},
		"1.2.3.4":                                   {1, 2, 3, 4},
	} {
		_, _, err := suite.SchemeByOID(want, nil)
		if !errors.Is(err, suite.ErrUnsupported) || !strings.HasSuffix(err.Error(), "not supported: signature algorithm "+oid) {
			t.Errorf("%s: %v", oid, err)
		}
	}
	if _, err := suite.SchemeBySigner(suite.RSASHA256.KeyOID, nil, suite.OID{1, 3, 36, 3, 2, 1}); err == nil || !strings.Contains(err.Error(), "digest algorithm RIPEMD-160") {
		t.Error(err)
	}
}
