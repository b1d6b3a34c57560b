// SPDX-License-Identifier: Apache-2.0

// Package view has what the pages of all areas share: the frame around a page, the parts that templates are made of, the
// texts in each language, and the visitor of a request. Begin with [View], [Handle] and [VisitorOf].
//
// An area is a package beside this one. It adds its templates and its texts with [Add], and gets its services from package
// pages. This package has no routes and calls no services but those that a page gives it.
package view

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"html/template"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"tamga/internal/domain/audit"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/look"
)

// shared are the templates and the words that all areas share.
//
//go:embed templates/*.html words/*/*.txt
var shared embed.FS

// WaitScript loads the page again when what it waits for has happened.
//
//go:embed wait.js
var WaitScript string

// UploadScript sends the form of an upload, with its progress, and keeps the form if it is refused.
//
//go:embed upload.js
var UploadScript string

// DropScript makes a whole zone take files, and sends its form when a file is there.
//
//go:embed drop.js
var DropScript string

// workerPart has the browser keep the service worker of package shell. It is on every page: a person may open any page first.
//
//go:embed worker.js
var workerPart string

// Addresses of package shell.
const (
	WorkerPath   = "/service-worker.js"
	ManifestPath = "/manifest/" // and a language
)

// View is what a page shows: the template and its content.
type View struct {
	Template string   // AREA/NAME; see [Add]
	Title    string   // key of the title
	About    string   // before the title in the name of the window, where many pages have the same title; "": nothing
	Script   string   // "": none
	Modules  []string // addresses of scripts that the script may load: its modules and their worker
	Pictures []string // addresses of pictures of the page, or what they begin with
	Content  any

	Main   string  // classes of the main part, such as "text" for a narrow column; see tamga.css
	Alone  bool    // the page asks for one answer, so a phone has no list of pages below it
	Failed bool    // something was refused, so the page has the number of the request
	Side   []Group // the list of pages beside this one; nil: none
}

// Group is a part of the list of pages beside a page.
type Group struct {
	Key  string // of its title
	Tabs []Tab
}

// Handle makes a route of a function that returns a view.
func Handle[Req any](pattern, name string, right rest.Right, f func(context.Context, Req) (View, error)) rest.Route {
	return rest.Handle(pattern, name, right, func(ctx context.Context, r Req) (rest.Page, error) {
		v, err := f(ctx, r)
		if err != nil {
			return rest.Page{}, err
		}
		return v.Render(ctx)
	}).Answering(rest.Page{})
}

// frame is what surrounds every page.
type frame struct {
	View
	Words    *Words
	Style    string // address
	Favicon  template.URL
	Manifest string // address
	AppIcon  string // address
	Script   template.JS
	Brand    string // name of the installation
	Title    string
	Login    string // of the person, "" without a session
	Name     string // of the person
	Initials string
	Tabs     []Tab
	Menu     []Tab  // in the menu of the person
	Here     string // address of this page with its query, for the switch of the language
	Request  string // id of the request
}

// Tab is an entry of a list of pages.
type Tab struct {
	Address, Key string // Key is that of its text
	Icon         string
	Here         bool // the person is on this page, or on one below it
	Rest         bool // a phone has no place for it
	Waits             // there
}

// Waits is how many wait: N, or more.
type Waits struct {
	N    int
	More bool // there are more than N, or may be
}

// String returns the number for people, "5" or "99+".
func (w Waits) String() string {
	if w.More {
		return strconv.Itoa(w.N) + "+"
	}
	return strconv.Itoa(w.N)
}

// At returns the tab for a visitor at a path.
func (t Tab) At(path string) Tab {
	t.Here = path == t.Address || strings.HasPrefix(path, t.Address+"/")
	return t
}

// tabsFor returns the pages that the header leads to, and those of the menu of a person.
func tabsFor(v *Visitor, who audit.Principal, waiting Waits) (shown, menu []Tab) {
	signedIn := who.Login != ""
	add := func(to *[]Tab, when bool, t Tab) {
		if when {
			*to = append(*to, t.At(v.Path))
		}
	}
	add(&shown, signedIn, Tab{Address: "/sign", Key: "sign.title", Icon: "sign"})
	add(&shown, signedIn, Tab{Address: "/confirm", Key: "confirm.title", Icon: "confirm", Waits: waiting})
	add(&shown, v.Verifies, Tab{Address: "/verify", Key: "verify.title", Icon: "verify"})
	add(&shown, signedIn, Tab{Address: "/signatures", Key: "signatures.title", Icon: "register"})
	certificates := Tab{Address: "/certificates", Key: "certificates.title", Icon: "certificate", Rest: true}
	add(&shown, signedIn, certificates)
	office := Tab{Address: "/operator", Key: "operator.title", Icon: "users", Rest: true}
	add(&shown, who.Operator, office)
	reference := Tab{Address: "/reference", Key: "frame.interface", Icon: "code"}
	add(&shown, !signedIn, reference)

	add(&menu, true, certificates)
	add(&menu, true, Tab{Address: "/encrypt", Key: "frame.encrypt", Icon: "lock"})
	add(&menu, true, Tab{Address: "/decrypt", Key: "frame.decrypt", Icon: "unlock"})
	add(&menu, true, Tab{Address: "/documents", Key: "documents.title", Icon: "file"})
	add(&menu, true, Tab{Address: "/devices", Key: "devices.title", Icon: "phone"})
	add(&menu, true, Tab{Address: "/account", Key: "account.title", Icon: "user"})
	add(&menu, true, Tab{Address: "/account/history", Key: "account.history", Icon: "history"})
	add(&menu, who.Operator, office)
	add(&menu, true, reference)
	return shown, menu
}

