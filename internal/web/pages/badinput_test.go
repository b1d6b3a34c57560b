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
)

var (
	anyLink   = regexp.MustCompile(`href="(/[^"#]*)"`)
	anyAction = regexp.MustCompile(`<form[^>]* method="post" action="(/[^"]+)"`)
)

// walk opens every page that a page of starts leads to, and returns the addresses of their forms.
// No untrusted text is a part of a page, and no page can be in a frame of another one.
func (b *browser) walk(starts ...string) map[string]bool {
	b.Helper()
	forms, seen := map[string]bool{}, map[string]bool{}
	for len(starts) > 0 && len(seen) < 400 {
		at := starts[0]
		starts = starts[1:]
		if seen[at] || strings.HasPrefix(at, "/reference/") || at == "/openapi.json" {
			continue
		}
		seen[at] = true
		p := b.get(at)
		if p.status >= 500 {
			b.Errorf("%s is answered with %d:\n%s", at, p.status, p.text)
		}
		if !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
			if !strings.HasPrefix(p.header.Get("Content-Disposition"), "attachment") {
				b.Errorf("%s is shown as %v", at, p.header)
			}
			continue
		}
		b.safe(p)
		for _, m := range anyLink.FindAllStringSubmatch(p.text, -1) {
			starts = append(starts, html.UnescapeString(m[1]))
		}
		for _, m := range anyAction.FindAllStringSubmatch(p.text, -1) {
			forms[html.UnescapeString(m[1])] = true
		}
	}
	b.Logf("%d pages, %d forms", len(seen), len(forms))
	return forms
}

// safe checks that a page has no untrusted text as a part and no place in a frame.
func (b *browser) safe(p shown) {
	b.Helper()
	if i := strings.Index(p.text, "<img src=x"); i >= 0 {
		b.Errorf("%s has an untrusted text as a part: %.300s", p.at, p.text[i:])
	}
	if policy := p.header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		b.Errorf("%s has the policy %q", p.at, policy)
	}
}

// TestUntrustedTexts fills in hostile texts wherever an anonymous caller can, and looks at every
// page of the person and of the operator. Then it sends each form of these pages from another site.
func TestUntrustedTexts(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := newBrowser(t, w.Server)
	b.header.Set("User-Agent", hostileText)
	b.signIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	b.ok(b.post("/account/do/name", url.Values{"name": {hostileText}}), html.EscapeString(hostileText))
	b.ok(b.post("/certificates/1/do/name", url.Values{"name": {hostileText}}), "onerror")
	b.ok(b.post("/certificates/request", url.Values{"suite": {"gost2012-256"}, "name.2.5.4.3": {hostileText}}), "onerror")
	titled := strings.Replace(string(tamgatest.PDFOf(2000)), "/Root 1 0 R", "/Root 1 0 R/Info<</Title(<img src=x onerror=alert\\(1\\)>)/Author(<img src=x>)>>", 1)
	p := b.ok(b.upload("/sign", map[string]string{"certificate": "7"}, file{"file", hostileText + ".pdf", titled}, file{"file", hostileText + ".txt", "text"}), "<td>Signed")
	b.safe(p)
	signed := b.ok(b.get(b.find(p, result)[1]))
	b.safe(b.ok(b.upload("/verify", nil, file{"file", hostileText + ".pdf", signed.text}), "onerror", `class="verdict`))
	b.safe(b.upload("/verify", nil, file{"file", hostileText, hostileText}))
	forms := b.walk("/start", p.at.RequestURI())

	anonymous := newBrowser(t, w.Server)
	anonymous.is(anonymous.signIn("/start", hostileText, hostileText), 401) // is in the audit log
	o := operator(w, w.Dev.Operator.Login)
	o.header.Set("User-Agent", hostileText)
	o.safe(o.ok(o.get("/operator/audit?login="+url.QueryEscape(hostileText)), html.EscapeString("onerror")))
	for form := range o.walk("/operator", personAt(w.Dev.User.ID)) {
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
			o.header.Set(name, value)
			if p := o.post(form, nil); p.status != 403 || !strings.Contains(p.text, "sent by another site") {
				t.Errorf("%s of another site (%s) is answered with %d", form, name, p.status)
			}
			o.header.Del(name)
		}
	}
}

// TestSessionEndsInUpload ends a session while its browser sends a file. Nothing is signed.
func TestSessionEndsInUpload(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t)
	for _, command := range []string{"logout", "lock"} {
		b := newBrowser(t, s)
		b.ok(b.signIn("/documents", s.Dev.User.Login, s.Dev.User.Password), "No documents are stored")
		body, sent := io.Pipe()
		form := multipart.NewWriter(sent)
		answer := make(chan shown)
		go func() { answer <- b.do("POST", "/sign", form.FormDataContentType(), body) }()
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
		b.is(<-answer, 401, "Nothing was done or changed", `<div data-again="">`, `href="/sign-in?to=%2Fsign"`)
		if command == "lock" {
			s.Command("user", "unlock", s.Dev.User.Login)
		}
		b.ok(b.signIn("/documents", s.Dev.User.Login, s.Dev.User.Password), "No documents are stored")
	}
	if log := s.Command("audit", "--operation", "SignByPage", "--limit", "0", "--json"); strings.Contains(log, `"outcome":"ok"`) {
		t.Errorf("something was signed: %s", log)
	}
}
