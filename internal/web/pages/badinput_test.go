// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest/look"
)

var (
	anyLink   = regexp.MustCompile(`href="(/[^"#]*)"`)
	anyAction = regexp.MustCompile(`<form[^>]* method="post" action="(/[^"]+)"`)
)

// walk opens every page that a page of starts leads to, and returns the addresses of their forms.
// No untrusted text is a part of a page, and no page can be in a frame of another one.
func walk(b *pagetest.Browser, starts ...string) map[string]bool {
	b.Helper()
	forms, seen := map[string]bool{}, map[string]bool{}
	for len(starts) > 0 && len(seen) < 400 {
		at := starts[0]
		starts = starts[1:]
		if seen[at] || strings.HasPrefix(at, "/reference/") || at == "/openapi.json" || strings.HasPrefix(at, look.Folder) || strings.HasPrefix(at, view.ManifestPath) {
			continue
		}
		seen[at] = true
		p := b.Get(at)
		if p.Status >= 500 {
			b.Errorf("%s is answered with %d:\n%s", at, p.Status, p.Text)
		}
		if !strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			if !strings.HasPrefix(p.Header.Get("Content-Disposition"), "attachment") {
				b.Errorf("%s is shown as %v", at, p.Header)
			}
			continue
		}
		b.Safe(p)
		for _, m := range anyLink.FindAllStringSubmatch(p.Text, -1) {
			starts = append(starts, html.UnescapeString(m[1]))
		}
		for _, m := range anyAction.FindAllStringSubmatch(p.Text, -1) {
			forms[html.UnescapeString(m[1])] = true
		}
	}
	b.Logf("%d pages, %d forms", len(seen), len(forms))
	return forms
}

// TestUntrustedTexts fills in hostile texts wherever an anonymous caller can, and looks at every
// page of the person and of the operator. Then it sends each form of these pages from another site.
func TestUntrustedTexts(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.New(t, w.Server)
	b.Header.Set("User-Agent", pagetest.HostileText)
	b.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	b.Shows(b.Post("/account/do/name", url.Values{"name": {pagetest.HostileText}}), html.EscapeString(pagetest.HostileText))
	b.Shows(b.Post("/certificates/1/do/name", url.Values{"name": {pagetest.HostileText}}), "onerror")
	b.Shows(b.Post("/certificates/request", url.Values{"suite": {"gost2012-256"}, "name.2.5.4.3": {pagetest.HostileText}}), "onerror")
	titled := strings.Replace(string(tamgatest.PDFOf(2000)), "/Root 1 0 R", "/Root 1 0 R/Info<</Title(<img src=x onerror=alert\\(1\\)>)/Author(<img src=x>)>>", 1)
	p := b.Shows(b.Upload("/sign", map[string]string{"certificate": "7"}, pagetest.File{Field: "file", Name: pagetest.HostileText + ".pdf", Content: titled}, pagetest.File{Field: "file", Name: pagetest.HostileText + ".txt", Content: "text"}), ">Signed<")
	b.Safe(p)
	signed := b.Shows(b.Get(b.Find(p, pagetest.Result)[1]))
	b.Safe(b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: pagetest.HostileText + ".pdf", Content: signed.Text}), "onerror", `class="verdict`))
	b.Safe(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: pagetest.HostileText, Content: pagetest.HostileText}))
	forms := walk(b, "/start", p.At.RequestURI())

	anonymous := pagetest.New(t, w.Server)
	anonymous.Is(anonymous.SignIn("/start", pagetest.HostileText, pagetest.HostileText), 401) // is in the audit log
	o := pagetest.Operator(w, w.Dev.Operator.Login)
	o.Header.Set("User-Agent", pagetest.HostileText)
	o.Safe(o.Shows(o.Get("/operator/audit?login="+url.QueryEscape(pagetest.HostileText)), html.EscapeString("onerror")))
	for form := range walk(o, "/operator", pagetest.PersonAt(w.Dev.User.ID)) {
		forms[form] = true
	}
	if len(forms) < 60 {
		t.Errorf("only %d forms", len(forms))
	}
	for form := range forms {
		if strings.HasPrefix(form, "/STS/") {
			continue // needs a ticket of the page
		}
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			o.Header.Set(name, value)
			if p := o.Post(form, nil); p.Status != 403 || !strings.Contains(p.Text, "sent by another site") {
				t.Errorf("%s of another site (%s) is answered with %d", form, name, p.Status)
			}
			o.Header.Del(name)
		}
	}
}

// TestSessionEndsInUpload ends a session while its browser sends a file. Nothing is signed.
func TestSessionEndsInUpload(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t)
	for _, command := range []string{"logout", "lock"} {
		b := pagetest.New(t, s)
		b.Shows(b.SignIn("/documents", s.Dev.User.Login, s.Dev.User.Password), "No documents are stored")
		body, sent := io.Pipe()
		form := multipart.NewWriter(sent)
		answer := make(chan pagetest.Page)
		go func() { answer <- b.Do("POST", "/sign", form.FormDataContentType(), body) }()
		form.WriteField("certificate", "1")
		part, err := form.CreateFormFile("file", "a.txt")
		if err != nil {
			t.Fatal(err)
		}
		// More than the connection buffers, so the server has found the session and reads.
		half := bytes.Repeat([]byte("a"), 8<<20)
		if _, err := part.Write(half); err != nil {
			t.Fatal(err)
		}
		s.Command("user", command, s.Dev.User.Login)
		part.Write(half)
		form.Close()
		sent.Close()
		b.Is(<-answer, 401, "Nothing was done or changed", `<div data-again="">`, `href="/sign-in?to=%2Fsign"`)
		if command == "lock" {
			s.Command("user", "unlock", s.Dev.User.Login)
		}
		b.Shows(b.SignIn("/documents", s.Dev.User.Login, s.Dev.User.Password), "No documents are stored")
	}
	if log := s.Command("audit", "--operation", "SignByPage", "--limit", "0", "--json"); strings.Contains(log, `"outcome":"ok"`) {
		t.Errorf("something was signed: %s", log)
	}
}