// Initials returns the letters of the sign of a person: those that two words of a name begin with, or the first two of a
// login.
func Initials(name string) string {
	words := strings.Fields(name)
	if len(words) > 1 {
		words = []string{firstLetters(words[0], 1), firstLetters(words[1], 1)}
	} else {
		words = []string{firstLetters(name, 2)}
	}
	return strings.ToUpper(strings.Join(words, ""))
}

func firstLetters(word string, most int) string {
	runes := []rune(word)
	return string(runes[:min(most, len(runes))])
}

// Render makes the page in the language of the visitor.
func (v View) Render(ctx context.Context) (rest.Page, error) {
	visitor, who := VisitorOf(ctx), CallerOf(ctx)
	w := visitor.Words
	f := frame{
		View: v, Words: w, Brand: visitor.Brand, Style: look.Style.Path, Favicon: look.Favicon, Manifest: ManifestPath + w.Language, AppIcon: look.AppIcons[0].Path, Script: template.JS(v.script()), Title: w.Text(v.Title), Login: who.Login,
		Name: who.Login, Here: visitor.Here, Request: rest.RequestID(ctx),
	}
	var about About
	if who.UserID != "" && who.Login != "" && visitor.Person != nil {
		about = visitor.Person(ctx, who)
		f.Name = cmp.Or(Visible(strings.Join(strings.Fields(about.Name), " ")), who.Login)
	}
	for _, g := range f.Side {
		for i := range g.Tabs {
			g.Tabs[i].Waits = about.Office[g.Tabs[i].Address]
		}
	}
	f.Initials = Initials(f.Name)
	f.Tabs, f.Menu = tabsFor(visitor, who, about.Waiting)
	var text bytes.Buffer
	err := w.templates[v.Template]().ExecuteTemplate(&text, "frame", f)
	return rest.Page{Content: bytes.NewReader(w.timesIn(text.Bytes())), Policy: v.policy(visitor.Address)}, err
}

// Add adds an area of pages: its templates, templates/NAME.html of files, as AREA/NAME, and its words,
// words/LANGUAGE/NAME.txt. Its templates may use the parts of its file templates/parts.html, and functions besides
// those of all pages. The package of an area calls Add while the program starts. The pages of area "" have no folder in
// their names.
func Add(area string, files fs.FS, functions func(w *Words) template.FuncMap) {
	for _, w := range Languages {
		w.read(files)
		w.parse(area, files, functions)
	}
}

// parse adds functions that parse the pages of an area, by their names. A page is parsed for each language, because
// the functions of a template are bound when it is parsed, and when it is first shown: all of them take 9 MiB and a
// fifth of the time of a start.
func (w *Words) parse(area string, from fs.FS, functions func(w *Words) template.FuncMap) {
	common := sync.OnceValue(func() *template.Template {
		marking := *w
		marking.marks = true
		t := template.New("").Funcs(marking.functions())
		if functions != nil {
			t.Funcs(functions(&marking))
		}
		template.Must(t.ParseFS(shared, "templates/frame.html", "templates/parts.html"))
		if _, err := fs.Stat(from, "templates/parts.html"); err == nil {
			template.Must(t.ParseFS(from, "templates/parts.html"))
		}
		return t
	})
	list, err := fs.Glob(from, "templates/*.html")
	if err != nil {
		panic(err)
	}
	for _, file := range list {
		if name := strings.TrimSuffix(path.Base(file), ".html"); name != "frame" && name != "parts" {
			w.templates[path.Join(area, name)] = sync.OnceValue(func() *template.Template {
				return template.Must(template.Must(common().Clone()).ParseFS(from, file))
			})
		}
	}
}

// Templates returns functions that parse the pages of all areas, by their names.
func (w *Words) Templates() map[string]func() *template.Template { return w.templates }

// script is the script of the page and those of every page, which say in which time zone the reader is and keep the
// service worker.
func (v View) script() string { return v.Script + zoneScript + workerPart }

// policy allows a page our stylesheet, pictures in the page itself, its script, forms to this server and what makes it an
// app. address is that of the installation. The content of a
// page comes from untrusted parties, so nothing else is allowed.
func (v View) policy(address string) string {
	p := "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; style-src 'self'; img-src data:"
	for _, icon := range look.AppIcons { // that an app is installed with
		p += " " + address + icon.Path
	}
	for _, address := range v.Pictures {
		p += " " + address
	}
	p += "; manifest-src " + address + ManifestPath
	p += "; script-src " + rest.ContentHash(v.script())
	if v.Script != "" {
		p += "; connect-src 'self'"
	}
	workers := "; worker-src " + address + WorkerPath
	if len(v.Modules) > 0 {
		from := strings.Join(v.Modules, " ")
		p += "; script-src-elem " + rest.ContentHash(v.script()) + " " + from
		workers += " " + from
	}
	return p + workers
}
