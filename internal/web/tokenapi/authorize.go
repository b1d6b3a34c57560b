// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// Paths of a sign-in by browser, below {idp_url}.
const (
	authorizePath = "/oauth/authorize"
	loginPath     = "/oauth/login"
)

// maxState is the longest state of a client, in bytes.
const maxState = 2048

// visit is what the request of a browser holds.
type visit struct {
	Authorization string    `header:"Authorization"`
	Cookie        string    `header:"Cookie"`
	Languages     string    `header:"Accept-Language"`
	Site          string    `header:"Sec-Fetch-Site"`
	Accept        string    `header:"Accept"`
	Body          rest.Form `many:"*"`
}

// authorizeParameters must not occur twice (RFC 6749, section 3.1).
var authorizeParameters = []string{
	"response_type", "response_mode", "client_id", "redirect_uri", "scope", "resource", "state", "nonce", "login_hint", "prompt",
	"code_challenge", "code_challenge_method", "request", "request_uri", "ui_locales",
}

// authorize begins a sign-in by browser (RFC 6749, sections 4.1.1 and 4.2.1). It answers
// with the login page, or at once if the request has an access token. Until the client and
// the address are known to belong together, a refusal is answered here and not sent to the
// address.
func (a *API) authorize(ctx context.Context, r visit) (any, error) {
	for _, name := range authorizeParameters {
		if len(r.Body[name]) > 1 {
			return nil, refuse(token.InvalidRequest, name+" is given more than once")
		}
	}
	p := signin.Pending{
		ClientID: r.Body.Get("client_id"), RedirectURI: r.Body.Get("redirect_uri"), ResponseType: r.Body.Get("response_type"),
		Scope: r.Body.Get("scope"), Resource: r.Body.Get("resource"), State: r.Body.Get("state"), Nonce: r.Body.Get("nonce"),
		Challenge: r.Body.Get("code_challenge"),
	}
	request, err := a.requestOf(p)
	if err != nil {
		return nil, refusal(err)
	}
	rest.Claimed(ctx, audit.Principal{ClientID: request.Client.ID})
	if err := a.acceptable(r.Body, p, request); err != nil {
		return goBack(ctx, p, refusal(err), false)
	}
	if token := bearerOf(r.Authorization); token != "" {
		issued, who, err := a.identity.AuthorizeBearer(ctx, token, request)
		if err != nil {
			return nil, refusal(err) // the caller is a program, which reads it here
		}
		who.ClientID = request.Client.ID
		rest.Identified(ctx, who)
		return forward(p, issued, false), nil
	}
	if slices.Contains(strings.Fields(r.Body.Get("prompt")), "none") {
		return goBack(ctx, p, refuse(loginRequired, "the user must sign in"), false)
	}
	browser, err := a.identity.NewBrowser()
	if err != nil {
		return nil, err
	}
	ticket, err := a.identity.SealTicket(p, browser, signin.StepLogin)
	if err != nil {
		return nil, err
	}
	page, err := a.loginPage(ctx, r, p, ticket, r.Body.Get("login_hint"), "")
	page.Cookie = a.cookie(browser)
	return page, err
}

// requestOf returns the client of a request. Its refusals must not be sent to the address
// of the client.
func (a *API) requestOf(p signin.Pending) (signin.Authorization, error) {
	client, known := a.clients.Find(p.ClientID)
	if !known {
		return signin.Authorization{}, refuse(token.InvalidClient, "client_id is missing or unknown")
	}
	request := signin.Authorization{
		Client: client, RedirectURI: p.RedirectURI, Scope: p.Scope, Resource: p.Resource, Nonce: p.Nonce,
		Challenge: p.Challenge, Direct: p.ResponseType == "token",
	}
	return request, request.Check()
}

// acceptable returns refusals that the client itself must get.
func (a *API) acceptable(form rest.Form, p signin.Pending, request signin.Authorization) error {
	mode := form.Get("response_mode")
	method := form.Get("code_challenge_method")
	switch {
	case p.ResponseType != "code" && p.ResponseType != "token":
		return refuse(unsupportedResponseType, "response_type: want code or token")
	case mode != "" && mode != map[bool]string{false: "query", true: "fragment"}[request.Direct]:
		return refuse(token.InvalidRequest, "response_mode: want query with code, fragment with token")
	case form.Get("request") != "":
		return refuse("request_not_supported", "request objects are not served here")
	case form.Get("request_uri") != "":
		return refuse("request_uri_not_supported", "request objects are not served here")
	case len(p.State) > maxState:
		return refuse(token.InvalidRequest, "state: want at most "+strconv.Itoa(maxState)+" bytes")
	case p.Challenge != "" && method != "S256" || p.Challenge == "" && method != "":
		return refuse(token.InvalidRequest, "code_challenge_method: want S256 with a code_challenge")
	case !request.Direct && p.Challenge == "" && request.NeedsChallenge():
		return refuse(token.InvalidRequest, "code_challenge: a client without a secret must send one (RFC 7636, S256)")
	}
	return a.identity.CheckRequest(request)
}

