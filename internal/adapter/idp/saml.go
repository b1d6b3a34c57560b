// SPDX-License-Identifier: Apache-2.0

package idp

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto"
	"crypto/rand"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Names of SAML 2.0.
const (
	nsProtocol  = "urn:oasis:names:tc:SAML:2.0:protocol"
	nsAssertion = "urn:oasis:names:tc:SAML:2.0:assertion"
	nsMetadata  = "urn:oasis:names:tc:SAML:2.0:metadata"
	nsDS        = "http://www.w3.org/2000/09/xmldsig#"

	bindingPost     = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
	bindingRedirect = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
	methodBearer    = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
	statusSuccess   = "urn:oasis:names:tc:SAML:2.0:status:Success"
	formatEntity    = "urn:oasis:names:tc:SAML:2.0:nameid-format:entity"
	formatTransient = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
)

// SAMLProvider describes a SAML provider.
type SAMLProvider struct {
	EntityID string // the name of the provider
	SSO      string // where browsers are sent to, by the binding HTTP-Redirect
	// Certificates hold the keys that the provider signs with. Their validity and their
	// issuers are not checked: the configuration makes the keys trusted.
	Certificates []*x509gost.Certificate
	WantsSigned  bool      // it accepts signed requests only
	ValidUntil   time.Time // of its metadata; zero: no limit
}

// SAMLOptions configures a SAML provider.
type SAMLOptions struct {
	Name     string // the name under which users have logins there
	Title    string // the name that people see
	Provider SAMLProvider
	EntityID string // our name at the provider
	// ReturnURL receives the answers, by the binding HTTP-POST.
	ReturnURL string
	// Attribute is the attribute that holds the login; empty: the NameID is the login.
	Attribute string
	// NameIDFormat is the requested format, and no other is accepted. Empty: the provider
	// chooses.
	NameIDFormat string
	// Key signs requests: RSA, or ECDSA on P-256. If Key is nil, requests are not signed.
	// Certificate (DER) belongs to the key and is published in the metadata.
	Key         crypto.Signer
	Certificate []byte
	Now         func() time.Time
	Failed      func(err error) // called with the error of a provider, for the log
}

// SAML is a provider of the Web Browser SSO profile of SAML 2.0 (profiles, 4.1). This
// service is its service provider. SAML implements signin.PostingProvider. Requests are
// sent by HTTP-Redirect. Answers arrive by HTTP-POST and must answer a request.
type SAML struct {
	o     SAMLOptions
	suite *suite.Suite // of Key
}

var _ signin.PostingProvider = (*SAML)(nil)

// NewSAML checks the options and returns the provider.
func NewSAML(o SAMLOptions) (*SAML, error) {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("idp: "+text))
		}
	}
	sso, err := url.Parse(o.Provider.SSO)
	must(err == nil && sso.Host != "" && sso.Fragment == "" && (sso.Scheme == "https" || sso.Scheme == "http" && loopback(sso.Hostname())), "sso_url: want https:// and a host, without a fragment")
	must(o.Name != "", "name: want one, as users have it in their logins")
	must(o.Provider.EntityID != "", "entity_id: want how the provider calls itself")
	// A provider may have more keys, of types that are not supported here.
	must(slices.ContainsFunc(o.Provider.Certificates, func(c *x509gost.Certificate) bool { return c.PublicKey != nil && c.Suite != suite.GOST2001 }),
		"certificates: want at least one that the provider signs with, with a key of RSA, ECDSA, Ed25519 or GOST R 34.10-2012")
	must(o.EntityID != "" && len(o.EntityID) <= 1024, "own entity_id: want 1 to 1024 bytes")
	must(o.Key != nil || !o.Provider.WantsSigned, "key_file: the provider takes signed requests only: want a key to sign them with")
	must(o.Attribute != "" || o.NameIDFormat != formatTransient, "name_id_format: a transient name is another at each sign-in, and no login")
	p := &SAML{o: o}
	if o.Key != nil {
		own, err := x509gost.ParseCertificate(o.Certificate)
		if err == nil {
			p.suite = own.Suite
			public, comparing := o.Key.Public().(interface{ Equal(crypto.PublicKey) bool })
			must(comparing && public.Equal(own.PublicKey), "certificate_file: want the certificate of the key")
		}
		must(err == nil && (p.suite == suite.RSASHA256 || p.suite == suite.ECDSAP256), "key_file: want a key of RSA with 2048 to 8192 bits or of ECDSA on P-256, and its certificate")
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return p, nil
}

