// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"testing"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

func seed(f *testing.F, kind string) {
	p := loadPublished(f)
	for _, i := range p.Items {
		if i.Kind == kind {
			f.Add(p.der(f, i.Name))
		}
	}
}

func FuzzParseCertificate(f *testing.F) {
	seed(f, "cert")
	k := keyCase{"", suite.GOST2012x256, gostKey(f, gost3410.CryptoProA, 1)}
	f.Add(create(f, leafTemplate(f), nil, k, k).Raw)
	f.Add(create(f, rootTemplate(f), nil, k, k).Raw)
	f.Fuzz(func(t *testing.T, der []byte) {
		list, listErr := x509gost.ParseCertificates(der)
		c, err := x509gost.ParseCertificate(der)
		if err != nil {
			return
		}
		if listErr != nil || len(list) != 1 || !bytes.Equal(list[0].Raw, der) {
			t.Fatalf("one certificate reads as a bundle of %d: %v", len(list), listErr)
		}
		if (c.Suite == nil) != (c.PublicKey == nil) || (c.Suite == nil) != (c.KeyError != nil) {
			t.Fatal("PublicKey, Suite and KeyError contradict each other")
		}
		_ = c.CheckSignatureFrom(c)
		_ = c.Subject.String()
		again, err := x509gost.ParseName(c.RawSubject)
		if err != nil || !again.Equal(c.Subject) {
			t.Fatalf("the subject does not read again: %v", err)
		}
		if c.Suite == nil {
			return
		}
		spki, err := x509gost.MarshalPublicKey(c.PublicKey, c.Suite)
		if err != nil {
			t.Fatal(err)
		}
		pub, s, err := x509gost.ParsePublicKey(spki)
		if err != nil || s != c.Suite || !c.PublicKey.(equaler).Equal(pub) {
			t.Fatalf("the key changes in the round trip: %v", err)
		}
	})
}

func FuzzParseRevocationList(f *testing.F) {
	seed(f, "crl")
	k := keyCase{"", suite.GOST2012x256, gostKey(f, gost3410.CryptoProA, 1)}
	root := create(f, rootTemplate(f), nil, k, k)
	der, err := x509gost.CreateRevocationList(&x509gost.CRLTemplate{
		ThisUpdate: start, NextUpdate: end, Number: []byte{1},
		Revoked:         []x509gost.RevokedEntry{{SerialNumber: []byte{5}, At: start, Reason: 1}, {SerialNumber: []byte{4}, At: end}},
		ExtraExtensions: []x509gost.Extension{{OID: x509gost.OIDIssuingPoint, Critical: true, Value: []byte{0x30, 3, 0x82, 1, 0xff}}},
	}, root, k.suite, k.sign())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Add(bytes.Replace(der, []byte{0x0a, 1, 1}, []byte{0x0a, 1, 7}, 1)) // a reason that is not defined
	f.Fuzz(func(t *testing.T, der []byte) {
		l, err := x509gost.ParseRevocationList(der)
		if err != nil {
			return
		}
		_ = l.CheckSignatureFrom(root)
		_ = l.Scope.Covers(root)
		for _, e := range l.Revoked {
			if _, ok := l.Find(e.SerialNumber); !ok {
				t.Fatalf("entry %x is not found", e.SerialNumber)
			}
			if !x509gost.ValidReason(e.Reason) {
				t.Fatalf("reason %d", e.Reason)
			}
		}
	})
}

func FuzzParseRequest(f *testing.F) {
	seed(f, "csr")
	k := keyCase{"", suite.GOST2012x256, gostKey(f, gost3410.CryptoProA, 1)}
	der, err := x509gost.CreateRequest(commonName(f, "x"), []x509gost.Extension{{OID: x509gost.OIDSubjectKeyID, Value: []byte{4, 0}}}, k.key.Public(), k.suite, k.sign())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Fuzz(func(t *testing.T, der []byte) {
		r, err := x509gost.ParseRequest(der)
		if err != nil {
			return
		}
		_ = r.CheckSignature()
		_ = r.Subject.String()
	})
}

func FuzzParsePrivateKey(f *testing.F) {
	for _, k := range keyCases(f) {
		der, err := x509gost.MarshalPrivateKey(k.key, k.suite)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(der)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		key, s, err := x509gost.ParsePrivateKey(der)
		if err != nil {
			return
		}
		again, err := x509gost.MarshalPrivateKey(key, s)
		if err != nil {
			t.Fatal(err)
		}
		back, s2, err := x509gost.ParsePrivateKey(again)
		if err != nil || s2 != s || !key.Public().(equaler).Equal(back.Public()) {
			t.Fatalf("the key changes in the round trip: %v", err)
		}
	})
}
