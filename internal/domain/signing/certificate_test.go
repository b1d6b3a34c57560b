// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"testing"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// TestReadCertificateChain checks that the signer's certificate is found in any order,
// and that its issuers are returned.
func TestReadCertificateChain(t *testing.T) {
	su := suite.GOST2012x256
	root := sigtest.Root(t, su)
	authority := root.Authority(t, "authority")
	signer, other := authority.Signer(t, su, "signer"), sigtest.Root(t, suite.GOST2012x512)
	all := func(list ...*sigtest.Party) []byte {
		var text []byte
		for _, p := range list {
			text = append(text, p.PEM()...)
		}
		return text
	}
	s := &Service{}
	for _, c := range []struct {
		name  string
		raw   []byte
		chain []*x509gost.Certificate // nil: refused
	}{
		{"alone", all(signer), []*x509gost.Certificate{}},
		{"in order", all(signer, authority, root), []*x509gost.Certificate{authority.Certificate, root.Certificate}},
		{"in no order", all(authority, root, signer), []*x509gost.Certificate{authority.Certificate, root.Certificate}},
		{"with a gap", all(root, signer), []*x509gost.Certificate{}},
		{"two of one authority", all(authority, signer, authority.Signer(t, su, "another")), nil},
		{"with an unrelated certificate", all(signer, other.Signer(t, suite.GOST2012x512, "foreign")), nil},
		{"with an unrelated authority", all(other, signer), []*x509gost.Certificate{}},
		{"not for signatures", all(root), nil},
		{"nothing", []byte(" \r\n"), nil},
		{"a key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{0x30, 0}}), nil},
		{"too many", bytes.Repeat(signer.PEM(), maxCertificates+1), nil},
	} {
		cert, chain, err := s.readCertificate(c.raw, sigtest.Time)
		if c.chain == nil {
			if !fault.Is(err, fault.InvalidCertificate) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || len(chain) != len(c.chain) {
			t.Errorf("%s: %d issuers, %v", c.name, len(chain), err)
			continue
		}
		for i := range chain {
			if !chain[i].Equal(c.chain[i]) {
				t.Errorf("%s: issuer %d is another", c.name, i)
			}
		}
		if !cert.Equal(signer.Certificate) {
			t.Errorf("%s: the signer is %s", c.name, cert.Subject)
		}
	}
	// The certificate is valid from its first second to its last.
	cert := signer.Certificate
	for at, want := range map[time.Time]bool{
		cert.NotBefore: true, cert.NotBefore.Add(-time.Second): false,
		cert.NotAfter: true, cert.NotAfter.Add(time.Second): false,
	} {
		if _, _, err := s.readCertificate(cert.Raw, at); (err == nil) != want {
			t.Errorf("at %v: %v", at, err)
		}
	}
}

// FuzzReadCertificate checks that no bytes of a client do harm.
func FuzzReadCertificate(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"))
	f.Add([]byte{0x30, 0x80, 0, 0})
	s := &Service{}
	f.Fuzz(func(t *testing.T, raw []byte) {
		cert, _, err := s.readCertificate(raw, sigtest.Time)
		if err == nil && cert == nil {
			t.Error("neither a certificate nor an error")
		}
		if err != nil && !fault.Is(err, fault.InvalidCertificate) {
			t.Errorf("%v", err)
		}
	})
}

// TestCertificateEndsInSpace checks that a certificate whose last byte counts as white
// space is read in every form.
func TestCertificateEndsInSpace(t *testing.T) {
	signer := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Signer")
	for _, last := range []byte(" \n\r\t\v\f") {
		der := bytes.Clone(signer.Certificate.Raw)
		der[len(der)-1] = last // of the signature value, which reading does not check
		text := base64.StdEncoding.EncodeToString(der)
		for form, data := range map[string][]byte{
			"DER": der, "Base64": []byte(" " + text + "\n"), "PEM": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		} {
			if c, err := readAnyCertificate(data); err != nil || !bytes.Equal(c.Raw, der) {
				t.Errorf("%s that ends in %#x: %v", form, last, err)
			}
		}
	}
}
