// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"bufio"
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest/pagetest"
)

// events follows what a page waits for in a session.
type events struct {
	t     *testing.T
	lines *bufio.Scanner
	end   func()
}

func follow(t *testing.T, b *pagetest.Browser, address string) *events {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", b.Site.URL+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(b.Session())
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(); a.Body.Close() })
	if kind := a.Header.Get("Content-Type"); a.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("%s: %d %s", address, a.StatusCode, kind)
	}
	return &events{t, bufio.NewScanner(a.Body), end}
}

// next returns the next state.
func (e *events) next() string {
	e.t.Helper()
	for e.lines.Scan() {
		if state, is := strings.CutPrefix(e.lines.Text(), "data: "); is {
			return state
		}
	}
	e.t.Fatalf("the stream has ended: %v", e.lines.Err())
	return ""
}

// TestWaiting has pages wait for a confirmation, its operation, a device and a request, and checks that each is told of the
// change, that the first state is that of the page, and that the stream of another person says nothing.
func TestWaiting(t *testing.T) {
	p := pagetest.NewPerson(t, "otpviasms")
	p.Confirms(pagetest.BitSignDocument)
	b := p.Browser
	marked := regexp.MustCompile(`data-wait="([^"]+)" data-state="([^"]*)"`)
	page := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}))
	mark := b.Find(page, marked)
	operation := follow(t, b, html.UnescapeString(mark[1]))
	if first := operation.next(); first != html.UnescapeString(mark[2]) {
		t.Errorf("the first state is %q, and the page was made at %q", first, mark[2])
	}
	id := b.Find(page, regexp.MustCompile(`href="/confirm/([^"]+)"`))[1]
	confirmation := follow(t, b, "/waiting?for=confirmation&id="+id)
	if first := confirmation.next(); !strings.HasPrefix(first, "Created 0 ") {
		t.Errorf("the confirmation is %q", first)
	}
	other := pagetest.New(t, b.Site)
	other.SignIn("/start", b.Site.Dev.Operator.Login, b.Site.Dev.Operator.Password)
	theirs := follow(t, other, "/waiting?for=confirmation&id="+id)
	if first := theirs.next(); first != "" {
		t.Errorf("another person is told %q", first)
	}
	b.Shows(b.Post("/confirm/"+id, url.Values{"choice": {"otpviasms"}}))
	if next := confirmation.next(); !strings.HasPrefix(next, "Challenged 1 ") {
		t.Errorf("after the choice the confirmation is %q", next)
	}
	b.Shows(b.Post("/confirm/"+id, url.Values{"code": {p.Code(p.Phone)}}), ">Signed<")
	if next := operation.next(); !strings.HasPrefix(next, "Completed") && !strings.HasPrefix(next, "Confirmed") {
		t.Errorf("after the code the operation is %q", next)
	}
	operation.end()
	confirmation.end()

	devices := follow(t, b, "/waiting?for=devices")
	before := devices.next()
	requests := follow(t, b, "/waiting?for=requests&id=other")
	first := requests.next()
	b.Shows(b.Post("/certificates/request", url.Values{"suite": {"gost2012-256"}, "name.2.5.4.3": {"Demo User"}}))
	if next := requests.next(); next == first {
		t.Errorf("after a request the state is still %q", next)
	}
	if before == "" {
		t.Error("the devices have no state")
	}

	b.Is(b.Get("/waiting?for=everything"), 400)
	anonymous := pagetest.New(t, b.Site)
	if page := anonymous.Get("/waiting?for=devices"); page.At.Path == "/waiting" {
		t.Errorf("an anonymous caller waits: %d", page.Status)
	}
}
