// SPDX-License-Identifier: Apache-2.0

// Package tokenapi serves the token endpoint (RFC 6749): it identifies the client, passes
// the request to its grant, and answers in the form of OAuth. It also serves the
// authorization endpoints, for browsers and for client certificates, and the rest of OpenID
// Connect: discovery, keys and userinfo. Begin with [New] and [API.Routes]. Package signin
// checks the proofs. Package token issues the tokens.
package tokenapi

import (
	"context"
	_ "embed" // for Docs
	"errors"
	"net/http"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// Docs describes the operations of this surface for people; see
// [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// maxForm is the limit of a token request in bytes. Tokens to exchange are the largest
// values in it.
const maxForm = 64 << 10

// Identity signs users in; see [signin.Service].
type Identity interface {
	PasswordGrant(ctx context.Context, client signin.Client, login, password, resource, scope string) (token.Token, error)
	CodeGrant(ctx context.Context, client signin.Client, r signin.CodeRequest) (token.Token, error)
	ExchangeGrant(ctx context.Context, client signin.Client, x signin.Exchange) (token.Token, audit.Principal, error)
	AuthorizeCertificate(ctx context.Context, der []byte, a signin.Authorization) (code string, who audit.Principal, err error)
	AuthorizePassword(ctx context.Context, login, password string, a signin.Authorization) (signin.Authorized, audit.Principal, error)
	AuthorizeBearer(ctx context.Context, bearer string, a signin.Authorization) (signin.Authorized, audit.Principal, error)
	AuthorizeExternal(ctx context.Context, p signin.Pending, answer string, a signin.Authorization) (signin.Authorized, audit.Principal, error)
	CheckRequest(a signin.Authorization) error
	Providers() []signin.Provider
	BeginExternal(ctx context.Context, name, ticket, browser string) (string, error)
	OpenExternal(ctx context.Context, name, state, browser string, posted bool) (signin.Pending, error)
	ExternalReturn(ctx context.Context, name, state string) (string, error)
	ProviderMetadata(name string) ([]byte, error)
	NewBrowser() (string, error)
	SealTicket(p signin.Pending, browser string, step signin.Step) (string, error)
	OpenTicket(ticket, browser string, step signin.Step) (signin.Pending, error)
}

// Tokens makes and checks tokens; see [token.Service].
type Tokens interface {
	RefreshGrant(ctx context.Context, clientID, token, resource, scope string) (token.Token, error)
	UserInfo(ctx context.Context, bearer string) (token.Person, error)
	PublicKeys() []token.PublicKey
}

// Clients knows the programs that may request tokens; see [signin.Clients].
type Clients interface {
	Authenticate(id, secret string) (signin.Client, error)
	Find(id string) (signin.Client, bool)
	Default() string
}

// API serves the token endpoint.
type API struct {
	identity Identity
	tokens   Tokens
	clients  Clients
	judge    Judge
	issuer   string // {idp_url}
	name     string // of the installation
	language string // of the installation, as in rest.Languages
	attempts Attempts

	confirming confirming
}

// Deps lists what an API serves and asks.
type Deps struct {
	Identity Identity
	Tokens   Tokens
	Clients  Clients
	Judge    Judge
	Issuer   string   // {idp_url}, the public address
	Name     string   // of the installation, for the pages of sign-ins
	Language string   // of the installation, for readers who want none that we have; see [rest.LanguageFor]
	Attempts Attempts // the limits of password attempts; the zero value: none

	Confirmations   Confirmations
	Steps           Steps
	ConfirmedTokens ConfirmedTokens
	// Paint makes a picture of a QR code: a PNG.
	Paint func(text string) ([]byte, error)
}

// New returns the API.
func New(d Deps) *API {
	return &API{
		identity: d.Identity, tokens: d.Tokens, clients: d.Clients, judge: d.Judge, issuer: d.Issuer, name: d.Name, language: d.Language, attempts: d.Attempts,
		confirming: confirming{records: d.Confirmations, steps: d.Steps, tokens: d.ConfirmedTokens, paint: d.Paint},
	}
}

// grantExchange is the grant_type of RFC 8693.
const grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

// grants are the functions by grant_type. A new grant is a file with its function and a row
// here.
var grants = map[string]func(a *API, ctx context.Context, client signin.Client, form rest.Form) (token.Token, error){
	"password":           (*API).password,
	"authorization_code": (*API).code,
	"refresh_token":      (*API).refresh,
	grantExchange:        (*API).exchange,
}

// Routes returns the operations of this surface, below {idp_url}. One client sends its
// request as GET with a query. The query is never logged.
func (a *API) Routes() []rest.Route {
	return append(a.confirmationRoutes(), []rest.Route{
		rest.Handle("POST /oauth/token", "Token", rest.Anyone, a.token).AtMost(maxForm),
		rest.Handle("GET /oauth/token", "Token", rest.Anyone, a.tokenByAddress).AtMost(maxForm),
		rest.Handle("GET /oauth/authorize/certificate", "AuthorizeCertificate", rest.Anyone, a.authorizeByCertificate),
		rest.Handle("GET "+authorizePath, "Authorize", rest.Anyone, a.forPeople(authorizePath, a.authorize)).Answering(rest.Page{}, rest.Redirect{}),
		rest.Handle("POST "+loginPath, "Login", rest.Anyone, a.forPeople("", a.login)).Answering(rest.Page{}, rest.Redirect{}).AtMost(maxForm),
		rest.Handle("POST "+stepPath, "SecondStep", rest.Anyone, a.forPeople("", a.step)).Answering(rest.Page{}, rest.Redirect{}).AtMost(maxForm),
		rest.Handle("GET "+stepPath, "SecondStep", rest.Anyone, a.forPeople("", a.stepAgain)).Answering(rest.Page{}, rest.Redirect{}),
		rest.Handle("GET "+externalPath+"/{name}/return", "ExternalReturn", rest.Anyone, a.comeBack).Answering(rest.Page{}, rest.Redirect{}),
		// This page has no audit entry. The form that it posts has one.
		rest.Handle("POST "+externalPath+"/{name}/return", "ExternalHandOn", rest.Anyone, a.handOn).Answering(rest.Page{}).AtMost(maxPosted).Unaudited(),
		rest.Handle("POST "+externalPath+"/{name}/finish", "ExternalReturn", rest.Anyone, a.finishPosted).Answering(rest.Page{}, rest.Redirect{}).AtMost(maxPosted),
		rest.Handle("GET "+externalPath+"/{name}/metadata", "ExternalMetadata", rest.Anyone, a.metadata).Unaudited(),
		rest.Handle("GET "+externalPath+"/{name}", "ExternalLogin", rest.Anyone, a.begin),
		rest.Handle("GET /oauth/userinfo", "UserInfo", rest.Anyone, a.userInfo),
		rest.Handle("POST /oauth/userinfo", "UserInfo", rest.Anyone, a.userInfo),
		rest.Handle("GET /.well-known/openid-configuration", "Discovery", rest.Anyone, a.discovery).Unaudited(),
		rest.Handle("GET /.well-known/jwks.json", "TokenKeys", rest.Anyone, a.keys).Unaudited().Exact(),
	}...)
}

type request struct {
	Authorization string    `header:"Authorization"`
	Body          rest.Form `many:"*"`
}

// answer is a token (RFC 6749, section 5.1).
type answer struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token,omitempty"`
	IDToken      string `json:"id_token,omitempty"`
	IssuedType   string `json:"issued_token_type,omitempty"` // of an exchange (RFC 8693, 2.2.1)
	Scope        string `json:"scope,omitempty"`
}

