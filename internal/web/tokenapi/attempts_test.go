// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/password"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
)

// tried records the callers that tried a password. Every user has the password "right".
// The password "wait" waits too long.
type tried struct {
	Identity
	last password.Visitor
}

func (i *tried) judge(ctx context.Context, text string) error {
	i.last = password.VisitorOf(ctx)
	switch text {
	case "right":
		return nil
	case "wait":
		return fault.New(fault.TooManyRequests, "not now").Until(700 * time.Millisecond)
	}
	return &token.GrantError{Code: token.InvalidGrant, Description: "wrong"}
}

func (i *tried) PasswordGrant(ctx context.Context, _ signin.Client, _, password, _, _ string) (token.Token, error) {
	return token.Token{AccessToken: "t", UserID: "7"}, i.judge(ctx, password)
}

func (i *tried) AuthorizePassword(ctx context.Context, _, password string, _ signin.Authorization) (signin.Authorized, audit.Principal, error) {
	return signin.Authorized{Code: "c0de"}, audit.Principal{}, i.judge(ctx, password)
}

func (*tried) OpenTicket(string, string, signin.Step) (signin.Pending, error) {
	return signin.Pending{ClientID: "public", RedirectURI: "https://app.test/", ResponseType: "code"}, nil
}

func (*tried) Providers() []signin.Provider { return nil }

