// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/vault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Names of the cookies. Under TLS they have the prefix that keeps other hosts of the domain
// from setting them (RFC 6265bis, section 4.1.3.2).
const (
	sessionCookie  = "tamga-session"
	beginCookie    = "tamga-session-begin"
	languageCookie = "tamga-language"
	maxCookie      = 4 << 10 // bytes
	// reportsName is the name under which reports of a verification are sealed. They are in a page, and in no cookie.
	reportsName = "tamga-reports"
)

const (
	// renewAfter is the age at which the cookie of a session is written again.
	renewAfter = time.Minute
	// beginLife is how long a person may take to sign in.
	beginLife = 10 * time.Minute
)

// begun is the content of the cookie of a browser that was sent to the sign-in page.
type begun struct {
	State, Verifier string
	To              string // the page to go on at
	Ends            int64  // Unix seconds
}

func (a *API) secure() bool { return strings.HasPrefix(a.settings.Address, "https:") }

func (a *API) cookieName(name string) string {
	if a.secure() {
		return "__Host-" + name
	}
	return name
}

// cookie returns a cookie for this site alone. age is in seconds; below 0 deletes it.
func (a *API) cookie(name, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: a.cookieName(name), Value: value, Path: "/", MaxAge: age, Secure: a.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// cookieOf returns the value of a cookie of ours in a header Cookie, "" for none.
func cookieOf(header, name string) string {
	value := rest.CookieOf(header, name)
	if len(value) > maxCookie {
		return ""
	}
	return value
}

func place(name string) vault.Place {
	return vault.Place{Purpose: "page", Table: "cookie", Row: name, Column: "value"}
}

// seal returns the value of a cookie that only this installation can read.
func (a *API) seal(name string, v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sealed, err := a.Sealer.Seal(place(name), plain)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// open reads a sealed cookie and reports whether there was one.
func (a *API) open(name, value string, v any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || value == "" {
		return false
	}
	plain, err := a.Sealer.Open(place(name), sealed)
	return err == nil && json.Unmarshal(plain, v) == nil
}

// openSession returns the session of a header Cookie, if it was used in time.
func (a *API) openSession(header string) (s view.Session, ok bool) {
	if !a.open(sessionCookie, cookieOf(header, a.cookieName(sessionCookie)), &s) {
		return view.Session{}, false
	}
	age := a.Now().Sub(time.Unix(s.Seen, 0))
	return s, age < a.settings.Idle
}

// renew writes the cookie of a session again when it is older than renewAfter.
func (a *API) renew(w http.ResponseWriter, s view.Session) {
	if a.Now().Sub(time.Unix(s.Seen, 0)) < renewAfter {
		return
	}
	if c, err := a.begin(s); err == nil {
		http.SetCookie(w, c)
	}
}

// begin returns the cookie of a session that is used now.
func (a *API) begin(s view.Session) (*http.Cookie, error) {
	s.Seen = a.Now().Unix()
	value, err := a.seal(sessionCookie, s)
	return a.cookie(sessionCookie, value, int(a.settings.Session.Seconds())), err
}

// signIn sends the browser to the sign-in page with a request of its own (OpenID Connect,
// authorization code with PKCE).
func (a *API) signIn(ctx context.Context, r struct {
	To string `query:"to"`
}) (rest.Redirect, error) {
	b := begun{State: a.Random(), Verifier: a.Random() + a.Random(), To: view.Local(r.To), Ends: a.Now().Add(beginLife).Unix()}
	if len(b.To) > 1024 {
		b.To = "/start"
	}
	value, err := a.seal(beginCookie, b)
	if err != nil {
		return rest.Redirect{}, err
	}
	query := url.Values{
		"response_type": {"code"}, "client_id": {a.settings.ClientID}, "redirect_uri": {a.redirectURI()}, "resource": {a.settings.Resource},
		"state": {b.State}, "code_challenge": {challenge(b.Verifier)}, "code_challenge_method": {"S256"},
		"ui_locales": {view.VisitorOf(ctx).Words.Language},
	}
	return rest.Redirect{Location: a.settings.IDP + "/oauth/authorize?" + query.Encode(), See: true, Cookie: a.cookie(beginCookie, value, int(beginLife.Seconds()))}, nil
}

func (a *API) redirectURI() string { return a.settings.Address + SignedInPath }

// challenge returns the challenge of a verifier (RFC 7636, 4.2).
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// signedIn begins the session of a browser that returns from the sign-in page.
func (a *API) signedIn(ctx context.Context, r struct {
	Cookie string `header:"Cookie"`
	Code   string `query:"code"`
	State  string `query:"state"`
	Error  string `query:"error"`
}) (rest.Redirect, error) {
	var b begun
	if !a.open(beginCookie, cookieOf(r.Cookie, a.cookieName(beginCookie)), &b) || a.Now().Unix() >= b.Ends ||
		subtle.ConstantTimeCompare([]byte(b.State), []byte(r.State)) != 1 {
		return rest.Redirect{}, fault.New(fault.AccessDenied, "this sign-in has ended or was begun in another window: sign in again")
	}
	if r.Error != "" {
		return rest.Redirect{}, fault.Newf(fault.AccessDenied, "the sign-in was refused: %.64s", r.Error)
	}
	return a.enter(ctx, r.Code, b.Verifier, b.To)
}

// enter exchanges a code for the token of a session and goes on at a page.
func (a *API) enter(ctx context.Context, code, verifier, to string) (rest.Redirect, error) {
	t, err := a.Identity.CodeGrant(ctx, a.settings.Client(), signin.CodeRequest{Code: code, RedirectURI: a.redirectURI(), Verifier: verifier})
	if err != nil {
		return rest.Redirect{}, refusal(err)
	}
	who := audit.Principal{UserID: t.UserID, ClientID: a.settings.ClientID}
	if known, err := a.Sessions.Authenticate(ctx, t.AccessToken); err == nil {
		who = known // with the login
	}
	rest.Identified(ctx, who)
	zone, err := a.Account.People.TimeZone(ctx, who.UserID)
	if err != nil {
		return rest.Redirect{}, err
	}
	cookie, err := a.begin(view.Session{Token: t.AccessToken, Zone: zone})
	return rest.Redirect{Location: to, See: true, Cookie: cookie}, err
}

// refusal turns a refusal of the sign-in into a fault.
func refusal(err error) error {
	var g *token.GrantError
	if errors.As(err, &g) {
		return fault.New(fault.AccessDenied, g.Description).With(err)
	}
	return err
}

// try signs a person in who tries the program out. The token in the form is the one that
// the program printed at its start.
func (a *API) try(ctx context.Context, r struct{ Body rest.Form }) (rest.Redirect, error) {
	trial := a.settings.Trial
	if subtle.ConstantTimeCompare([]byte(r.Body.Get("token")), []byte(trial.Token)) != 1 {
		return rest.Redirect{}, fault.New(fault.AccessDenied, "open the address that tamga serve --dev printed: it holds the permission to use these buttons")
	}
	for _, account := range trial.Accounts {
		if account.Login != r.Body.Get("login") {
			continue
		}
		verifier := a.Random() + a.Random()
		issued, _, err := a.Identity.AuthorizePassword(ctx, account.Login, account.Password, signin.Authorization{
			Client: a.settings.Client(), RedirectURI: a.redirectURI(), Resource: a.settings.Resource, Challenge: challenge(verifier),
		})
		if err != nil {
			return rest.Redirect{}, refusal(err)
		}
		return a.enter(ctx, issued.Code, verifier, "/start")
	}
	return rest.Redirect{}, fault.New(fault.AccessDenied, "there is no such account to try")
}

// signOut ends the sign-in of the session, and with it everything that came from it.
func (a *API) signOut(ctx context.Context, _ struct{}) (rest.Redirect, error) {
	if err := a.Sessions.SignOut(ctx, rest.Caller(ctx)); err != nil {
		return rest.Redirect{}, err
	}
	return a.ended("sign_out"), nil
}

// ended leads a browser without its session to the front page. form is what ended the session.
func (a *API) ended(form string) rest.Redirect {
	return rest.Redirect{Location: "/?done=" + form, See: true, Cookie: a.cookie(sessionCookie, "", -1)}
}

// chooseLanguage remembers a language in the browser.
func (a *API) chooseLanguage(_ context.Context, r struct{ Body rest.Form }) (rest.Redirect, error) {
	to := view.Local(r.Body.Get("to"))
	for _, w := range view.Languages {
		if w.Language == r.Body.Get("language") {
			c := a.cookie(languageCookie, w.Language, 365*24*3600)
			c.Name = languageCookie // no secret: any host may set it
			return rest.Redirect{Location: to, See: true, Cookie: c}, nil
		}
	}
	return rest.Redirect{Location: to, See: true}, nil
}
