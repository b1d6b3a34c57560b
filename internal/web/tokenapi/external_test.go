// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestExternalLogin has users of one server sign in at another, which is its OpenID
// Connect provider.
func TestExternalLogin(t *testing.T) {
	t.Parallel()
	// Each must know the address of the other before it starts.
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	theirs := reserved.Addr().String()
	s := startSignIn(t, "--set", `external=[{name: main, title: "The other one", issuer: "http://`+theirs+`/STS", client_id: relying, scopes: [profile], claim: preferred_username}]`)
	returns := s.Dev.IDPURL + "/oauth/external/main/return"
	if _, page := (&browser{s: s}).send("GET", s.asked(), ""); !strings.Contains(page, "The other one") {
		t.Errorf("a provider that is not up yet: %s", page)
	}
	reserved.Close()
	there := tamgatest.Start(t, "--listen", theirs, "--set", `clients=[{id: tamga-dev, password_grant: true}, {id: relying, redirect_uris: ["`+returns+`"]}]`)
	if there.Dev.IDPURL != "http://"+theirs+"/STS" {
		t.Fatalf("it listens at %s, want %s", there.URL, theirs)
	}

	// goThere leads a browser to the provider and signs demo in there; it is back with
	// the address it was sent to.
	goThere := func(b *browser) string {
		t.Helper()
		_, page := b.send("GET", s.asked("scope", "openid dss offline_access"), "")
		_, after, found := strings.Cut(page, `<a class="btn full" href="`)
		link, _, _ := strings.Cut(after, `"`)
		if !found || !strings.Contains(page, "The other one") {
			t.Fatalf("no way to the provider: %s", page)
		}
		response, text := b.send("GET", strings.ReplaceAll(link, "&amp;", "&"), "")
		address := response.Header.Get("Location")
		if response.StatusCode != 302 || !strings.HasPrefix(address, there.Dev.IDPURL+"/oauth/authorize?") {
			t.Fatalf("%d %s %s", response.StatusCode, address, text)
		}
		away := &browser{s: s}
		_, page = away.send("GET", address, "")
		form := url.Values{"ticket": {ticketField.FindStringSubmatch(page)[1]}, "login": {there.Dev.User.Login}, "password": {there.Dev.User.Password}}
		response, text = away.send("POST", there.Dev.IDPURL+"/oauth/login", form.Encode())
		back := response.Header.Get("Location")
		if response.StatusCode != 303 || !strings.HasPrefix(back, returns+"?code=") {
			t.Fatalf("%d %s %s", response.StatusCode, back, text)
		}
		return back
	}
	come := func(b *browser, address string) (*http.Response, url.Values, string) {
		t.Helper()
		response, text := b.send("GET", address, "")
		to, err := url.Parse(response.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		return response, to.Query(), text
	}

	id, login, phone, _ := s.Register()
	b := &browser{s: s}
	if _, q, text := come(b, goThere(b)); q.Get("error") != "access_denied" || q.Get("code") != "" {
		t.Errorf("who has no login there: %v %s", q, text)
	}
	s.OK("ours", "POST", "/ums/user/"+id+"/login", `{"Login":"DEMO","IssuerName":"Main"}`)
	if _, q, text := come(b, goThere(b)); q.Get("error") != "access_denied" {
		t.Errorf("who may not sign in so: %v %s", q, text)
	}
	s.OK("ours", "POST", "/ums/user/"+id+"/authmethod/external", "{}")
	response, q, text := come(b, goThere(b))
	if response.StatusCode != 302 || !codeForm.MatchString(q.Get("code")) || q.Get("state") != "st&te" {
		t.Fatalf("%d %v %s", response.StatusCode, q, text)
	}
	got := s.Read(s.exchangeCode(q.Get("code")))
	if !s.Works(got.AccessToken) || got.RefreshToken == "" || got.IDToken == "" {
		t.Fatalf("%+v", got)
	}
	if entries := s.Command("audit", "--json", "--operation", "ExternalReturn", "--user", id); !strings.Contains(entries, `"login":"`+login+`"`) {
		t.Errorf("the audit log does not say who it was: %s", entries)
	}

	// The way back of another browser, and one way back twice.
	address := goThere(b)
	for name, other := range map[string]*browser{"another browser": {s: s}, "a browser of another sign-in": func() *browser {
		other := &browser{s: s}
		other.send("GET", s.asked(), "")
		return other
	}()} {
		if response, q, _ := come(other, address); response.StatusCode != 403 || len(q) > 0 {
			t.Errorf("%s: %d %v", name, response.StatusCode, q)
		}
	}
	if _, q, text := come(b, address); q.Get("code") == "" {
		t.Errorf("in person: %v %s", q, text)
	}
	if _, q, text := come(b, address); q.Get("error") != "access_denied" {
		t.Errorf("twice: %v %s", q, text)
	}
	if response, _, _ := come(b, strings.Replace(address, "/main/", "/other/", 1)); response.StatusCode != 403 {
		t.Errorf("at another provider's address: %d", response.StatusCode)
	}

	// A second step comes after the way back. It ends what was signed in without it.
	for _, path := range []string{"/phones/" + phone + "/confirm", "/phones/" + phone + "/secondaryauth", "/authmethod/otpviasms"} {
		s.OK("ours", "POST", "/ums/user/"+id+path, "")
	}
	response, q, text = come(b, goThere(b))
	if response.StatusCode != 200 || len(q) > 0 || !strings.Contains(text, `name="code"`) {
		t.Fatalf("%d %v %s", response.StatusCode, q, text)
	}
	if response, text = b.press(text, "code", s.Code(phone)); response.StatusCode != 303 {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	to, _ := url.Parse(response.Header.Get("Location"))
	got = s.Read(s.exchangeCode(to.Query().Get("code")))
	if !s.Works(got.AccessToken) || got.RefreshToken == "" {
		t.Fatalf("%+v", got)
	}

	s.OK("ours", "DELETE", "/ums/user/"+id+"/login?issuerName=main", "")
	if s.Works(got.AccessToken) || s.Refresh("app", got.RefreshToken).Status != 400 {
		t.Error("the sign-in outlives the login it came of")
	}
}