// login reads the form of the login page.
func (a *API) login(ctx context.Context, r visit) (any, error) {
	if r.Site == "cross-site" {
		return nil, fault.New(fault.AccessDenied, "the form was sent by another site")
	}
	for _, name := range []string{"ticket", "login", "password"} {
		if len(r.Body[name]) > 1 {
			return nil, refuse(token.InvalidRequest, name+" is given more than once")
		}
	}
	ticket := r.Body.Get("ticket")
	p, err := a.identity.OpenTicket(ticket, a.browserOf(r.Cookie), signin.StepLogin)
	if err != nil {
		return a.ended(ctx, r, err)
	}
	request, err := a.requestOf(p)
	if err != nil {
		return nil, refusal(err) // the configuration changed meanwhile
	}
	rest.Claimed(ctx, audit.Principal{ClientID: request.Client.ID})
	login := r.Body.Get("login")
	// A browser cannot prove the secret of its client.
	attempt, err := a.attempt(ctx, request.Client, false, login)
	if err != nil {
		return a.tryLater(ctx, r, p, ticket, login, err)
	}
	issued, who, err := a.identity.AuthorizePassword(attempt, login, r.Body.Get("password"), request)
	var g *token.GrantError
	switch {
	case fault.Is(err, fault.TooManyRequests):
		return a.tryLater(ctx, r, p, ticket, login, err)
	case errors.As(err, &g) && (g.Code == token.InvalidGrant || g.Code == token.SecondStepNeeded):
		return a.tryAgain(ctx, r, p, ticket, login, g)
	case err == nil:
		a.succeeded(ctx)
	}
	if err == nil && issued.Step != nil {
		rest.Identified(ctx, who)
		return a.beginStep(ctx, r, p, request, *issued.Step, true)
	}
	return a.finish(ctx, p, request, issued, who, err, true)
}

// finish sends the browser back to the application.
func (a *API) finish(ctx context.Context, p signin.Pending, request signin.Authorization, issued signin.Authorized, who audit.Principal, err error, posted bool) (any, error) {
	if err != nil {
		var g *token.GrantError
		if errors.As(err, &g) {
			return goBack(ctx, p, refusal(err), posted)
		}
		return nil, err
	}
	who.ClientID = request.Client.ID
	rest.Identified(ctx, who)
	return forward(p, issued, posted), nil
}

// forward returns the address with what was issued. code is the first parameter, and the
// only one unless the client sent a state.
func forward(p signin.Pending, issued signin.Authorized, posted bool) rest.Redirect {
	if p.ResponseType == "token" {
		t := issued.Token
		return back(p, posted, "access_token", t.AccessToken, "token_type", "Bearer",
			"expires_in", strconv.FormatInt(int64(t.ExpiresIn.Seconds()), 10), "scope", t.Scope)
	}
	return back(p, posted, "code", issued.Code)
}

// goBack sends a refusal to the address of the client (RFC 6749, section 4.1.2.1). A client
// without an address reads the answer itself and would take the refusal for a code, so it
// is answered here.
func goBack(ctx context.Context, p signin.Pending, err error, posted bool) (any, error) {
	var g *token.GrantError
	var own oauthError
	if errors.As(err, &own) {
		g = own.GrantError
	}
	if g == nil || p.RedirectURI == signin.RedirectOutOfBand {
		return nil, err
	}
	rest.Refused(ctx, g.Code)
	return back(p, posted, "error", g.Code, "error_description", g.Description), nil
}

// back returns the address of the client with parameters (names and values in turn) in the
// query, or for a token in the fragment. Authorization.Check has checked the address.
func back(p signin.Pending, posted bool, parameters ...string) rest.Redirect {
	to := p.RedirectURI
	separator := "?"
	switch {
	case p.ResponseType == "token":
		separator = "#"
	case strings.Contains(to, "?"):
		separator = "&"
	}
	for i := 0; i+1 < len(parameters); i += 2 {
		if parameters[i+1] == "" {
			continue
		}
		to += separator + parameters[i] + "=" + url.QueryEscape(parameters[i+1])
		separator = "&"
	}
	if p.State != "" {
		to += "&state=" + url.QueryEscape(p.State)
	}
	return rest.Redirect{Location: to, See: posted}
}

// cookie binds a sign-in to its browser. It is Lax, because the browser must send it when
// it returns from another provider.
func (a *API) cookie(browser string) *http.Cookie {
	secure := strings.HasPrefix(a.issuer, "https:")
	return &http.Cookie{
		Name: a.cookieName(), Value: browser, Path: "/", MaxAge: 600, Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// cookieName has the prefix that keeps other hosts of the domain from setting it (RFC
// 6265bis, section 4.1.3.2), where that is possible.
func (a *API) cookieName() string {
	if strings.HasPrefix(a.issuer, "https:") {
		return "__Host-tamga-sign-in"
	}
	return "tamga-sign-in"
}

// browserOf returns the value of our cookie, "" for none or more than one.
func (a *API) browserOf(header string) string { return rest.CookieOf(header, a.cookieName()) }
