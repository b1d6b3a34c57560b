// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/authority"
	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// outsideAuthority is an authority of others with a root.
type outsideAuthority struct {
	t    *testing.T
	root *x509gost.Certificate
	sign x509gost.SignFunc
	at   time.Time
}

func newOutside(t *testing.T, at time.Time) *outsideAuthority {
	t.Helper()
	key := must[crypto.Signer](t)(suite.GOST2012x512.Generate(rand.Reader))
	o := &outsideAuthority{t: t, at: at, sign: func(d suite.Digest) ([]byte, error) { return suite.GOST2012x512.Sign(rand.Reader, key, d) }}
	o.root = o.certify(key.Public(), suite.GOST2012x512, subject(t, "Outside Root"), nil)
	return o
}

func (o *outsideAuthority) certify(key any, su *suite.Suite, name x509gost.Name, change func(*x509gost.Template)) *x509gost.Certificate {
	o.t.Helper()
	template := &x509gost.Template{
		Subject: name, SerialNumber: []byte{1}, NotBefore: o.at, NotAfter: o.at.AddDate(10, 0, 0),
		IsCA: true, MaxPathLen: 1, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if o.root != nil {
		template.MaxPathLen, template.SerialNumber = 0, []byte{2}
	}
	if change != nil {
		change(template)
	}
	der := must[[]byte](o.t)(x509gost.CreateCertificate(template, o.root, key, su, suite.GOST2012x512, o.sign))
	return must[*x509gost.Certificate](o.t)(x509gost.ParseCertificate(der))
}

// answer certifies what a request asks for.
func (o *outsideAuthority) answer(der []byte, change func(*x509gost.Template)) *x509gost.Certificate {
	o.t.Helper()
	r := must[*x509gost.Request](o.t)(x509gost.ParseRequest(der))
	if err := r.CheckSignature(); err != nil {
		o.t.Fatal(err)
	}
	return o.certify(r.PublicKey, r.Suite, r.Subject, change)
}

// TestInstall puts an issuing authority under an outside root and checks what was issued before and after.
func TestInstall(t *testing.T) {
	s, _, c := bootstrapped(t)
	ctx := t.Context()
	before := issue(t, s, suite.GOST2012x256)
	o := newOutside(t, c.now().Add(-time.Hour))
	request := must[[]byte](t)(s.RequestFor(ctx, "gost", x509gost.Name{}))
	cert := o.answer(request, nil)
	install := func(in authority.Installation) error {
		in.Name = "gost"
		if in.Roots == nil {
			in.Roots = []*x509gost.Certificate{o.root}
		}
		_, err := s.Install(ctx, in)
		return err
	}
	list := func(c ...*x509gost.Certificate) []*x509gost.Certificate { return c }
	other := must[*x509gost.Request](t)(x509gost.ParseRequest(must[[]byte](t)(s.RequestFor(ctx, "ecdsa", x509gost.Name{}))))
	foreign := newOutside(t, o.at)
	for _, x := range []struct {
		what string
		in   authority.Installation
		want string
	}{
		{"no certificate", authority.Installation{}, "for the key of gost"},
		{"another key", authority.Installation{Certificates: list(o.root, o.certify(other.PublicKey, other.Suite, other.Subject, nil))}, "for the key of gost"},
		{"not an authority", authority.Installation{Certificates: list(o.answer(request, func(t *x509gost.Template) { t.IsCA = false }))}, "CA:TRUE"},
		{"no revocation lists", authority.Installation{Certificates: list(o.answer(request, func(t *x509gost.Template) { t.KeyUsage = x509.KeyUsageCertSign }))}, "cRLSign"},
		{"ended", authority.Installation{Certificates: list(o.answer(request, func(t *x509gost.Template) { t.NotAfter = c.now().Add(-time.Minute) }))}, "leads to no root"},
		{"another root", authority.Installation{Certificates: list(foreign.answer(request, nil))}, "leads to no root"},
		{"another root beside it", authority.Installation{Certificates: list(foreign.answer(request, nil), foreign.root)}, "leads to no root"},
		{"another name", authority.Installation{Certificates: list(o.answer(request, func(n *x509gost.Template) { n.Subject = subject(t, "Other") })), Stopped: true}, "with the same"},
	} {
		if err := install(x.in); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.what, err, x.want)
		}
	}
	if _, err := s.RequestFor(ctx, "gost-root", x509gost.Name{}); err == nil || !strings.Contains(err.Error(), "is a root") {
		t.Errorf("a request for a root: %v", err)
	}
	if _, err := s.RequestFor(ctx, "gost-9", x509gost.Name{}); !errors.Is(err, authority.ErrNoAuthority) {
		t.Errorf("a request for no authority: %v", err)
	}

	for range 2 { // it can be repeated
		if err := install(authority.Installation{Certificates: list(cert)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Renew(ctx, "gost"); !errors.Is(err, authority.ErrOutside) {
		t.Errorf("a renewal by our root: %v", err)
	}
	if der := must[[]byte](t)(s.Certificate(ctx, "gost")); string(der) != string(cert.Raw) {
		t.Error("the address of the authority has another certificate")
	}
	lists := must[[]*x509gost.RevocationList](t)(s.CRLs(ctx))
	anchors, issuing, err := s.Trusted(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]*x509gost.Certificate{"before": before, "after": issue(t, s, suite.GOST2012x512), "RSA": issue(t, s, suite.RSASHA256)} {
		// Here without the network of the outside authority, and by others who trust its root.
		if _, err := chain.Build(x, chain.Options{Roots: anchors, Intermediates: issuing, CRLs: lists, At: c.now(), RequireRevocation: true}); err != nil {
			t.Errorf("issued %s, here: %v", what, err)
		}
		_, err := chain.Build(x, chain.Options{Roots: list(o.root), Intermediates: list(cert), CRLs: lists, At: c.now()})
		if (err == nil) != (what != "RSA") {
			t.Errorf("issued %s, under the outside root: %v", what, err)
		}
	}
	all := must[[]authority.Described](t)(s.All(ctx))
	for _, a := range all {
		if a.Outside != (a.Name == "gost") {
			t.Errorf("%s: outside is %t", a.Name, a.Outside)
		}
	}

	// The next generation has no certificates yet, so it may have another name. Its delegates get it too.
	made := must[[]string](t)(s.Rollover(ctx, "gost", false))
	if !slices.Equal(made, []string{"gost-2"}) {
		t.Fatalf("made %v", made)
	}
	named := o.answer(must[[]byte](t)(s.RequestFor(ctx, "gost-2", subject(t, "Example Signing CA"))), nil)
	in := authority.Installation{Name: "gost-2", Certificates: list(named), Roots: list(o.root)}
	if _, err := s.Install(ctx, in); !errors.Is(err, authority.ErrRunning) {
		t.Errorf("another name beside servers: %v", err)
	}
	in.Stopped = true
	must[*x509gost.Certificate](t)(s.Install(ctx, in))
	leaf := issue(t, s, suite.GOST2012x256)
	if !leaf.Issuer.Equal(named.Subject) {
		t.Errorf("issued by %s", leaf.Issuer)
	}
	lists = must[[]*x509gost.RevocationList](t)(s.CRLs(ctx))
	if _, err := chain.Build(leaf, chain.Options{Roots: list(named), CRLs: lists, At: c.now(), RequireRevocation: true}); err != nil {
		t.Error(err)
	}
	asks := must[[]byte](t)(ocsp.CreateRequest(leaf, named, suite.SHA1, nil))
	answer := must[*ocsp.Response](t)(ocsp.Parse(must[[]byte](t)(s.OCSP(ctx, asks))))
	if answer.Basic == nil {
		t.Fatalf("no OCSP answer: %v", answer)
	}
	if _, err := answer.Basic.Responder(named); err != nil {
		t.Errorf("the responder: %v", err)
	}
}
