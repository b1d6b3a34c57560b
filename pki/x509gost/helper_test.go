// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// published holds the examples of the standards, each with its source.
type published struct {
	Keys  map[string]string // hex, big-endian, of the certificate with the same name or prefix
	Items []struct{ Name, Kind, DER, Source string }
}

func loadPublished(t testing.TB) published {
	t.Helper()
	var p published
	data, err := os.ReadFile("testdata/published.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Items) == 0 || len(p.Keys) == 0 {
		t.Fatal("testdata/published.json holds no examples")
	}
	return p
}

func (p published) der(t testing.TB, name string) []byte {
	t.Helper()
	for _, i := range p.Items {
		if i.Name == name {
			der, err := base64.StdEncoding.DecodeString(i.DER)
			if err != nil {
				t.Fatal(err)
			}
			return der
		}
	}
	t.Fatalf("no published example %s", name)
	return nil
}

func (p published) scalar(t testing.TB, name string) []byte {
	t.Helper()
	d, err := hex.DecodeString(p.Keys[name])
	if err != nil || len(d) == 0 {
		t.Fatalf("no published key %s: %v", name, err)
	}
	return d
}

// keyCase is a suite with a key to try: every GOST curve, RSA and ECDSA.
type keyCase struct {
	name  string
	suite *suite.Suite
	key   crypto.Signer
}

func gostKey(t testing.TB, set *gost3410.Set, seed byte) *gost3410.PrivateKey {
	t.Helper()
	d := make([]byte, set.Size())
	for i := range d[:set.Size()-1] {
		d[i] = seed + byte(i)*7 + 1
	}
	key, err := gost3410.NewPrivateKey(set, d)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var standardKeys = sync.OnceValue(func() map[*suite.Suite]crypto.Signer {
	keys := map[*suite.Suite]crypto.Signer{}
	for _, s := range []*suite.Suite{suite.RSASHA256, suite.ECDSAP256} {
		key, err := s.Generate(nil)
		if err != nil {
			panic(err)
		}
		keys[s] = key
	}
	return keys
})

func keyCases(t testing.TB) []keyCase {
	t.Helper()
	sets2001 := []*gost3410.Set{gost3410.TestSet, gost3410.CryptoProA, gost3410.CryptoProB, gost3410.CryptoProC, gost3410.CryptoProXchA, gost3410.CryptoProXchB}
	sets256 := append(slices.Clone(sets2001), gost3410.TC26256A, gost3410.TC26256B, gost3410.TC26256C, gost3410.TC26256D)
	sets512 := []*gost3410.Set{gost3410.TC26512Test, gost3410.TC26512A, gost3410.TC26512B, gost3410.TC26512C}
	var list []keyCase
	for _, f := range []struct {
		s    *suite.Suite
		sets []*gost3410.Set
	}{{suite.GOST2001, sets2001}, {suite.GOST2012x256, sets256}, {suite.GOST2012x512, sets512}} {
		for _, set := range f.sets {
			list = append(list, keyCase{f.s.Name + "/" + set.Name(), f.s, gostKey(t, set, 1)})
		}
	}
	for s, key := range standardKeys() {
		list = append(list, keyCase{s.Name, s, key})
	}
	slices.SortFunc(list, func(a, b keyCase) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return list
}

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end   = time.Date(2056, 1, 1, 0, 0, 0, 0, time.UTC) // past 2049: GeneralizedTime
)

func name(t testing.TB, attrs ...x509gost.Attribute) x509gost.Name {
	t.Helper()
	n, err := x509gost.BuildName(attrs)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func commonName(t testing.TB, cn string) x509gost.Name {
	t.Helper()
	return name(t, x509gost.Attribute{OID: x509gost.OIDCommonName, Value: cn})
}

func (k keyCase) sign() x509gost.SignFunc { return x509gost.SignWith(nil, k.key, k.suite) }

// create builds and parses a certificate; a nil issuer means self-signed by k.
func create(t testing.TB, tmpl *x509gost.Template, issuer *x509gost.Certificate, k, signer keyCase) *x509gost.Certificate {
	t.Helper()
	der, err := x509gost.CreateCertificate(tmpl, issuer, k.key.Public(), k.suite, signer.suite, signer.sign())
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rootTemplate(t testing.TB) *x509gost.Template {
	return &x509gost.Template{
		Subject: name(t,
			x509gost.Attribute{OID: x509gost.OIDCountry, Value: "RU"},
			x509gost.Attribute{OID: x509gost.OIDOrganization, Value: "Удостоверяющий центр"},
			x509gost.Attribute{OID: x509gost.OIDCommonName, Value: "Корневой, первый"}),
		SerialNumber: []byte{1}, NotBefore: start, NotAfter: end,
		IsCA: true, MaxPathLen: -1, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

func leafTemplate(t testing.TB) *x509gost.Template {
	return &x509gost.Template{
		Subject: name(t,
			x509gost.Attribute{OID: x509gost.OIDINN, Value: "007712345678"},
			x509gost.Attribute{OID: x509gost.OIDSNILS, Value: "12345678901"},
			x509gost.Attribute{OID: x509gost.OIDOGRN, Value: "1234567890123"},
			x509gost.Attribute{OID: x509gost.OIDEmail, Value: "demo@example.com"},
			x509gost.Attribute{OID: x509gost.OIDCommonName, Value: "Иванов Иван"}),
		SerialNumber: []byte{0xfe, 0x02, 0x03}, NotBefore: start, NotAfter: end, MaxPathLen: -1,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment,
		ExtKeyUsage:           []x509gost.OID{x509gost.UsageEmailProtection, {1, 2, 643, 2, 2, 34, 6}},
		CRLDistributionPoints: []string{"http://ca.example/root.crl", "http://reserve.example/root.crl"},
		OCSPServers:           []string{"http://ca.example/ocsp"},
		IssuingURLs:           []string{"http://ca.example/root.cer"},
		Policies:              []x509gost.OID{{1, 2, 643, 100, 113, 1}},
		PrivateKeyNotBefore:   start, PrivateKeyNotAfter: start.AddDate(1, 3, 0),
	}
}

// equaler is what every public key of the standard library and ours can do.
type equaler interface{ Equal(crypto.PublicKey) bool }
