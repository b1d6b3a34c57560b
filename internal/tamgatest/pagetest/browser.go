// SPDX-License-Identifier: Apache-2.0

// Package pagetest opens the pages of a server as a person does, with cookies and without scripts. Begin with [New] and
// [NewPerson].
package pagetest

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// HostileName is an untrusted name of a file that must stay a text.
const HostileName = `<img src=x onerror=alert(1)>&"'.txt`

// HostileText is an untrusted text that must stay a text.
const HostileText = `<img src=x onerror=alert(1)>"'&{{.}}`

// Browser is a person with cookies and without scripts.
type Browser struct {
	testing.TB
	Site   *tamgatest.Server
	Client *http.Client
	Header http.Header // of every request
}

// New returns a browser without cookies, in English.
func New(t testing.TB, s *tamgatest.Server) *Browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Browser{t, s, &http.Client{Jar: jar}, http.Header{"Accept-Language": {"en"}}}
}

// Page is a page as the browser has it after all redirects.
type Page struct {
	Status int
	At     *url.URL
	Header http.Header
	Text   string
}

// Do sends a request.
func (b *Browser) Do(method, address, kind string, body io.Reader) Page {
	b.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.Site.URL + address
	}
	r, err := http.NewRequest(method, address, body)
	if err != nil {
		b.Fatal(err)
	}
	for name, values := range b.Header {
		r.Header[name] = values
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	resp, err := b.Client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return Page{resp.StatusCode, resp.Request.URL, resp.Header, cellHead.ReplaceAllString(string(text), "")}
}

// Get opens a page.
func (b *Browser) Get(address string) Page { return b.Do("GET", address, "", nil) }

// Post sends a form.
func (b *Browser) Post(address string, form url.Values) Page {
	return b.Do("POST", address, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

// File is a file of a form.
type File struct{ Field, Name, Content string }

// Upload sends a form with files, its fields first as browsers do.
func (b *Browser) Upload(address string, fields map[string]string, files ...File) Page {
	b.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range fields {
		if err := w.WriteField(name, value); err != nil {
			b.Fatal(err)
		}
	}
	for _, f := range files {
		part, err := w.CreateFormFile(f.Field, f.Name)
		if err != nil {
			b.Fatal(err)
		}
		io.WriteString(part, f.Content)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return b.Do("POST", address, w.FormDataContentType(), &body)
}

// Shows fails the test unless the page is a success with these texts.
func (b *Browser) Shows(p Page, texts ...string) Page {
	b.Helper()
	b.Is(p, 200, texts...)
	return p
}

// Is fails the test unless the page has this status and these texts.
func (b *Browser) Is(p Page, status int, texts ...string) {
	b.Helper()
	if p.Status != status {
		b.Fatalf("%s is %d, want %d:\n%s", p.At, p.Status, status, p.Text)
	}
	if status >= 400 && strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") && !RequestNumber.MatchString(p.Text) {
		b.Errorf("%s is refused without the number of the request:\n%s", p.At, p.Text)
	}
	for _, text := range texts {
		if !strings.Contains(p.Text, text) {
			b.Errorf("%s has no %q:\n%s", p.At, text, p.Text)
		}
	}
}

var (
	RequestNumber = regexp.MustCompile(`<(?:footer|span)>[^<]+<code>[A-Z2-7]{26}</code>`)

	ticket = regexp.MustCompile(`name="ticket" value="([^"]+)"`)
	action = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
	Result = regexp.MustCompile(`href="(/signed/document/[^"]+)">([^<]+)<`)
	All    = regexp.MustCompile(`href="(/signed/all.zip[^"]+)"`)
)

// cellHead is what a phone shows before a cell of a table. Tests of what a cell has do not look at
// it; package browser does.
var cellHead = regexp.MustCompile(` data-h="[^"]*"`)

func (b *Browser) Find(p Page, what *regexp.Regexp) []string {
	b.Helper()
	m := what.FindStringSubmatch(p.Text)
	if m == nil {
		b.Fatalf("%s has no %s:\n%s", p.At, what, p.Text)
	}
	for i := range m {
		m[i] = html.UnescapeString(m[i])
	}
	return m
}

// SignIn goes through the sign-in page, from a page that needs a session.
func (b *Browser) SignIn(page, login, password string) Page {
	b.Helper()
	p := b.Shows(b.Get(page), `name="ticket"`)
	return b.Post(b.Find(p, action)[1], url.Values{"ticket": {b.Find(p, ticket)[1]}, "login": {login}, "password": {password}})
}

// Address returns the address of the server.
func (b *Browser) Address() *url.URL {
	u, err := url.Parse(b.Site.URL)
	if err != nil {
		b.Fatal(err)
	}
	return u
}

// Session returns the cookie of the session.
func (b *Browser) Session() *http.Cookie {
	b.Helper()
	for _, c := range b.Client.Jar.Cookies(b.Address()) {
		if c.Name == "tamga-session" {
			return c
		}
	}
	b.Fatal("the browser has no session")
	return nil
}

// Safe checks that a page has no untrusted text as a part and no place in a frame.
func (b *Browser) Safe(p Page) {
	b.Helper()
	if i := strings.Index(p.Text, "<img src=x"); i >= 0 {
		b.Errorf("%s has an untrusted text as a part: %.300s", p.At, p.Text[i:])
	}
	if policy := p.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		b.Errorf("%s has the policy %q", p.At, policy)
	}
}
