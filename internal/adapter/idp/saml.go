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

	"tamga/internal/domain/auth"
	"tamga/internal/domain/fault"
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

// SAMLProvider is what has to be known of a provider of SAML.
type SAMLProvider struct {
	EntityID string // how it calls itself
	SSO      string // where browsers are sent to, by the binding HTTP-Redirect
	// Certificates name the keys it signs with. Their lives and issuers are not looked
	// at: whoever wrote the configuration trusts the keys.
	Certificates []*x509gost.Certificate
	WantsSigned  bool      // it takes signed requests only
	ValidUntil   time.Time // of its metadata; zero: no end
}

// SAMLOptions of a provider.
type SAMLOptions struct {
	Name     string // by which users have logins there
	Title    string // for people
	Provider SAMLProvider
	EntityID string // how we call ourselves there
	// ReturnURL takes the answers, by the binding HTTP-POST.
	ReturnURL string
	// Attribute that is the login; "" takes the NameID.
	Attribute string
	// NameIDFormat is asked for, and then no other is taken; "" leaves it to the provider.
	NameIDFormat string
	// Key signs requests, RSA or ECDSA on P-256; nil: they are not signed. Certificate is
	// that of the key (DER), for the metadata.
	Key         crypto.Signer
	Certificate []byte
	Now         func() time.Time
	Failed      func(err error) // is told for the log what a provider did wrong
}

// SAML is a provider by the Web Browser SSO profile of SAML 2.0 (profiles, 4.1), for
// which this service is a service provider; it is an auth.PostingProvider. Requests go by
// HTTP-Redirect, answers come by HTTP-POST and only to requests.
type SAML struct {
	o     SAMLOptions
	suite *suite.Suite // of Key
}

var _ auth.PostingProvider = (*SAML)(nil)

// NewSAML checks the options.
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
	// A provider may have more keys, of kinds that are not supported here.
	must(slices.ContainsFunc(o.Provider.Certificates, func(c *x509gost.Certificate) bool { return c.PublicKey != nil && c.Suite != suite.GOST2001 }),
		"certificates: want at least one that the provider signs with, with a key of RSA, ECDSA, Ed25519 or GOST R 34.10-2012")
	must(o.EntityID != "" && len(o.EntityID) <= 1024, "own entity_id: want 1 to 1024 octets")
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

// Name implements auth.Provider.
func (p *SAML) Name() string { return p.o.Name }

// Title implements auth.Provider.
func (p *SAML) Title() string {
	if p.o.Title == "" {
		return p.o.Name
	}
	return p.o.Title
}

// requestID is the ID of the request of a sign-in: an xs:ID begins with no digit.
func requestID(nonce string) string { return "_" + nonce }

// Begin implements auth.Provider: a request by the binding HTTP-Redirect (bindings, 3.4).
// The verifier is for protocols in which we fetch the answer ourselves: here the nonce
// alone, as the ID of the request, binds it.
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

// Finish implements auth.Provider: answer is a SAMLResponse as it was posted.
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
		return "", &auth.GrantError{Code: auth.AccessDenied, Description: "the other identity provider did not confirm the sign-in"}
	}
	return login, nil
}

// failed tells what was wrong. Names of elements may be long, lines of the log may not.
func (p *SAML) failed(err error) {
	const most = 600 // octets
	text := err.Error()
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	if p.o.Failed != nil {
		p.o.Failed(fmt.Errorf("idp %s: %s", p.o.Name, text))
	}
}

// expired refuses to work by metadata that its provider says is over (metadata, 2.3.2).
func (p *SAML) expired() error {
	until := p.o.Provider.ValidUntil
	if until.IsZero() || p.o.Now().Before(until) {
		return nil
	}
	err := fmt.Errorf("its metadata ended at %s: a newer file is needed", until.UTC().Format(time.RFC3339))
	p.failed(err)
	return fault.New(fault.Unavailable, "what is known of the other identity provider is out of date").With(err)
}

// escape makes a text fit for XML, inside an element or an attribute.
func escape(text string) string {
	var b strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
