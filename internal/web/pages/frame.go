// SPDX-License-Identifier: Apache-2.0

package pages

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

//go:embed templates/*.html templates/*/*.html
var templateFiles embed.FS

//go:embed style.css
var style string

//go:embed upload.js
var uploadScript string

// view is what a page shows: the template and its content.
type view struct {
	template string   // path of a file in templates, without .html
	title    string   // key of the title
	about    string   // before the title in the name of the window, where many pages have the same title; "": nothing
	script   string   // "": none
	modules  []string // addresses of scripts that the script may load: its modules and their worker
	status   int      // 0 is 200
	content  any
	pictures bool // the page has pictures of ours in itself, as data
}

// page makes a route of a function that returns a view.
func page[Req any](pattern, name string, right rest.Right, f func(context.Context, Req) (view, error)) rest.Route {
	return rest.Handle(pattern, name, right, func(ctx context.Context, r Req) (rest.Page, error) {
		v, err := f(ctx, r)
		if err != nil {
			return rest.Page{}, err
		}
		return v.render(ctx)
	}).Answering(rest.Page{})
}

// frame is what surrounds every page.
type frame struct {
	Words   *words
	Style   template.CSS
	Script  template.JS
	Brand   string // name of the installation
	Title   string
	About   string // before the title in the name of the window
	Login   string // of the person, "" without a session
	Tabs    []tab
	Here    string // address of this page with its query, for the switch of the language
	Request string // id of the request
	Content any
}

// tab is an entry of the list of pages in the frame.
type tab struct {
	Address, Key string // Key is that of its text
	Anyone       bool   // the page needs no session
	Here         bool   // the person is on this page, or on one below it
	// when reports whether the visitor sees the tab; nil: always
	when func(v *visitor, who audit.Principal) bool
}

// tabs are the pages that every page leads to.
var tabs = []tab{
	{Address: "/start", Key: "start.title"},
	{Address: "/sign", Key: "sign.title"},
	{Address: "/confirm", Key: "confirm.title"},
	{Address: "/documents", Key: "documents.title"},
	{Address: "/certificates", Key: "certificates.title"},
	{Address: "/devices", Key: "devices.title"},
	{Address: "/account", Key: "account.title"},
	{Address: "/verify", Key: "verify.title", Anyone: true, when: func(v *visitor, _ audit.Principal) bool { return v.verifies }},
	{Address: "/operator", Key: "operator.title", when: func(_ *visitor, who audit.Principal) bool { return who.Operator }},
	{Address: "/reference", Key: "reference.title", Anyone: true},
}

// tabsFor returns the tabs that the visitor sees.
func tabsFor(v *visitor, who audit.Principal) []tab {
	var shown []tab
	for _, t := range tabs {
		if (t.Anyone || who.Login != "") && (t.when == nil || t.when(v, who)) {
			t.Here = v.path == t.Address || strings.HasPrefix(v.path, t.Address+"/")
			shown = append(shown, t)
		}
	}
	return shown
}

// render makes the page in the language of the visitor.
func (v view) render(ctx context.Context) (rest.Page, error) {
	visitor, who := visitorOf(ctx), callerOf(ctx)
	w := visitor.words
	f := frame{
		Words: w, Brand: visitor.brand, Style: template.CSS(style), Script: template.JS(v.script), Title: w.text(v.title), About: v.about, Login: who.Login,
		Tabs: tabsFor(visitor, who), Here: visitor.here, Request: rest.RequestID(ctx), Content: v.content,
	}
	var text bytes.Buffer
	err := templates()[w.language][v.template]().ExecuteTemplate(&text, "frame", f)
	policy := contentPolicy(v.script, v.pictures)
	if len(v.modules) > 0 {
		from := strings.Join(v.modules, " ")
		policy += "; script-src-elem " + rest.ContentHash(v.script) + " " + from + "; worker-src " + from
	}
	return rest.Page{Content: bytes.NewReader(text.Bytes()), Policy: policy, Status: v.status}, err
}

// templates returns functions that parse the pages, by language and name. A page is parsed for
// each language, because the functions of a template are bound when it is parsed, and when it is
// first shown: all of them take 9 MiB and a fifth of the time of a start.
var templates = sync.OnceValue(func() map[string]map[string]func() *template.Template {
	all := map[string]map[string]func() *template.Template{}
	for _, w := range languages {
		all[w.language] = map[string]func() *template.Template{}
		common := sync.OnceValue(func() *template.Template {
			return template.Must(template.New("").Funcs(w.functions()).ParseFS(templateFiles, "templates/frame.html", "templates/parts.html", "templates/*/parts.html"))
		})
		err := fs.WalkDir(templateFiles, "templates", func(file string, d fs.DirEntry, err error) error {
			name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
			if err == nil && !d.IsDir() && name != "frame" && path.Base(name) != "parts" {
				all[w.language][name] = sync.OnceValue(func() *template.Template {
					return template.Must(template.Must(common().Clone()).ParseFS(templateFiles, file))
				})
			}
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	return all
})

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
