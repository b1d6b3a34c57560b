// SPDX-License-Identifier: Apache-2.0

package idp

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
)

func pemOf(t *testing.T, p *sigtest.Party) (key, certificate string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), string(p.PEM())
}

// TestSAMLByOthers has a foreign identity provider read our metadata, check our requests
// and answer them.
func TestSAMLByOthers(t *testing.T) {
	idp := judge.SAML(t)
	root := sigtest.Root(t, suite.RSASHA256)
	theirs, ours := root.Signer(t, suite.RSASHA256, "Their key"), root.Signer(t, suite.RSASHA256, "Our key")
	theirEC := root.Signer(t, suite.ECDSAP256, "Their other key")
	for _, c := range []struct {
		name                  string
		response, assertion   bool
		algorithm, digest     string
		attribute, want, deny string
		signer                *sigtest.Party
		lasso                 string
	}{
		{name: "the assertion", assertion: true, want: "anna", signer: ours},
		{name: "the message", response: true, want: "anna"},
		{name: "both", response: true, assertion: true, want: "anna"},
		{name: "an attribute", assertion: true, attribute: "urn:oid:0.9.2342.19200300.100.1.3", want: "anna@example.ru"},
		{name: "SHA-512", assertion: true, algorithm: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512", digest: "http://www.w3.org/2001/04/xmlenc#sha512", want: "anna"},
		{name: "SHA-384", response: true, algorithm: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384", digest: "http://www.w3.org/2001/04/xmldsig-more#sha384", want: "anna"},
		{name: "lasso", lasso: "RSA_SHA256", want: "anna"},
		{name: "lasso and a signed request", lasso: "RSA_SHA256", want: "anna", signer: ours},
		{name: "ECDSA", assertion: true, algorithm: suite.ECDSAP256.XML[0], want: "anna"},
		{name: "lasso with SHA-1", lasso: "RSA_SHA1", deny: "not accepted"},
		{name: "SHA-1", assertion: true, algorithm: "http://www.w3.org/2000/09/xmldsig#rsa-sha1", digest: "http://www.w3.org/2000/09/xmldsig#sha1", deny: "not accepted"},
		{name: "a digest by SHA-1", assertion: true, digest: "http://www.w3.org/2000/09/xmldsig#sha1", deny: "not accepted"},
		{name: "nothing", deny: "neither the message nor the assertion is signed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, certificate := pemOf(t, theirs)
			if c.algorithm == suite.ECDSAP256.XML[0] {
				key, certificate = pemOf(t, theirEC)
			}
			order := judge.SAMLOrder{Lasso: c.lasso, Entity: "https://idp.example/metadata", SSO: "https://idp.example/sso", Key: key, Certificate: certificate, SignedRequests: c.signer != nil}
			provider, err := ReadSAMLMetadata([]byte(idp.Do(t, order).Metadata), "")
			if err != nil || provider.EntityID != order.Entity || provider.SSO != order.SSO || provider.WantsSigned != order.SignedRequests {
				t.Fatalf("%+v, %v", provider, err)
			}
			var refused error
			o := SAMLOptions{
				Name: "main", Provider: provider, EntityID: "https://us.example/metadata", ReturnURL: "https://us.example/return?a=b&c",
				Attribute: c.attribute, Now: time.Now, Failed: func(err error) { refused = err },
			}
			if c.signer != nil {
				o.Key, o.Certificate = c.signer.Key, c.signer.Certificate.Raw
			}
			p, err := NewSAML(o)
			if err != nil {
				t.Fatal(err)
			}
			metadata, err := p.Metadata()
			if err != nil {
				t.Fatal(err)
			}
			address, err := p.Begin(t.Context(), "the state", strings.Repeat("5", 64), "")
			u, perr := url.Parse(address)
			if err != nil || perr != nil {
				t.Fatal(err, perr)
			}
			order.MetadataOfService, order.Query = string(metadata), map[string]string{}
			order.RawQuery = u.RawQuery
			for name, values := range u.Query() {
				order.Query[name] = values[0]
			}
			order.Login, order.Mail = "anna", "anna@example.ru"
			order.SignResponse, order.SignAssertion, order.SignatureAlgorithm, order.DigestAlgorithm = c.response, c.assertion, c.algorithm, c.digest
			answer := idp.Do(t, order)
			if answer.Destination != o.ReturnURL || answer.Binding != bindingPost || answer.Issuer != o.EntityID || answer.ID != "_"+strings.Repeat("5", 64) {
				t.Errorf("%+v", answer)
			}
			login, err := p.Finish(t.Context(), answer.Response, strings.Repeat("5", 64), "")
			if c.deny != "" {
				if err == nil || refused == nil || !strings.Contains(refused.Error(), c.deny) {
					t.Errorf("%q, %v, %v", login, err, refused)
				}
				return
			}
			if err != nil || login != c.want {
				t.Errorf("%q, %v: %v", login, err, refused)
			}
		})
	}
}
