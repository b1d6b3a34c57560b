// Package idp owns the other identity providers that users may sign in at: OpenID
// Connect by the code flow, as a client of theirs.
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

	"tamga/internal/domain/auth"
	"tamga/internal/domain/fault"
)

// Bounds of what a provider may cost.
const (
	patience  = 10 * time.Second // for one request
	maxAnswer = 1 << 20          // octets
	maxLogin  = 1024             // octets
)

// algorithms an ID token may be signed with, whatever the provider lists. None of them
// is made with a secret: the client's own could be known to others.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Options of a provider.
type Options struct {
	Name         string // by which users have logins there
	Title        string // for people
	Issuer       string // its address, exactly as it calls itself
	ClientID     string // of ours there
	ClientSecret string // "" for a public client
	RedirectURL  string // where it sends browsers back to
	Scopes       []string
	// Claim of the ID token that is the login: a text. With "email" the provider has to
	// say that it has verified the address.
	Claim  string
	Roots  *x509.CertPool // nil: those of the system
	Now    func() time.Time
	Failed func(err error) // is told for the log what a provider did wrong
}

// OIDC is a provider; it is an auth.Provider. It is asked for its addresses when the
// first user goes there, so that one that is down keeps nobody else from signing in.
type OIDC struct {
	o      Options
	client *http.Client

	mu       sync.Mutex
	provider *oidc.Provider
}

var _ auth.Provider = (*OIDC)(nil)

// New checks the options.
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
			return errors.New("idp: the provider redirects, which is not followed")
		},
	}}, nil
}

func loopback(host string) bool { return host == "127.0.0.1" || host == "::1" || host == "localhost" }

// Name implements auth.Provider.
func (p *OIDC) Name() string { return p.o.Name }

// Title implements auth.Provider.
func (p *OIDC) Title() string {
	if p.o.Title == "" {
		return p.o.Name
	}
	return p.o.Title
}

// open asks the provider for its addresses, once.
func (p *OIDC) open(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.provider != nil {
		return p.provider, nil
	}
	// The keys are fetched with this client later on, when ctx is over.
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

// Begin implements auth.Provider.
func (p *OIDC) Begin(ctx context.Context, state, nonce, verifier string) (string, error) {
	provider, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(provider).AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// Finish implements auth.Provider.
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

// login verifies an ID token (OpenID Connect Core, 3.1.3.7) and takes the login.
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
	return &auth.GrantError{Code: auth.AccessDenied, Description: "the other identity provider did not confirm the sign-in"}
}

// bounded cuts answers off that are larger than any honest one.
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
