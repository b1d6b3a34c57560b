// SPDX-License-Identifier: Apache-2.0

// Package idp lets users sign in at other identity providers: by OpenID Connect with the
// code flow (OIDC), and by the Web Browser SSO profile of SAML 2.0 (SAML).
//
// Begin with New or NewSAML; ReadSAMLMetadata reads what a SAML provider publishes. Both
// types implement signin.Provider: Begin returns the address for the browser, Finish checks
// the answer and returns the login. The package does not find the user of a login and
// opens no session: package signin does.
package idp

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
)

// Bounds of what a provider may cost.
const (
	patience  = 10 * time.Second // for one request
	maxAnswer = 1 << 20          // bytes
	maxLogin  = 1024             // bytes
)

// algorithms lists the signature algorithms of ID tokens that are accepted, whatever the
// provider announces. None of them is symmetric, because others may know the client
// secret.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Options configures an OpenID Connect provider.
type Options struct {
	Name         string // the name under which users have logins there
	Title        string // the name that people see
	Issuer       string // its address, exactly as the provider writes it
	ClientID     string // our identifier at the provider
	ClientSecret string // empty for a public client
	RedirectURL  string // where the provider sends browsers back to
	Scopes       []string
	// Claim is the claim of the ID token that is the login. It must be a string. With
	// "email", the provider must also assert that it has verified the address.
	Claim  string
	Roots  *x509.CertPool // nil: the roots of the system
	Now    func() time.Time
	Failed func(err error) // called with the error of a provider, for the log
}

// OIDC is an OpenID Connect provider. It implements signin.Provider. It requests the
// provider's configuration when the first user signs in there, so a provider that is down
// does not keep other users from signing in.
type OIDC struct {
	o      Options
	client *http.Client

	mu       sync.Mutex
	provider *oidc.Provider
}

var _ signin.Provider = (*OIDC)(nil)

// New checks the options and returns the provider. It opens no connection.
func New(o Options) (*OIDC, error) {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("idp: "+text))
		}
	}
	issuer, err := url.Parse(o.Issuer)
	must(err == nil && issuer.Host != "" && (issuer.Scheme == "https" || issuer.Scheme == "http" && loopback(issuer.Hostname())), "issuer: want https:// and a host")
	must(o.Name != "", "name: want one, as users have it in their logins")
	must(o.ClientID != "", "client_id: want the name the provider knows this service by")
	must(o.Claim != "", "claim: want the claim that is the login, such as sub")
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}
	return &OIDC{o: o, client: &http.Client{
		Transport: bounded{transport},
		Timeout:   patience,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("idp: the provider redirects; redirects are not followed")
		},
	}}, nil
}

func loopback(host string) bool { return host == "127.0.0.1" || host == "::1" || host == "localhost" }

// Name implements signin.Provider.
func (p *OIDC) Name() string { return p.o.Name }

// Title implements signin.Provider.
func (p *OIDC) Title() string {
	if p.o.Title == "" {
		return p.o.Name
	}
	return p.o.Title
}

// Probe requests the provider's configuration, which a sign-in needs.
func (p *OIDC) Probe(ctx context.Context) error {
	_, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.o.Issuer)
	return err
}

// open requests the provider's configuration once.
func (p *OIDC) open(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.provider != nil {
		return p.provider, nil
	}
	// The keys are fetched with this client later, when ctx has ended.
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.o.Issuer)
	if err != nil {
		return nil, p.unavailable(err)
	}
	p.provider = provider
	return provider, nil
}

func (p *OIDC) unavailable(err error) error {
	return fault.New(fault.Unavailable, "the other identity provider does not answer: try again later").With(err)
}

func (p *OIDC) oauth(provider *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, Endpoint: provider.Endpoint(),
		RedirectURL: p.o.RedirectURL, Scopes: append([]string{oidc.ScopeOpenID}, p.o.Scopes...),
	}
}

// Begin implements signin.Provider.
func (p *OIDC) Begin(ctx context.Context, state, nonce, verifier string) (string, error) {
	provider, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(provider).AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// Finish implements signin.Provider.
func (p *OIDC) Finish(ctx context.Context, code, nonce, verifier string) (string, error) {
	provider, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.oauth(provider).Exchange(ctx, code, oauth2.VerifierOption(verifier))
	var answered *oauth2.RetrieveError
	switch {
	case errors.As(err, &answered):
		return "", p.refuse(fmt.Errorf("the code: %s", answered.ErrorCode))
	case err != nil:
		return "", p.unavailable(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return "", p.refuse(errors.New("no ID token came"))
	}
	login, err := p.login(ctx, provider, raw, token.AccessToken, nonce)
	if err != nil {
		return "", p.refuse(err)
	}
	return login, nil
}

// login verifies an ID token (OpenID Connect Core, 3.1.3.7) and returns the login.
func (p *OIDC) login(ctx context.Context, provider *oidc.Provider, raw, access, nonce string) (string, error) {
	verified, err := provider.Verifier(&oidc.Config{ClientID: p.o.ClientID, SupportedSigningAlgs: algorithms, Now: p.o.Now}).Verify(ctx, raw)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(nonce)) != 1 {
		return "", errors.New("the ID token is for another sign-in: its nonce differs")
	}
	if verified.AccessTokenHash != "" {
		if err := verified.VerifyAccessToken(access); err != nil {
			return "", err
		}
	}
	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil {
		return "", err
	}
	if azp, is := claims["azp"]; len(verified.Audience) > 1 && !is || is && azp != p.o.ClientID {
		return "", errors.New("the ID token was issued to another client: azp differs")
	}
	login, _ := claims[p.o.Claim].(string)
	switch {
	case login == "" || len(login) > maxLogin:
		return "", fmt.Errorf("the ID token has no claim %s that is a text", p.o.Claim)
	case p.o.Claim == "email" && claims["email_verified"] != true:
		return "", errors.New("the provider has not verified the e-mail")
	}
	return login, nil
}

func (p *OIDC) refuse(err error) error {
	if p.o.Failed != nil {
		p.o.Failed(fmt.Errorf("idp %s: %w", p.o.Name, err))
	}
	return &token.GrantError{Code: token.AccessDenied, Description: "the other identity provider did not confirm the sign-in"}
}

// bounded truncates answers that are too large.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = limited{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

type limited struct {
	io.Reader
	io.Closer
}
