// SPDX-License-Identifier: Apache-2.0

// Package shell makes the pages an app that a person can install: the manifest, the service worker, and the page that is
// shown without a network. Begin with [New] and [API.Routes].
//
// The service worker keeps the stylesheet, an icon and the pages of this package, which are the same for everybody. It keeps
// no other page, no document and no answer. It also shows the notifications that the push service of the browser brings.
package shell

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/look"
)

//go:embed templates/*.html words/*/*.txt
var files embed.FS

//go:embed worker.js
var workerScript string

func init() { view.Add("shell", files, nil) }

// Deps are what the pages need.
type Deps struct {
	Name string // of the installation
}

// API serves these pages.
type API struct{ Deps }

// New returns the API.
func New(d Deps) *API { return &API{d} }

// Routes returns these pages. They are the same for everybody, and say nothing about a person.
func (a *API) Routes() []rest.Route {
	routes := []rest.Route{
		rest.Handle("GET "+view.WorkerPath, "ServiceWorker", rest.Anyone, a.worker).Unaudited().Answering(rest.File{}),
		view.Handle("GET /offline/{language}", "OfflinePage", rest.Anyone, a.offline).Unaudited(),
		rest.Handle("GET "+view.ManifestPath+"{language}", "AppManifest", rest.Anyone, a.manifest).Unaudited().Answering(rest.File{}),
	}
	for _, icon := range look.AppIcons {
		routes = append(routes, icon.Route("AppIcon"))
	}
	return routes
}

// inLanguage is a request for a page of this package. The address has its language, since no cookie comes with it.
type inLanguage struct {
	Language string `path:"language"`
}

func (r inLanguage) words() (*view.Words, error) {
	for _, w := range view.Languages {
		if w.Language == r.Language {
			return w, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no page in this language")
}

// offline is the page that the service worker shows while the server is not reachable. It has no person, also for a
// request with a session, since it is kept.
func (a *API) offline(ctx context.Context, r inLanguage) (view.View, error) {
	w, err := r.words()
	if err != nil {
		return view.View{}, err
	}
	v := view.VisitorOf(ctx)
	v.Words, v.Session = w, view.Session{}
	return view.View{Template: "shell/offline", Title: "offline.title", Main: "text", Alone: true}, nil
}

// appManifest is the Web Application Manifest.
type appManifest struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	ShortName   string        `json:"short_name"`
	Description string        `json:"description"`
	Language    string        `json:"lang"`
	Direction   string        `json:"dir"`
	Start       string        `json:"start_url"`
	Scope       string        `json:"scope"`
	Display     string        `json:"display"`
	Theme       string        `json:"theme_color"`
	Background  string        `json:"background_color"`
	Icons       []appIcon     `json:"icons"`
	Shortcuts   []appShortcut `json:"shortcuts"`
}

type appIcon struct {
	Source  string `json:"src"`
	Sizes   string `json:"sizes"`
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
}

type appShortcut struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// manifest describes the app in one language. Its addresses are relative to its own, so that it is right below any path.
func (a *API) manifest(_ context.Context, r inLanguage) (rest.File, error) {
	w, err := r.words()
	if err != nil {
		return rest.File{}, err
	}
	m := appManifest{
		ID: "start", Name: a.Name, ShortName: a.Name, Description: w.Text("app.about"), Language: w.Language, Direction: "ltr",
		Start: "../start", Scope: "../", Display: "standalone", Theme: "#14418b", Background: "#ffffff",
		Shortcuts: []appShortcut{{w.Text("sign.title"), "../sign"}, {w.Text("confirm.title"), "../confirm"}, {w.Text("verify.title"), "../verify"}},
	}
	for _, icon := range look.AppIcons[1:] { // the first one is for a phone that reads no manifest
		for _, purpose := range []string{"any", "maskable"} {
			m.Icons = append(m.Icons, appIcon{".." + icon.Path, icon.Sizes, "image/png", purpose})
		}
	}
	text, err := json.Marshal(m)
	return rest.File{Content: bytes.NewReader(text), Type: "application/manifest+json"}, err
}

// workerNotes is what the service worker knows.
type workerNotes struct {
	Shell   []string          `json:"shell"` // that it keeps, relative to its scope
	Offline map[string]string `json:"offline"`
	Icon    string            `json:"icon"`
	Title   string            `json:"title"` // of a message that it cannot read
	Waits   map[string]string `json:"waits"` // its text
}

// worker is the service worker. Browsers ask for it again when a page is opened and at least once a day, and replace the one
// they have if a byte differs: the name of its cache is the digest of all that it has.
func (a *API) worker(context.Context, struct{}) (rest.File, error) {
	notes := workerNotes{Offline: map[string]string{}, Waits: map[string]string{}, Title: a.Name, Icon: strings.TrimPrefix(look.AppIcons[1].Path, "/")}
	notes.Shell = []string{strings.TrimPrefix(look.Style.Path, "/"), notes.Icon}
	for _, w := range view.Languages {
		page := "offline/" + w.Language
		notes.Shell = append(notes.Shell, page)
		notes.Offline[w.Language], notes.Waits[w.Language] = page, w.Text("app.waits")
	}
	text, err := json.Marshal(notes)
	if err != nil {
		return rest.File{}, err
	}
	sum := sha256.Sum256([]byte(workerScript + string(text)))
	script := "const version = \"tamga-" + hex.EncodeToString(sum[:8]) + "\"\nconst notes = " + string(text) + "\n" + workerScript
	return rest.File{
		Content: strings.NewReader(script), Type: "text/javascript; charset=utf-8",
		Policy: "default-src 'none'; connect-src 'self'; img-src 'self'",
	}, nil
}