// Name implements signin.Provider.
func (p *SAML) Name() string { return p.o.Name }

// Title implements signin.Provider.
func (p *SAML) Title() string {
	if p.o.Title == "" {
		return p.o.Name
	}
	return p.o.Title
}

// requestID returns the ID of the request of a sign-in. An xs:ID must not begin with a
// digit.
func requestID(nonce string) string { return "_" + nonce }

// Begin implements signin.Provider: it makes a request by the binding HTTP-Redirect
// (bindings, 3.4). It does not use the verifier, which is for protocols in which the
// service fetches the answer. Here the nonce is the ID of the request and binds the
// answer to it.
func (p *SAML) Begin(_ context.Context, state, nonce, _ string) (string, error) {
	if err := p.expired(); err != nil {
		return "", err
	}
	policy := ""
	if p.o.NameIDFormat != "" {
		policy = ` Format="` + escape(p.o.NameIDFormat) + `"`
	}
	request := `<samlp:AuthnRequest xmlns:samlp="` + nsProtocol + `" xmlns:saml="` + nsAssertion + `" ID="` + requestID(nonce) + `" Version="2.0"` +
		` IssueInstant="` + p.o.Now().UTC().Format("2006-01-02T15:04:05Z") + `" Destination="` + escape(p.o.Provider.SSO) + `"` +
		` ProtocolBinding="` + bindingPost + `" AssertionConsumerServiceURL="` + escape(p.o.ReturnURL) + `">` +
		`<saml:Issuer>` + escape(p.o.EntityID) + `</saml:Issuer><samlp:NameIDPolicy` + policy + ` AllowCreate="true"/></samlp:AuthnRequest>`
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write([]byte(request))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("idp: packing a request: %w", err)
	}
	query := "SAMLRequest=" + url.QueryEscape(base64.StdEncoding.EncodeToString(packed.Bytes())) + "&RelayState=" + url.QueryEscape(state)
	if query, err = p.sign(query); err != nil {
		return "", err
	}
	separator := "?"
	if strings.Contains(p.o.Provider.SSO, "?") {
		separator = "&"
	}
	return p.o.Provider.SSO + separator + query, nil
}

// sign signs the query of a request as it is sent (bindings, 3.4.4.1).
func (p *SAML) sign(query string) (string, error) {
	if p.o.Key == nil {
		return query, nil
	}
	query += "&SigAlg=" + url.QueryEscape(p.suite.XML[0])
	value, err := p.suite.Sign(rand.Reader, p.o.Key, p.suite.Hash.Digest([]byte(query)))
	if err == nil {
		value, err = p.suite.XMLValue(value)
	}
	if err != nil {
		return "", fmt.Errorf("idp: signing a request: %w", err)
	}
	return query + "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(value)), nil
}

// Finish implements signin.Provider. answer is a SAMLResponse as it was posted.
func (p *SAML) Finish(ctx context.Context, answer, nonce, _ string) (string, error) {
	if err := p.expired(); err != nil {
		return "", err
	}
	login, err := p.judge(ctx, answer, requestID(nonce))
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		p.failed(err)
		return "", &token.GrantError{Code: token.AccessDenied, Description: "the other identity provider did not confirm the sign-in"}
	}
	return login, nil
}

// failed reports an error to Failed. It truncates the text, because names of elements may
// be long.
func (p *SAML) failed(err error) {
	const most = 600 // bytes
	text := err.Error()
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	if p.o.Failed != nil {
		p.o.Failed(fmt.Errorf("idp %s: %s", p.o.Name, text))
	}
}

// expired returns an error if the metadata of the provider has ended (metadata, 2.3.2).
func (p *SAML) expired() error {
	until := p.o.Provider.ValidUntil
	if until.IsZero() || p.o.Now().Before(until) {
		return nil
	}
	err := fmt.Errorf("its metadata ended at %s: configure a newer file", until.UTC().Format(time.RFC3339))
	p.failed(err)
	return fault.New(fault.Unavailable, "the metadata of the other identity provider has expired").With(err)
}

// escape returns a text escaped for XML, for an element or an attribute.
func escape(text string) string {
	var b strings.Builder
	// A strings.Builder returns no error.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
