// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
	"tamga/internal/web/pages/pdfjs"
)

// heaviest is what a browser that has nothing yet loads for a page, at most, in bytes.
const heaviest = 100_000

// loaded are the files that a page loads: stylesheets, pictures, scripts. What an app is installed with does not count:
// browsers load it after the page, or when a person installs the app.
var (
	loaded = regexp.MustCompile(`<(?:link|img|script|source)[^>]* (?:href|src)="([^"]+)"`)
	// Pictures that are lazy are in a folded part, and loaded when it is opened.
	lazy      = regexp.MustCompile(`<img [^>]*loading="lazy"[^>]*>`)
	installed = regexp.MustCompile(`<link rel="(?:manifest|apple-touch-icon)" [^>]*>`)
)

// TestWeight weighs what is sent for the first sight of pages: the page itself, which is never compressed, because it may
// have secrets beside texts of others, and its files, which are compressed and kept.
func TestWeight(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.Header.Set("Accept-Language", "ru") // the longer texts
	signIn := b.Shows(b.Get("/start"))    // leads to the sign-in
	weigh := func(p pagetest.Page) {
		t.Helper()
		if p.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed", p.At)
		}
		total, requests := len(p.Text), 0
		for _, m := range loaded.FindAllStringSubmatch(lazy.ReplaceAllString(installed.ReplaceAllString(p.Text, ""), ""), -1) {
			if strings.HasPrefix(m[1], "data:") {
				continue
			}
			requests++
			b.Header.Set("Accept-Encoding", "gzip")
			file := b.Get(strings.TrimPrefix(m[1], b.Site.URL))
			b.Header.Del("Accept-Encoding")
			if file.Status != 200 || file.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(file.Header.Get("Cache-Control"), "immutable") || file.Header.Get("Vary") != "Accept-Encoding" || file.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s is %d with %v", file.At, file.Status, file.Header)
			}
			total += len(file.Text)
		}
		if t.Logf("%s: %d bytes, %d files", p.At.Path, total, requests); total > heaviest || requests > 1 {
			t.Errorf("%s loads %d bytes with %d files besides the page, want at most %d with one", p.At, total, requests, heaviest)
		}
	}
	weigh(b.Shows(b.Get("/")))
	weigh(signIn)
	b.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password)
	for _, page := range []string{"/start", "/sign", "/verify", "/certificates", "/devices", "/account"} {
		weigh(b.Shows(b.Get(page)))
	}
	for _, script := range []string{pdfjs.Main, pdfjs.Worker} {
		b.Header.Set("Accept-Encoding", "gzip")
		packed := b.Shows(b.Get(script))
		b.Header.Set("Accept-Encoding", "identity")
		plain := b.Shows(b.Get(script))
		if packed.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("Content-Encoding") != "" || len(packed.Text) > len(plain.Text)/2 {
			t.Errorf("%s has %d bytes, and %d compressed", script, len(plain.Text), len(packed.Text))
		}
	}
}
