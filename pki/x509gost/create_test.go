// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

func TestCreateAndParse(t *testing.T) {
	for _, k := range keyCases(t) {
		t.Run(k.name, func(t *testing.T) {
			root := create(t, rootTemplate(t), nil, k, k)
			if len(root.Deviations) > 0 {
				t.Errorf("our own certificate deviates: %v", root.Deviations)
			}
			if root.Suite != k.suite || !root.PublicKey.(equaler).Equal(k.key.Public()) {
				t.Error("the round trip gave another key or suite")
			}
			if !root.IsCA || root.MaxPathLen != -1 || root.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign {
				t.Errorf("CA %v, path length %d, usage %b", root.IsCA, root.MaxPathLen, root.KeyUsage)
			}
			if err := root.CheckSignatureFrom(root); err != nil {
				t.Error(err)
			}
			spki, err := x509gost.MarshalPublicKey(root.PublicKey, root.Suite)
			if err != nil || !bytes.Equal(spki, root.RawSPKI) {
				t.Errorf("SubjectPublicKeyInfo changes in the round trip: %v", err)
			}
			changed := bytes.Clone(root.Raw)
			changed[len(changed)-1] ^= 1
			other, err := x509gost.ParseCertificate(changed)
			if err != nil {
				t.Fatal(err)
			}
			if err := other.CheckSignatureFrom(root); !errors.Is(err, suite.ErrSignature) {
				t.Errorf("a changed signature: %v", err)
			}
			pkcs8, err := x509gost.MarshalPrivateKey(k.key, k.suite)
			if err != nil {
				t.Fatal(err)
			}
			key, s, err := x509gost.ParsePrivateKey(pkcs8)
			if err != nil {
				t.Fatal(err)
			}
			if s != k.suite || !k.key.Public().(equaler).Equal(key.Public()) {
				t.Error("the round trip gave another private key")
			}
		})
	}
}

