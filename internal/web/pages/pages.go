// SPDX-License-Identifier: Apache-2.0

// Package pages serves what people see in a browser: start, sign, verify, and the state of
// what they signed. Begin with [New], [API.Routes] and [API.Middleware].
//
// A page is a row of the table in [API.Routes]: its address, its right, the function that gathers
// what it shows and its template. It passes the same steps as the operations of the interface
// (identity, right, audit entry, limits), and it calls the same services. The Middleware in front
// of the pages turns the cookie of a session into the access token that the steps read.
//
// The package has no rules of its own and keeps nothing. A page works without scripts: the
// only one adds progress to uploads.
package pages

import (
	"context"
	"embed"
	"io/fs"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
	"tamga/internal/domain/vault"
	"tamga/internal/web/pages/pdfjs"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// files are the templates and the words of the pages of this package.
//
//go:embed templates/*.html words/*/*.txt
var files embed.FS

// areaFiles are those of the areas.
//
//go:embed account confirm operator reference sign
var areaFiles embed.FS

func ofArea(area string) fs.FS {
	files, err := fs.Sub(areaFiles, area)
	if err != nil {
		panic(err)
	}
	return files
}

var (
	_ = view.Add("", files, nil)
	_ = view.Add("account", ofArea("account"), nil)
	_ = view.Add("confirm", ofArea("confirm"), nil)
	_ = view.Add("operator", ofArea("operator"), functions)
	_ = view.Add("reference", ofArea("reference"), nil)
	_ = view.Add("sign", ofArea("sign"), nil)
)

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

// Operations signs; see [signing.Operations].
type Operations interface {
	Start(ctx context.Context, who audit.Principal, o *signing.OperationOrder) (*operation.Operation, error)
	Find(ctx context.Context, who audit.Principal, id string) (*operation.Operation, error)
}

// Documents stores what is signed and what was signed; see [document.Service].
type Documents interface {
	NewIntake(ctx context.Context, who audit.Principal) (*document.Intake, error)
	Keep(ctx context.Context, who audit.Principal, documents []document.New) ([]document.Info, error)
	Open(ctx context.Context, who audit.Principal, id string) (*document.Stored, error)
	Newest(ctx context.Context, who audit.Principal, older document.Position, n int) ([]document.Info, error)
	Info(ctx context.Context, who audit.Principal, id string) (document.Info, error)
	Patch(ctx context.Context, who audit.Principal, id string, c document.Change) error
	Delete(ctx context.Context, who audit.Principal, id string) error
}

// Verifier verifies documents; see [signing.Verification].
type Verifier interface {
	NewIntake(ctx context.Context, who audit.Principal) (*signing.Intake, error)
	// TypeOf returns the type of signature that a file has, "" for a file without one.
	TypeOf(content *signing.Intake) (string, error)
	Verify(ctx context.Context, o *signing.VerifyOrder) ([]signing.SignatureReport, error)
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
	ClientID string            // of the pages as an OpenID client of this installation
	Clients  map[string]string // names of other clients for people, by identifier; those without a name are missing
	Address  string            // public address, without a slash at the end
	IDP      string            // {idp_url}
	Resource string            // that the tokens of sessions are for
	Session  time.Duration     // longest session
	Idle     time.Duration     // longest time without a request in a session
	Upload   int64             // largest body of an upload, in bytes
	Verify   int64             // largest body of a verification, in bytes
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
	Identity     Identity
	Sessions     Sessions
	Operations   Operations
	Forms        []signing.Form // the ways to sign that are offered
	Certificates view.Certificates
	Documents    Documents
	// TSPServices are the time-stamp services that may be used.
	TSPServices func(ctx context.Context) ([]policy.TSPService, error)
	Verifier    Verifier                  // nil: the pages verify nothing
	Admit       func(remote string) error // refuses an address that verifies too often
	// PDF prints a document for people. It is needed with a Verifier.
	PDF    func(language, title string, at time.Time, lines []Line) ([]byte, error)
	Sealer Sealer
	Now    func() time.Time
	Random func() string // text that cannot be guessed
	// Operators are the services of the operators' pages.
	Operators OperatorServices
	Trials    Trials

	ConfirmDeps
	CertificateDeps
	AccountDeps
	DeviceDeps
}

// API serves the pages.
type API struct {
	settings Settings
	Deps

	commandGroups  []commandGroup
	commandsByName map[string]*command
	reference      *openAPI
}

// New returns the API. It panics if the description of the interface for operators is wrong.
func New(s Settings, d Deps) *API {
	a := &API{settings: s, Deps: d, commandsByName: map[string]*command{}}
	var err error
	if a.reference, err = readOpenAPI(d.Operators.Description); err != nil {
		panic(err)
	}
	a.commandGroups = a.commands()
	for _, g := range a.commandGroups {
		for i := range g.list {
			a.commandsByName[g.list[i].name] = &g.list[i]
		}
	}
	return a
}

func (a *API) clients() view.Clients {
	return view.Clients{Own: a.settings.ClientID, Names: a.settings.Clients}
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
		view.Handle("GET /sign", "SignPage", rest.SignedIn, a.signForm),
		rest.HandleDocuments("POST /sign", "SignByPage", rest.SignedIn, a.Documents.NewIntake, a.sign).Answering(rest.Redirect{}).AtMost(a.settings.Upload),
		view.Handle("GET /signed", "SignedPage", rest.SignedIn, a.signed),
		rest.Handle("GET /signed/document/{ref}", "DownloadSigned", rest.SignedIn, a.download).Answering(rest.File{}),
		rest.Handle("GET /signed/all.zip", "DownloadAllSigned", rest.SignedIn, a.downloadAll).Answering(rest.File{}),
		rest.Handle("GET /sign-in", "BeginSession", rest.Anyone, a.signIn).Unaudited().Answering(rest.Redirect{}),
		rest.Handle("GET "+SignedInPath, "SignedIn", rest.Anyone, a.signedIn).Answering(rest.Redirect{}),
		rest.Handle("POST /sign-out", "SignOut", rest.SignedIn, a.signOut).Answering(rest.Redirect{}),
		rest.Handle("POST /language", "ChooseLanguage", rest.Anyone, a.chooseLanguage).Unaudited().Answering(rest.Redirect{}),
	}
	if a.Verifier != nil {
		routes = append(routes,
			view.Handle("GET /verify", "VerifyPage", rest.Anyone, a.verifyForm).Unaudited(),
			rest.HandleDocuments("POST /verify", "VerifyByPage", rest.Anyone, a.Verifier.NewIntake, a.verify).Guarded(a.Admit).AtMost(a.settings.Verify).Answering(rest.Page{}, rest.File{}),
		)
	}
	routes = append(routes, a.personRoutes()...)
	if a.settings.Dev {
		routes = append(routes, view.Handle("GET /_/components", "ComponentsPage", rest.Anyone, a.components).Unaudited())
	}
	if a.settings.Trial != nil {
		routes = append(routes, rest.Handle("POST /try", "SignInToTry", rest.Anyone, a.try).Answering(rest.Redirect{}))
	}
	return slices.Concat(routes, pdfjs.Routes(), a.operatorRoutes(), a.referenceRoutes())
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