// tokenByAddress is token for a request whose parameters are in its address. Logs of proxies and
// histories of browsers keep addresses, so no password may be there: the caller learns at once that
// the request is for POST. Nothing is checked, so that the answer says nothing about the password.
func (a *API) tokenByAddress(ctx context.Context, r request) (answer, error) {
	if _, given := r.Body["password"]; given || r.Body.Get("grant_type") == "password" {
		return answer{}, passwordInAddress{}
	}
	return a.token(ctx, r)
}

// passwordInAddress is the refusal of a password in an address.
type passwordInAddress struct{}

// Error implements error.
func (passwordInAddress) Error() string {
	return "a password in an address is refused: send the form by POST, and change the password"
}

// Outcome implements rest.Refusal.
func (passwordInAddress) Outcome() string { return "method_not_allowed" }

// Answer implements rest.Refusal.
func (e passwordInAddress) Answer() (int, http.Header, any) {
	return http.StatusMethodNotAllowed, http.Header{"Allow": {http.MethodPost}}, map[string]string{"error": token.InvalidRequest, "error_description": e.Error()}
}

func (a *API) token(ctx context.Context, r request) (answer, error) {
	for name, values := range r.Body {
		if len(values) > 1 && slices.Contains(parameters, name) {
			return answer{}, refuse(token.InvalidRequest, name+" is given more than once")
		}
	}
	client, err := a.client(r)
	if err != nil {
		return answer{}, refusal(err)
	}
	// The audit log gets a login only after its user is known (audit.Tried), because people
	// type passwords into the wrong field.
	if who := (audit.Principal{ClientID: client.ID}); client.Public {
		rest.Claimed(ctx, who)
	} else {
		rest.Identified(ctx, who)
	}
	kind := r.Body.Get("grant_type")
	if kind == "" {
		return answer{}, refuse(token.InvalidRequest, "grant_type is missing")
	}
	grant, ok := grants[kind]
	if !ok {
		return answer{}, refuse("unsupported_grant_type", "this grant_type is not served here")
	}
	t, err := grant(a, ctx, client, r.Body)
	if err != nil {
		return answer{}, refusal(err)
	}
	issuedType := ""
	if kind == grantExchange {
		issuedType = signin.TypeAccessToken
	}
	return answer{
		AccessToken:  t.AccessToken,
		TokenType:    "Bearer",
		ExpiresIn:    int64(t.ExpiresIn.Seconds()),
		RefreshToken: t.RefreshToken,
		IDToken:      t.IDToken,
		IssuedType:   issuedType,
		Scope:        t.Scope,
	}, nil
}

