// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/authority"
	"tamga/internal/judge"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// otherAuthority is another certificate authority, with one client.
type otherAuthority struct {
	t    *testing.T
	key  crypto.Signer
	cert *x509gost.Certificate
	at   time.Time
}

func newOtherAuthority(t *testing.T, at time.Time) *otherAuthority {
	s := &otherAuthority{t: t, at: at}
	s.key, s.cert = s.certify("Foreign CA", nil, func(x *x509gost.Template) {
		x.IsCA, x.KeyUsage, x.ExtKeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign, nil
	})
	return s
}

func (s *otherAuthority) certify(name string, issuer *otherAuthority, change func(*x509gost.Template)) (crypto.Signer, *x509gost.Certificate) {
	s.t.Helper()
	key := must[crypto.Signer](s.t)(suite.GOST2012x256.Generate(newReader(byte(len(name)))))
	subject := must[x509gost.Name](s.t)(x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: name}}))
	x := &x509gost.Template{
		Subject: subject, SerialNumber: []byte{1, byte(len(name))}, NotBefore: s.at.Add(-time.Hour), NotAfter: s.at.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509gost.OID{{1, 3, 6, 1, 5, 5, 7, 3, 2}},
	}
	change(x)
	signer, by := key, (*x509gost.Certificate)(nil)
	if issuer != nil {
		signer, by = issuer.key, issuer.cert
	}
	der := must[[]byte](s.t)(x509gost.CreateCertificate(x, by, key.Public(), suite.GOST2012x256, suite.GOST2012x256, x509gost.SignWith(rand.Reader, signer, suite.GOST2012x256)))
	return key, must[*x509gost.Certificate](s.t)(x509gost.ParseCertificate(der))
}

func (s *otherAuthority) client(change func(*x509gost.Template)) []byte {
	_, c := s.certify("client", s, change)
	return c.Raw
}

// list makes the authority's revocation list.
func (s *otherAuthority) list(revoked ...x509gost.RevokedEntry) []*x509gost.RevocationList {
	s.t.Helper()
	der := must[[]byte](s.t)(x509gost.CreateRevocationList(&x509gost.CRLTemplate{
		Number: []byte{1}, ThisUpdate: s.at.Add(-time.Hour), NextUpdate: s.at.Add(time.Hour), Revoked: revoked,
	}, s.cert, suite.GOST2012x256, x509gost.SignWith(rand.Reader, s.key, suite.GOST2012x256)))
	return []*x509gost.RevocationList{must[*x509gost.RevocationList](s.t)(x509gost.ParseRevocationList(der))}
}

