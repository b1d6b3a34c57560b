// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tamga/internal/domain/vault"
	"tamga/internal/web/pages/view"
)

// plain seals nothing, but it binds what it opens to its place.
type plain struct{}

func (plain) Seal(p vault.Place, text []byte) ([]byte, error) {
	return append([]byte(p.Row+"|"), text...), nil
}

func (plain) Open(p vault.Place, sealed []byte) ([]byte, error) {
	if n := len(p.Row) + 1; len(sealed) >= n && string(sealed[:n]) == p.Row+"|" {
		return sealed[n:], nil
	}
	return nil, errors.New("sealed for another place")
}

// TestSessionEnds checks that a session ends without requests, continues with them, and that
// its cookie is for this site alone.
func TestSessionEnds(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	a := New(Settings{Address: "https://sign.example.org", Session: 12 * time.Hour, Idle: 30 * time.Minute}, Deps{Sealer: plain{}, Now: func() time.Time { return now }})
	token := ""
	handler := a.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { token = r.Header.Get("Authorization") }))
	cookie, err := a.begin(view.Session{Token: "TOKEN"})
	if err != nil {
		t.Fatal(err)
	}
	if cookie.Name != "__Host-tamga-session" || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("the cookie is %v", cookie)
	}
	visit := func(want string) {
		t.Helper()
		r := httptest.NewRequest("GET", "/start", nil)
		r.Header.Set("Authorization", "Bearer STOLEN")
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		token = ""
		handler.ServeHTTP(w, r)
		if token != want {
			t.Errorf("after %s the request has %q, want %q", now.Sub(time.Unix(1_700_000_000, 0)), token, want)
		}
		if list := w.Result().Cookies(); len(list) > 0 {
			cookie = list[0]
		}
	}
	visit("Bearer TOKEN")
	for range 3 { // each request begins the time without requests anew
		now = now.Add(29 * time.Minute)
		visit("Bearer TOKEN")
	}
	now = now.Add(30 * time.Minute)
	visit("")
	begun, err := a.seal(beginCookie, view.Session{Token: "TOKEN", Seen: now.Unix()})
	if err != nil {
		t.Fatal(err)
	}
	cookie.Value = begun
	visit("") // a cookie of another kind is no session
}
