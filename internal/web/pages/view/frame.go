// SPDX-License-Identifier: Apache-2.0

// Package view has what the pages of all areas share: the frame around a page, the parts that templates are made of, the
// texts in each language, and the visitor of a request. Begin with [View], [Handle] and [VisitorOf].
//
// An area is a package beside this one. It adds its templates and its texts with [Add], and gets its services from package
// pages. This package has no routes and calls no services but those that a page gives it.
package view

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"sync"

	"tamga/internal/domain/audit"
	"tamga/internal/web/rest"
)

// shared are the templates and the words that all areas share.
//
//go:embed templates/*.html words/*/*.txt
var shared embed.FS

//go:embed style.css
var style string

// WaitScript loads the page again when what it waits for has happened.
//
//go:embed wait.js
var WaitScript string

// View is what a page shows: the template and its content.
type View struct {
	Template string   // AREA/NAME; see [Add]
	Title    string   // key of the title
	About    string   // before the title in the name of the window, where many pages have the same title; "": nothing
	Script   string   // "": none
	Modules  []string // addresses of scripts that the script may load: its modules and their worker
	Content  any
	Pictures bool // the page has pictures of ours in itself, as data
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
	Words   *Words
	Style   template.CSS
	Script  template.JS
	Brand   string // name of the installation
	Title   string
	About   string // before the title in the name of the window
	Login   string // of the person, "" without a session
	Tabs    []Tab
	Here    string // address of this page with its query, for the switch of the language
	Request string // id of the request
	Content any
}

// Tab is an entry of the list of pages in the frame.
type Tab struct {
	Address, Key string // Key is that of its text
	Anyone       bool   // the page needs no session
	Here         bool   // the person is on this page, or on one below it
	// when reports whether the visitor sees the tab; nil: always
	when func(v *Visitor, who audit.Principal) bool
}

// tabs are the pages that every page leads to.
var tabs = []Tab{
	{Address: "/start", Key: "start.title"},
	{Address: "/sign", Key: "sign.title"},
	{Address: "/confirm", Key: "confirm.title"},
	{Address: "/documents", Key: "documents.title"},
	{Address: "/certificates", Key: "certificates.title"},
	{Address: "/devices", Key: "devices.title"},
	{Address: "/account", Key: "account.title"},
	{Address: "/verify", Key: "verify.title", Anyone: true, when: func(v *Visitor, _ audit.Principal) bool { return v.Verifies }},
	{Address: "/operator", Key: "operator.title", when: func(_ *Visitor, who audit.Principal) bool { return who.Operator }},
	{Address: "/reference", Key: "reference.title", Anyone: true},
}

// tabsFor returns the tabs that the visitor sees.
func tabsFor(v *Visitor, who audit.Principal) []Tab {
	var shown []Tab
	for _, t := range tabs {
		if (t.Anyone || who.Login != "") && (t.when == nil || t.when(v, who)) {
			t.Here = v.Path == t.Address || strings.HasPrefix(v.Path, t.Address+"/")
			shown = append(shown, t)
		}
	}
	return shown
}

// Render makes the page in the language of the visitor.
func (v View) Render(ctx context.Context) (rest.Page, error) {
	visitor, who := VisitorOf(ctx), callerOf(ctx)
	w := visitor.Words
	f := frame{
		Words: w, Brand: visitor.Brand, Style: template.CSS(style), Script: template.JS(v.Script), Title: w.Text(v.Title), About: v.About, Login: who.Login,
		Tabs: tabsFor(visitor, who), Here: visitor.Here, Request: rest.RequestID(ctx), Content: v.Content,
	}
	var text bytes.Buffer
	err := w.templates[v.Template]().ExecuteTemplate(&text, "frame", f)
	policy := contentPolicy(v.Script, v.Pictures)
	if len(v.Modules) > 0 {
		from := strings.Join(v.Modules, " ")
		policy += "; script-src-elem " + rest.ContentHash(v.Script) + " " + from + "; worker-src " + from
	}
	return rest.Page{Content: bytes.NewReader(text.Bytes()), Policy: policy}, err
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
		t := template.New("").Funcs(w.functions())
		if functions != nil {
			t.Funcs(functions(w))
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

// contentPolicy allows a page our style, its script and forms to this server. The content of a page
// comes from untrusted parties, so nothing else is allowed.
func contentPolicy(script string, pictures bool) string {
	p := "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; style-src " + rest.ContentHash(style)
	if script != "" {
		p += "; script-src " + rest.ContentHash(script) + "; connect-src 'self'"
	}
	if pictures {
		p += "; img-src data:"
	}
	return p
}