// TestPeers: a certificate from a handshake is accepted when its path, validity, usage
// and revocation are good, whatever the front end decided.
func TestPeers(t *testing.T) {
	own, _, clock := bootstrapped(t)
	foreign := newOtherAuthority(t, clock.now())
	same := func(*x509gost.Template) {}
	good := foreign.client(same)
	lists := foreign.list()
	ours := issue(t, own, suite.GOST2012x512)
	revoked := issue(t, own, suite.GOST2012x256)
	if err := own.Revoke(t.Context(), revoked.SerialNumber, 1, clock.now()); err != nil {
		t.Fatal(err)
	}
	server, err := own.Issue(t.Context(), authority.Request{
		Suite: suite.GOST2012x256, PublicKey: publicKey(t, suite.GOST2012x256), Subject: ours.Subject, ServerNames: []string{"localhost", "127.0.0.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	both := func(lists []*x509gost.RevocationList) *authority.Peers {
		return &authority.Peers{
			Own: own, Roots: []*x509gost.Certificate{foreign.cert}, Now: clock.now,
			Lists: func(context.Context) ([]*x509gost.RevocationList, error) { return lists, nil },
		}
	}
	for _, c := range []struct {
		name  string
		peers *authority.Peers
		chain [][]byte
		want  error  // nil with no says: accepted
		says  string // text of an error that is not a chain.Error
	}{
		{"ours", both(nil), [][]byte{ours.Raw}, nil, ""},
		{"ECDSA of ours", both(nil), [][]byte{issue(t, own, suite.ECDSAP256).Raw}, nil, ""},
		{"RSA of ours", both(nil), [][]byte{issue(t, own, suite.RSASHA256).Raw}, nil, ""},
		{"a foreign one", both(lists), [][]byte{good}, nil, ""},
		{"a foreign one with its issuer", both(lists), [][]byte{good, foreign.cert.Raw}, nil, ""},
		{"no use named", both(lists), [][]byte{foreign.client(func(x *x509gost.Template) { x.ExtKeyUsage, x.KeyUsage = nil, 0 })}, nil, ""},

		{"ours, which do not count", &authority.Peers{Now: clock.now}, [][]byte{ours.Raw}, chain.ErrNoPath, ""},
		{"its issuer is sent and not trusted", &authority.Peers{Own: own, Now: clock.now}, [][]byte{good, foreign.cert.Raw}, chain.ErrNoPath, ""},
		{"revoked of ours", both(nil), [][]byte{revoked.Raw}, chain.ErrRevoked, ""},
		{"revoked of the foreign one", both(foreign.list(x509gost.RevokedEntry{SerialNumber: []byte{1, 6}, At: clock.now().Add(-time.Minute)})), [][]byte{good}, chain.ErrRevoked, ""},
		{"no list", both(nil), [][]byte{good}, chain.ErrRevocationUnknown, ""},
		{"for servers", both(nil), [][]byte{server.Raw}, chain.ErrUsage, ""},
		{"for mail", both(lists), [][]byte{foreign.client(func(x *x509gost.Template) { x.ExtKeyUsage = []x509gost.OID{x509gost.UsageEmailProtection} })}, chain.ErrUsage, ""},
		{"expired", both(lists), [][]byte{foreign.client(func(x *x509gost.Template) { x.NotAfter = clock.now().Add(-time.Minute) })}, chain.ErrExpired, ""},
		{"not valid yet", both(lists), [][]byte{foreign.client(func(x *x509gost.Template) { x.NotBefore = clock.now().Add(time.Minute) })}, chain.ErrNotYetValid, ""},
		{"keys that agree only", both(lists), [][]byte{foreign.client(func(x *x509gost.Template) { x.KeyUsage = x509.KeyUsageKeyAgreement })}, nil, "keyUsage"},
		{"an authority", both(lists), [][]byte{foreign.cert.Raw}, nil, "authority's"},
		{"nothing", both(lists), nil, nil, "want 1 to"},
		{"very many", both(lists), make([][]byte, 100), nil, "want 1 to"},
		{"no certificate", both(lists), [][]byte{[]byte("x")}, nil, "a client's certificate"},
	} {
		err := c.peers.Judge(t.Context(), c.chain)
		switch {
		case c.want == nil && c.says == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case c.want != nil && !errors.Is(err, c.want), c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func TestServerNames(t *testing.T) {
	tool := judge.OpenSSL(t)
	s, _, _ := bootstrapped(t)
	subject := must[x509gost.Name](t)(x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "sign.example.org"}}))
	request := authority.Request{Suite: suite.GOST2012x256, PublicKey: publicKey(t, suite.GOST2012x256), Subject: subject}
	for _, wrong := range []string{"", "a b", "-x", "x..y", "a\x00b", "ё", strings.Repeat("x", 64)} {
		request.ServerNames = []string{wrong}
		if _, err := s.Issue(t.Context(), request); err == nil {
			t.Errorf("%q is taken for the name of a server", wrong)
		}
	}
	request.ServerNames = []string{"sign.example.org", "*.example.org", "127.0.0.1", "::1"}
	c, err := s.Issue(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	tool.Write("server.der", c.Raw)
	text, err := tool.Run("x509", "-inform", "DER", "-in", "server.der", "-noout", "-ext", "subjectAltName,keyUsage,extendedKeyUsage")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DNS:sign.example.org, DNS:*.example.org, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1", "Digital Signature, Key Encipherment, Key Agreement", "TLS Web Server Authentication"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
