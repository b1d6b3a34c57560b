// SPDX-License-Identifier: Apache-2.0

package tsp_test

import (
	"crypto"
	"crypto/x509"
	"io"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

var (
	start  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now    = start.AddDate(0, 6, 0)
	end    = start.AddDate(20, 0, 0)
	policy = x509gost.OID{1, 2, 643, 7, 99}
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
	for i, role := range []string{"Authority", "TSA"} {
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

// uses returns an extKeyUsage extension.
func uses(critical bool, oids ...x509gost.OID) x509gost.Extension {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, oid := range oids {
			b.AddASN1ObjectIdentifier(oid)
		}
	})
	return x509gost.Extension{OID: x509gost.OIDExtKeyUsage, Critical: critical, Value: b.BytesOrPanic()}
}

// issue certifies the key of a role. A nil issuer means self-signed.
func issue(t testing.TB, s *suite.Suite, role string, issuer *holder, extensions ...x509gost.Extension) *holder {
	t.Helper()
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: role}})
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{key: key(t, s, role), s: s}
	tmpl := &x509gost.Template{
		Subject: name, SerialNumber: []byte{200}, NotBefore: start, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtraExtensions: extensions,
	}
	signer, cert := h, (*x509gost.Certificate)(nil)
	if issuer == nil {
		tmpl.IsCA, tmpl.MaxPathLen, tmpl.KeyUsage = true, -1, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	} else {
		signer, cert = issuer, issuer.cert
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

func newAuthority(t testing.TB, s *suite.Suite) (ca, tsa *holder) {
	ca = issue(t, s, "Authority", nil)
	return ca, issue(t, s, "TSA", ca, uses(true, x509gost.UsageTimeStamping))
}

func certs(list ...*holder) (out []*x509gost.Certificate) {
	for _, h := range list {
		out = append(out, h.cert)
	}
	return out
}

func info(h *suite.Hash) *tsp.Info {
	return &tsp.Info{
		Policy: policy, Digest: h.Digest([]byte("signature value")), Serial: []byte{0x40, 1, 2},
		Time: now, Accuracy: 1500100 * time.Microsecond, Nonce: []byte{0, 0x80, 1},
	}
}

func create(t testing.TB, i *tsp.Info, by *holder, embed ...*holder) []byte {
	t.Helper()
	der, err := tsp.CreateToken(i, by.cert, certs(embed...), by.s, by.sign())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func parse(t testing.TB, der []byte) *tsp.Token {
	t.Helper()
	token, err := tsp.ParseToken(der)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