// limited serves with limits: an untrusted caller has 3 attempts from an address and 2 at a login,
// and gets one more of each a minute; a trusted caller has 6 and 4.
func limited(t *testing.T, now *time.Time) (*tried, func(from, path string, form url.Values) *http.Response) {
	t.Helper()
	clients, err := signin.NewClients([]signin.Client{
		{ID: "public", Public: true, PasswordGrant: true, RedirectURIs: []string{"https://app.test/"}},
		{ID: "secret", Secret: signin.HashSecret("s"), PasswordGrant: true},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return *now }
	limiter := func(burst int) *limit.Limiter { return limit.New(1.0/60, burst, 100, clock) }
	i := &tried{}
	api := New(Deps{Identity: i, Clients: clients, Judge: judge, Issuer: "http://idp.test/STS", Attempts: Attempts{
		Addresses: limiter(3), Logins: limiter(2), TrustedAddresses: limiter(6), TrustedLogins: limiter(4),
		Known: limit.NewKnown(10, time.Hour, clock),
	}})
	mux := http.NewServeMux()
	rest.Mount(mux, "/STS", &rest.Gate{Audit: &auditLog{}, Log: slog.New(slog.DiscardHandler)}, api.Routes())
	front := rest.Front(mux, slog.New(slog.DiscardHandler), rest.NewMetrics(prometheus.NewRegistry()), nil)
	return i, func(from, path string, form url.Values) *http.Response {
		r := httptest.NewRequest("POST", "/STS"+path, strings.NewReader(form.Encode()))
		r.RemoteAddr = net.JoinHostPort(from, "5")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		return w.Result()
	}
}

func TestPasswordAttemptsAreLimited(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	i, send := limited(t, &now)
	try := func(client, from, login, password string) *http.Response {
		form := url.Values{"grant_type": {"password"}, "client_id": {client}, "username": {login}, "password": {password}, "resource": {"r"}}
		if client == "secret" {
			form.Set("client_secret", "s")
		}
		return send(from, "/oauth/token", form)
	}
	n := 0
	another := func() string { n++; return fmt.Sprint("login", n) }
	want := func(r *http.Response, status int, who password.Visitor) {
		t.Helper()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != status {
			t.Errorf("status %d, want %d: %s, %v", r.StatusCode, status, text, err)
		}
		if status == 429 {
			if r.Header.Get("Retry-After") == "" || !strings.Contains(string(text), `"error":"too_many_requests"`) {
				t.Errorf("429 with Retry-After %q: %s", r.Header.Get("Retry-After"), text)
			}
			if i.last != (password.Visitor{}) {
				t.Errorf("refused and yet judged as of %+v", i.last)
			}
		} else if i.last != who {
			t.Errorf("judged as of %+v, want %+v", i.last, who)
		}
		i.last = password.Visitor{}
	}
	untrusted := password.Visitor{Key: "address 192.0.2.1"}
	// By address, and one IPv6 network is one address.
	for range 3 {
		want(try("public", "192.0.2.1", another(), "x"), 400, untrusted)
	}
	want(try("public", "192.0.2.1", another(), "right"), 429, password.Visitor{})
	for j := range 3 {
		want(try("public", fmt.Sprintf("2001:db8::%d", j+1), another(), "x"), 400, password.Visitor{Key: "address 2001:db8::/64"})
	}
	want(try("public", "2001:db8::9", another(), "x"), 429, password.Visitor{})
	now = now.Add(time.Minute)
	want(try("public", "192.0.2.1", another(), "x"), 400, untrusted)
	// By login, however it is spelled, from any address, known or not.
	for j, login := range []string{"Anna", "ANNA"} {
		from := fmt.Sprintf("192.0.2.1%d", j)
		want(try("public", from, login, "x"), 400, password.Visitor{Key: "address " + from})
	}
	want(try("public", "192.0.2.19", "anna", "right"), 429, password.Visitor{})
	// A client that proved its secret has no limit by address, and one of its own by login.
	proved := password.Visitor{Key: "client secret", Trust: password.Proved}
	for range 20 {
		want(try("secret", "192.0.2.1", another(), "x"), 400, proved)
	}
	for range 4 {
		want(try("secret", "192.0.2.1", "anna", "right"), 200, proved)
	}
	want(try("secret", "192.0.2.1", "anna", "right"), 429, password.Visitor{})
	// An address is known after a correct password, and for its time.
	const home = "192.0.2.50"
	want(try("public", home, another(), "right"), 200, password.Visitor{Key: "address " + home})
	known := password.Visitor{Key: "address " + home, Trust: password.Known}
	for range 6 {
		want(try("public", home, another(), "x"), 400, known)
	}
	want(try("public", home, another(), "x"), 429, password.Visitor{})
	now = now.Add(time.Hour)
	want(try("public", home, another(), "x"), 400, password.Visitor{Key: "address " + home})
	// Without a password none is derived.
	for range 10 {
		want(try("public", "192.0.2.60", "anna", ""), 400, password.Visitor{})
	}
	// A refusal because of the queue has the same form.
	i.last = password.Visitor{}
	r := try("secret", "192.0.2.70", another(), "wait")
	if r.StatusCode != 429 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("the queue: %d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
	}
}

// People read the refusal in the form, and may send it again.
func TestLoginPageTooManyAttempts(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	i, send := limited(t, &now)
	login := func(from, password string) (int, string, string) {
		r := send(from, loginPath, url.Values{"login": {"<anna>"}, "password": {password}, "ticket": {"t"}, "ui_locales": {"ru"}})
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, r.Header.Get("Retry-After"), string(text)
	}
	for range 2 {
		if status, _, _ := login("192.0.2.1", "x"); status != 401 {
			t.Fatal(status)
		}
	}
	status, after, text := login("192.0.2.1", "right")
	if status != 429 || after != "60" || !strings.Contains(text, "слишком много попыток входа") || !strings.Contains(text, `value="&lt;anna&gt;"`) {
		t.Errorf("by login: %d, Retry-After %q: %s", status, after, text)
	}
	now = now.Add(time.Minute)
	if status, after, text := login("192.0.2.2", "wait"); status != 429 || after != "1" || !strings.Contains(text, "слишком много") {
		t.Errorf("the queue: %d, Retry-After %q: %s", status, after, text)
	}
	now = now.Add(time.Minute)
	if status, _, _ := login("192.0.2.2", "right"); status != 303 || i.last.Trust != password.Untrusted {
		t.Errorf("a right password: %d, %+v", status, i.last)
	}
	now = now.Add(time.Minute)
	if login("192.0.2.2", "right"); i.last != (password.Visitor{Key: "address 192.0.2.2", Trust: password.Known}) {
		t.Errorf("the address is not known after a sign-in by page: %+v", i.last)
	}
}