// parameters that must not occur twice (RFC 6749, section 3.2). Others are ignored.
var parameters = []string{
	"grant_type", "client_id", "client_secret", "username", "password", "resource", "scope", "code", "redirect_uri", "code_verifier",
	"refresh_token", "actor_token", "actor_token_type", "subject_token", "subject_token_type",
}

// client identifies the program: by HTTP Basic, or by client_id and client_secret in the
// form. If both are there, they must agree.
func (a *API) client(r request) (signin.Client, error) {
	id, secret := r.Body.Get("client_id"), r.Body.Get("client_secret")
	scheme, _, _ := strings.Cut(r.Authorization, " ")
	if !strings.EqualFold(scheme, "Basic") {
		if id == "" {
			return signin.Client{}, refuse(token.InvalidClient, "client_id is missing: send it in the form or by HTTP Basic")
		}
		return a.clients.Authenticate(id, secret)
	}
	basicID, basicSecret, ok := (&http.Request{Header: http.Header{"Authorization": {r.Authorization}}}).BasicAuth()
	if !ok {
		return signin.Client{}, refuse(token.InvalidClient, "the Authorization header is not valid HTTP Basic")
	}
	// RFC 6749 demands form encoding inside Basic. Most clients send plain text.
	client, err := a.clients.Authenticate(basicID, basicSecret)
	if encodedID, encodedSecret := rest.DecodeForm(basicID), rest.DecodeForm(basicSecret); err != nil && (encodedID != basicID || encodedSecret != basicSecret) {
		client, err = a.clients.Authenticate(encodedID, encodedSecret)
	}
	if err != nil {
		return signin.Client{}, err
	}
	if secret != "" || id != "" && id != client.ID {
		return signin.Client{}, refuse(token.InvalidRequest, "the client proves itself in two ways: use HTTP Basic or the form")
	}
	return client, nil
}

// oauthError is a refusal in the form of RFC 6749, section 5.2.
type oauthError struct {
	*token.GrantError
	mfa string // opens the confirmation of a second step; "": none
}

func refuse(code, description string) error {
	return oauthError{GrantError: token.Refuse(code, description)}
}

// refusal turns errors of the domain into the form of this surface. Faults and internal
// errors keep their form, which also has error and error_description.
func refusal(err error) error {
	var step *signin.StepNeeded
	if errors.As(err, &step) {
		return oauthError{step.GrantError, step.Token}
	}
	var g *token.GrantError
	if errors.As(err, &g) {
		return oauthError{GrantError: g}
	}
	return err
}

func (e oauthError) Outcome() string { return e.Code }

func (e oauthError) Answer() (int, http.Header, any) {
	body := struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
		MFAToken    string `json:"mfa_token,omitempty"`
	}{e.Code, e.Description, e.mfa}
	header := http.Header{"Pragma": {"no-cache"}}
	switch e.Code {
	case token.InvalidClient:
		header.Set("WWW-Authenticate", `Basic realm="tamga"`)
		return http.StatusUnauthorized, header, body
	case loginRequired:
		return http.StatusUnauthorized, header, body
	}
	return http.StatusBadRequest, header, body
}
