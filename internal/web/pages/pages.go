// SPDX-License-Identifier: Apache-2.0

// Package pages serves what people see in a browser. Begin with [New], [API.Routes] and [API.Middleware].
//
// The pages are in a package for each area: sign, register, encryption, confirm, account, operator and reference. Package view has what they
// share. This package assembles them, and has the front page, the start page and the sessions.
//
// A page is a row of a table of routes: its address, its right, the function that gathers what it shows and its template.
// It passes the same steps as the operations of the interface (identity, right, audit entry, limits), and it calls the
// same services. The Middleware in front of the pages turns the cookie of a session into the access token that the steps
// read.
//
// The pages have no rules of their own and keep nothing. They work without scripts, which add progress to uploads, and
// ask again while something is under way.
package pages

import (
	"context"
	"embed"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/vault"
	"tamga/internal/web/pages/account"
	"tamga/internal/web/pages/confirm"
	"tamga/internal/web/pages/encryption"
	"tamga/internal/web/pages/operator"
	"tamga/internal/web/pages/pdfjs"
	"tamga/internal/web/pages/reference"
	"tamga/internal/web/pages/register"
	"tamga/internal/web/pages/shell"
	"tamga/internal/web/pages/sign"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/look"
)

// files are the templates and the words of the pages of this package.
//
//go:embed templates/*.html words/*/*.txt
var files embed.FS

func init() { view.Add("", files, nil) }

// SignedInPath is where the sign-in page sends the browser back to, below the public address.
const SignedInPath = "/signed-in"

// Identity signs people in; see [signin.Service].
type Identity interface {
	AuthorizePassword(ctx context.Context, login, password string, a signin.Authorization) (signin.Authorized, audit.Principal, error)
	CodeGrant(ctx context.Context, client signin.Client, r signin.CodeRequest) (token.Token, error)
}

// Sessions knows whose a session is and ends sign-ins; see [token.Service].
type Sessions interface {
	Authenticate(ctx context.Context, bearer string) (audit.Principal, error)
	SignOut(ctx context.Context, who audit.Principal) error
}

// Sealer seals the cookies; *vault.Ring satisfies it.
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}

// Settings are the rules of the pages.
type Settings struct {
	Name     string            // of the installation
	Language string            // of readers who want none that we have; see [rest.LanguageFor]
	Zone     *time.Location    // of readers whose browsers do not say theirs; nil: UTC
	ClientID string            // of the pages as an OpenID client of this installation
	Clients  map[string]string // names of other clients for people, by identifier; those without a name are missing
	Address  string            // public address, without a slash at the end
	IDP      string            // {idp_url}
	Resource string            // that the tokens of sessions are for
	Session  time.Duration     // longest session
	Idle     time.Duration     // longest time without a request in a session
	Trial    *Trial            // nil: people sign in with their passwords only
	Dev      bool              // serve --dev: there is a page of all components
}

// Trial lets a person who tries the program out sign in by a button.
type Trial struct {
	Token    string // printed at the start; a person who knows it may use the buttons
	Accounts []TrialAccount
}

// TrialAccount is a user that serve --dev made.
type TrialAccount struct{ Login, Password string }

// Deps lists what the pages call.
type Deps struct {
	Identity Identity
	Sessions Sessions
	Sealer   Sealer
	Now      func() time.Time
	Random   func() string // text that cannot be guessed
	Log      *slog.Logger  // nil: nothing is logged
	Waits    Waits

	// The areas. New sets what they have in common, and what this package does for them.
	Sign       sign.Deps
	Confirm    confirm.Deps
	Encryption encryption.Deps
	Account    account.Deps
	Operator   operator.Deps
	Reference  reference.Deps
	Register   register.Deps
}

// API serves the pages.
type API struct {
	settings Settings
	Deps

	headerFails atomic.Bool // the header of the last page could not be read

	sign       *sign.API
	confirm    *confirm.API
	encryption *encryption.API
	account    *account.API
	operator   *operator.API
	reference  *reference.API
	register   *register.API
}