func TestLeafFields(t *testing.T) {
	ca := keyCase{"", suite.GOST2012x512, gostKey(t, gost3410.TC26512A, 1)}
	user := keyCase{"", suite.GOST2001, gostKey(t, gost3410.CryptoProB, 2)}
	root := create(t, rootTemplate(t), nil, ca, ca)
	tmpl := leafTemplate(t)
	c := create(t, tmpl, root, user, ca)
	if len(c.Deviations) > 0 {
		t.Errorf("our own certificate deviates: %v", c.Deviations)
	}
	if err := c.CheckSignatureFrom(root); err != nil {
		t.Error(err)
	}
	if err := c.CheckSignatureFrom(c); err == nil {
		t.Error("the certificate is accepted as self-signed")
	}
	if !bytes.Equal(c.RawIssuer, root.RawSubject) {
		t.Error("the issuer is not the bytes of the root's subject")
	}
	if c.SerialHex() != "00fe0203" {
		t.Errorf("serial number %s", c.SerialHex())
	}
	if c.IsCA || c.HasBasicConstraints || c.MaxPathLen != -1 {
		t.Error("the leaf is an authority")
	}
	if !bytes.Equal(c.AuthorityKeyID, root.SubjectKeyID) || len(c.SubjectKeyID) != 20 {
		t.Error("the key identifiers do not match")
	}
	if c.KeyUsage != tmpl.KeyUsage || !c.PrivateKeyNotBefore.Equal(start) || !c.PrivateKeyNotAfter.Equal(start.AddDate(1, 3, 0)) {
		t.Errorf("usage %b, private key %s to %s", c.KeyUsage, c.PrivateKeyNotBefore, c.PrivateKeyNotAfter)
	}
	for what, diff := range map[string]string{
		"uses":      cmp.Diff(tmpl.ExtKeyUsage, c.ExtKeyUsage),
		"policies":  cmp.Diff(tmpl.Policies, c.Policies),
		"CRLs":      cmp.Diff(tmpl.CRLDistributionPoints, c.CRLDistributionPoints),
		"OCSP":      cmp.Diff(tmpl.OCSPServers, c.OCSPServers),
		"issuers":   cmp.Diff(tmpl.IssuingURLs, c.IssuingURLs),
		"not after": cmp.Diff(end, c.NotAfter),
	} {
		if diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	want := `CN=Иванов Иван,E=demo@example.com,OGRN=1234567890123,SNILS=12345678901,INN=007712345678`
	if got := c.Subject.String(); got != want {
		t.Errorf("subject %s, want %s", got, want)
	}
	if want := `CN=Корневой\, первый,O=Удостоверяющий центр,C=RU`; root.Subject.String() != want {
		t.Errorf("subject %s, want %s", root.Subject, want)
	}
	// UTCTime ends with 2049, GeneralizedTime begins with 2050.
	if !bytes.Contains(c.Raw, []byte("\x17\x0d260101000000Z\x18\x0f20560101000000Z")) {
		t.Error("times are not UTCTime up to 2049 and GeneralizedTime from then on")
	}
}

// TestStandardLibraryAgrees checks that crypto/x509 reads certificates of this package and
// that this package reads those of crypto/x509.
func TestStandardLibraryAgrees(t *testing.T) {
	for s, key := range standardKeys() {
		t.Run(s.Name, func(t *testing.T) {
			k := keyCase{"", s, key}
			root := create(t, rootTemplate(t), nil, k, k)
			leaf := create(t, leafTemplate(t), root, k, k)
			stdRoot, err := x509.ParseCertificate(root.Raw)
			if err != nil {
				t.Fatal(err)
			}
			stdLeaf, err := x509.ParseCertificate(leaf.Raw)
			if err != nil {
				t.Fatal(err)
			}
			if err := stdLeaf.CheckSignatureFrom(stdRoot); err != nil {
				t.Error(err)
			}
			if stdLeaf.KeyUsage != leaf.KeyUsage || !stdLeaf.NotAfter.Equal(leaf.NotAfter) || !bytes.Equal(stdLeaf.SubjectKeyId, leaf.SubjectKeyID) {
				t.Error("crypto/x509 and this package read different values")
			}
			if diff := cmp.Diff(stdLeaf.CRLDistributionPoints, leaf.CRLDistributionPoints); diff != "" {
				t.Error(diff)
			}
			der, err := x509.CreateCertificate(nil, stdLeaf, stdRoot, key.Public(), key)
			if err != nil {
				t.Fatal(err)
			}
			back, err := x509gost.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			if err := back.CheckSignatureFrom(root); err != nil {
				t.Error(err)
			}
			if len(back.Deviations) != 0 || !back.Subject.Equal(leaf.Subject) {
				t.Errorf("deviations %v", back.Deviations)
			}
		})
	}
	// The library reads the outer structure of a GOST certificate too.
	k := keyCase{"", suite.GOST2012x256, gostKey(t, gost3410.TC26256A, 1)}
	std, err := x509.ParseCertificate(create(t, leafTemplate(t), nil, k, k).Raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(std.UnhandledCriticalExtensions) != 0 || len(std.ExtKeyUsage) != 1 {
		t.Errorf("unhandled %v, uses %v", std.UnhandledCriticalExtensions, std.ExtKeyUsage)
	}
}

func TestRequest(t *testing.T) {
	for _, k := range keyCases(t) {
		extensions := []x509gost.Extension{{OID: x509gost.OIDExtKeyUsage, Value: []byte{0x30, 4, 6, 2, 0x2a, 3}}}
		der, err := x509gost.CreateRequest(commonName(t, "Заявка"), extensions, k.key.Public(), k.suite, k.sign())
		if err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
		r, err := x509gost.ParseRequest(der)
		if err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
		if err := r.CheckSignature(); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
		if diff := cmp.Diff(extensions, r.Extensions); diff != "" || len(r.Deviations) != 0 {
			t.Errorf("%s: %s %v", k.name, diff, r.Deviations)
		}
		r.RawTBS = append(bytes.Clone(r.RawTBS[:len(r.RawTBS)-1]), r.RawTBS[len(r.RawTBS)-1]^1)
		if err := r.CheckSignature(); !errors.Is(err, suite.ErrSignature) {
			t.Errorf("%s: a changed request: %v", k.name, err)
		}
	}
}

func TestRevocationList(t *testing.T) {
	k := keyCase{"", suite.GOST2012x256, gostKey(t, gost3410.CryptoProA, 1)}
	root := create(t, rootTemplate(t), nil, k, k)
	tmpl := &x509gost.CRLTemplate{
		ThisUpdate: start, NextUpdate: start.AddDate(0, 0, 7), Number: []byte{0x80},
		Revoked: []x509gost.RevokedEntry{
			{SerialNumber: []byte{0xfe, 2, 3}, At: start.Add(-time.Hour), Reason: 1},
			{SerialNumber: []byte{5}, At: start.Add(-2 * time.Hour)},
			{SerialNumber: []byte{0, 0xfe, 2, 3}, At: start.Add(-3 * time.Hour), Reason: 6},
		},
	}
	der, err := x509gost.CreateRevocationList(tmpl, root, k.suite, k.sign())
	if err != nil {
		t.Fatal(err)
	}
	l, err := x509gost.ParseRevocationList(der)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.CheckSignatureFrom(root); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(l.Number, []byte{0, 0x80}) || !bytes.Equal(l.AuthorityKeyID, root.SubjectKeyID) || len(l.Deviations) != 0 || len(l.UnknownCritical) != 0 {
		t.Errorf("number %x, deviations %v", l.Number, l.Deviations)
	}
	want := x509gost.RevokedEntry{SerialNumber: []byte{0, 0xfe, 2, 3}, At: start.Add(-3 * time.Hour), Reason: 6}
	if e, ok := l.Find([]byte{0, 0, 0xfe, 2, 3}); !ok || cmp.Diff(want, e) != "" {
		t.Errorf("found %v %v, want the earliest entry", ok, e)
	}
	if e, ok := l.Find([]byte{5}); !ok || e.Reason != 0 {
		t.Errorf("found %v %v", ok, e)
	}
	for _, absent := range [][]byte{{6}, {}, {0xfe, 2, 3}, {1, 5}} {
		if _, ok := l.Find(absent); ok {
			t.Errorf("serial %x is found, but it is not in the list", absent)
		}
	}
	std, err := x509.ParseRevocationList(der)
	if err != nil || len(std.RevokedCertificateEntries) != 3 {
		t.Errorf("the standard library reads it differently: %v", err)
	}
}

func TestScope(t *testing.T) {
	k := keyCase{"", suite.GOST2012x256, gostKey(t, gost3410.CryptoProA, 1)}
	root := create(t, rootTemplate(t), nil, k, k)
	leaf := create(t, leafTemplate(t), root, k, k) // names http://ca.example/root.crl
	uri := func(s string) string {
		return "\xa0" + string(rune(len(s)+4)) + "\xa0" + string(rune(len(s)+2)) + "\x86" + string(rune(len(s))) + s
	}
	seq := func(s string) []byte { return append([]byte{0x30, byte(len(s))}, s...) }
	for _, c := range []struct {
		value             []byte
		ofLeaf, ofRoot    bool
		understood, error bool
	}{
		{value: seq("\x81\x01\xff"), ofLeaf: true, understood: true},
		{value: seq("\x82\x01\xff"), ofRoot: true, understood: true},
		{value: seq(uri("http://ca.example/root.crl")), ofLeaf: true, understood: true},
		{value: seq(uri("http://ca.example/other.crl")), understood: true},
		{value: seq("\xa0\x02\xa1\x00")}, // a relative name
		{value: seq("\x83\x02\x07\x80")}, // some reasons
		{value: seq("\x84\x01\xff")},     // indirect
		{value: seq("\x85\x01\xff")},     // attribute certificates
		{value: seq("\x89\x01\xff"), error: true},
		{value: []byte{5, 0}, error: true},
	} {
		der, err := x509gost.CreateRevocationList(&x509gost.CRLTemplate{
			ThisUpdate: start, NextUpdate: end, Number: []byte{1},
			ExtraExtensions: []x509gost.Extension{{OID: x509gost.OIDIssuingPoint, Critical: true, Value: c.value}},
		}, root, k.suite, k.sign())
		if err != nil {
			t.Fatal(err)
		}
		l, err := x509gost.ParseRevocationList(der)
		if c.error {
			if err == nil {
				t.Errorf("%x is accepted", c.value)
			}
			continue
		}
		if err != nil {
			t.Errorf("%x: %v", c.value, err)
			continue
		}
		if l.Scope.Understood() != c.understood || l.Scope.Covers(leaf) != c.ofLeaf || l.Scope.Covers(root) != c.ofRoot {
			t.Errorf("%x: scope %+v", c.value, l.Scope)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	k := keyCase{"", suite.GOST2012x256, gostKey(t, gost3410.CryptoProA, 1)}
	other := keyCase{"", suite.GOST2012x256, gostKey(t, gost3410.CryptoProA, 2)}
	old := keyCase{"", suite.GOST2001, gostKey(t, gost3410.CryptoProA, 2)}
	root := create(t, rootTemplate(t), nil, k, k)
	for what, c := range map[string]struct {
		change func(*x509gost.Template)
		signer keyCase
		want   string
	}{
		"serial zero":     {func(t *x509gost.Template) { t.SerialNumber = []byte{0, 0} }, k, "positive"},
		"serial long":     {func(t *x509gost.Template) { t.SerialNumber = bytes.Repeat([]byte{0x80}, 20) }, k, "20"},
		"no time":         {func(t *x509gost.Template) { t.NotBefore = time.Time{} }, k, "1950"},
		"times crossed":   {func(t *x509gost.Template) { t.NotAfter = t.NotBefore }, k, "after the start"},
		"no subject":      {func(t *x509gost.Template) { t.Subject = x509gost.Name{} }, k, "name"},
		"extension twice": {func(t *x509gost.Template) { t.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDKeyUsage}} }, k, "twice"},
		"another key":     {func(*x509gost.Template) {}, other, "does not verify"},
		"another suite":   {func(*x509gost.Template) {}, old, "suite"},
		"broken extension": {func(t *x509gost.Template) {
			t.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDBasicConstraints, Value: []byte{1}}}
		}, k, "malformed"},
		"bad key usage OID": {func(t *x509gost.Template) { t.ExtKeyUsage = []x509gost.OID{{9, 9}} }, k, "extension"},
	} {
		tmpl := leafTemplate(t)
		c.change(tmpl)
		_, err := x509gost.CreateCertificate(tmpl, root, k.key.Public(), k.suite, c.signer.suite, c.signer.sign())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A 256-bit key on a curve that the older standard does not have.
	tc26 := gostKey(t, gost3410.TC26256A, 1)
	if _, err := x509gost.MarshalPublicKey(tc26.Public(), suite.GOST2001); err == nil {
		t.Error("a key on a TC26 curve is written as one of 2001")
	}
	if _, err := x509gost.MarshalPublicKey(tc26.Public(), suite.GOST2012x512); err == nil {
		t.Error("a key of 256 bits is written as one of 512")
	}
}
