// SPDX-License-Identifier: Apache-2.0

package ocsp_test

import (
	"crypto"
	"crypto/x509"
	"io"
	"sync"
	"testing"
	"time"

	"tamga/gost/gost3410"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = start.AddDate(0, 6, 0)
	end   = start.AddDate(10, 0, 0)
)

// holder is a key with its certificate.
type holder struct {
	key  crypto.Signer
	cert *x509gost.Certificate
	s    *suite.Suite
}

func (h *holder) sign() x509gost.SignFunc { return x509gost.SignWith(randomness, h.key, h.s) }

// randomness is the source for signatures. nil means that of the machine.
var randomness io.Reader

// repeatable makes the keys and signatures of GOST2012x256 the same in every process, so
// that one process of a fuzzing run can check what another one made.
func repeatable(f *testing.F) {
	for i, role := range []string{"Authority", "Responder", "Leaf"} {
		d := make([]byte, 32)
		d[0], d[1] = byte(i+1), 7
		k, err := gost3410.NewPrivateKey(gost3410.CryptoProA, d)
		if err != nil {
			f.Fatal(err)
		}
		keys.Store(suite.GOST2012x256.Name+role, k)
	}
	randomness = zeros{}
	f.Cleanup(func() { randomness = nil })
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// keys holds one key for each suite and role, because RSA keys take long to make.
var keys sync.Map

func key(t testing.TB, s *suite.Suite, role string) crypto.Signer {
	t.Helper()
	if k, ok := keys.Load(s.Name + role); ok {
		return k.(crypto.Signer)
	}
	k, err := s.Generate(nil)
	if err != nil {
		t.Fatal(err)
	}
	keys.Store(s.Name+role, k)
	return k
}

// issue certifies the key of a role. A nil issuer means self-signed.
func issue(t testing.TB, s *suite.Suite, role string, serial byte, issuer *holder) *holder {
	t.Helper()
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: role}})
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{key: key(t, s, role), s: s}
	tmpl := &x509gost.Template{
		Subject: name, SerialNumber: []byte{serial}, NotBefore: start, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	signer, cert := h, (*x509gost.Certificate)(nil)
	switch {
	case issuer == nil:
		tmpl.IsCA, tmpl.MaxPathLen, tmpl.KeyUsage = true, -1, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	default:
		signer, cert = issuer, issuer.cert
	}
	if role == "Responder" {
		tmpl.ExtKeyUsage = []x509gost.OID{x509gost.UsageOCSPSigning}
		tmpl.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDOCSPNoCheck, Value: []byte{5, 0}}}
	}
	der, err := x509gost.CreateCertificate(tmpl, cert, h.key.Public(), s, s, signer.sign())
	if err != nil {
		t.Fatal(err)
	}
	if h.cert, err = x509gost.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return h
}

// place is an authority with a responder and a certificate to ask about.
type place struct{ ca, responder, leaf *holder }

func newPlace(t testing.TB, s *suite.Suite) place {
	ca := issue(t, s, "Authority", 1, nil)
	return place{ca, issue(t, s, "Responder", 2, ca), issue(t, s, "Leaf", 200, ca)} // serial 200 needs a leading zero byte in DER
}

// single returns a good answer about the leaf.
func (p place) single(t testing.TB, h *suite.Hash) ocsp.Single {
	t.Helper()
	id, err := ocsp.NewCertID(p.leaf.cert, p.ca.cert, h)
	if err != nil {
		t.Fatal(err)
	}
	return ocsp.Single{CertID: id, Status: ocsp.Good, ThisUpdate: now, NextUpdate: now.Add(time.Hour)}
}

func (p place) basic(t testing.TB, by *holder, tmpl ocsp.Template) []byte {
	t.Helper()
	if tmpl.ProducedAt.IsZero() {
		tmpl.ProducedAt = now
	}
	der, err := ocsp.CreateBasic(&tmpl, by.cert, by.s, by.sign())
	if err != nil {
		t.Fatal(err)
	}
	return der
}