// New returns the API. It panics if the description of the interface for operators is wrong.
func New(s Settings, d Deps) *API {
	a := &API{settings: s, Deps: d}
	clients := view.Clients{Own: s.ClientID, Names: s.Clients}
	d.Account.Now, d.Account.Clients, d.Account.SignedOut, d.Account.Renew = d.Now, clients, a.ended, a.begin
	a.account = account.New(d.Account)
	d.Sign.Now, d.Sign.ClientID, d.Sign.Address = d.Now, s.ClientID, s.Address
	d.Sign.Seal = func(v any) (string, error) { return a.seal(reportsName, v) }
	d.Sign.Open = func(sealed string, v any) bool { return a.open(reportsName, sealed, v) }
	a.sign = sign.New(d.Sign)
	d.Encryption.Now, d.Encryption.ClientID = d.Now, s.ClientID
	a.encryption = encryption.New(d.Encryption)
	d.Confirm.Now, d.Confirm.Clients, d.Confirm.Address, d.Confirm.Proved = d.Now, clients, s.Address, a.account.Proved
	a.confirm = confirm.New(d.Confirm)
	d.Operator.Now, d.Operator.Address = d.Now, s.Address
	a.operator = operator.New(d.Operator)
	d.Reference.Address = s.Address
	a.reference = reference.New(d.Reference)
	d.Register.Now, d.Register.Clients, d.Register.Verified = d.Now, clients, a.sign.VerifyCopies
	a.register = register.New(d.Register)
	return a
}

// Permit checks the rights of pages, for [rest.Gate].
func (a *API) Permit(ctx context.Context, who audit.Principal, right rest.Right, value func(name string) string) error {
	return a.operator.Permit(ctx, who, right, value)
}

// Client returns the pages as an OpenID client.
func (s Settings) Client() signin.Client {
	return signin.Client{ID: s.ClientID, Title: s.Name, Public: true, RedirectURIs: []string{s.Address + SignedInPath}, SessionLife: s.Session}
}

// Routes returns the pages. Each of them declares who may see it.
func (a *API) Routes() []rest.Route {
	routes := []rest.Route{
		view.Handle("GET /{$}", "FrontPage", rest.Anyone, a.front).Unaudited().Exact(),
		view.Handle("GET /start", "StartPage", rest.SignedIn, a.start),
		rest.Handle("GET /sign-in", "BeginSession", rest.Anyone, a.signIn).Unaudited().Answering(rest.Redirect{}),
		rest.Handle("GET "+SignedInPath, "SignedIn", rest.Anyone, a.signedIn).Answering(rest.Redirect{}),
		rest.Handle("GET "+view.WaitingPath, "FollowByPage", rest.SignedIn, a.follow).Answering(rest.Events{}),
		rest.Handle("POST /sign-out", "SignOut", rest.SignedIn, a.signOut).Answering(rest.Redirect{}),
		rest.Handle("POST /language", "ChooseLanguage", rest.Anyone, a.chooseLanguage).Unaudited().Answering(rest.Redirect{}),
	}
	if a.settings.Dev {
		routes = append(routes, view.Handle("GET /_/components", "ComponentsPage", rest.Anyone, a.components).Unaudited())
	}
	if a.settings.Trial != nil {
		routes = append(routes, rest.Handle("POST /try", "SignInToTry", rest.Anyone, a.try).Answering(rest.Redirect{}))
	}
	return slices.Concat(routes, look.Routes(), pdfjs.Routes(), a.sign.Routes(), a.encryption.Routes(), a.confirm.Routes(), a.account.Routes(), a.operator.Routes(), a.reference.Routes(), a.register.Routes(), shell.New(shell.Deps{Name: a.settings.Name}).Routes())
}

// Missing returns the route of all addresses that have no route. The address of a form leads to
// its page: browsers ask for it when a person opens the address again.
func (a *API) Missing() rest.Route {
	return rest.Handle("GET /{path...}", "MissingPage", rest.Anyone, func(ctx context.Context, _ struct{}) (rest.Redirect, error) {
		if path := view.VisitorOf(ctx).Path; pageOf(path) != path && view.Local(pageOf(path)) == pageOf(path) {
			return rest.Redirect{Location: pageOf(path), See: true}, nil
		}
		return rest.Redirect{}, fault.New(fault.NotFound, "there is no page at this address: check the address, or go on at the first page")
	}).Unaudited().Exact()
}
