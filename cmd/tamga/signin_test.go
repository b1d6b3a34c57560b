// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/judge"

	"tamga/internal/tamgatest"
)

// The applications of these tests, and where they are sent back to.
const (
	appAddress = "https://app.example/cb"
	oobAddress = "urn:ietf:wg:oauth:2.0:oob:auto"
	appSecret  = "a secret of the portal"

	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	jwtType       = "urn:ietf:params:oauth:token-type:jwt"
)

// signIn is a server with applications of every kind.
type signIn struct {
	*tamgatest.UMS
	settings []string
}

func startSignIn(t *testing.T, more ...string) *signIn {
	t.Helper()
	settings := append(applications(t), more...)
	return &signIn{tamgatest.StartUMS(t, settings...), settings}
}

// startSignInProcess is startSignIn over a directory and in a process of its own.
func startSignInProcess(t *testing.T, dir string, more ...string) *signIn {
	t.Helper()
	settings := append(applications(t), more...)
	return &signIn{tamgatest.StartUMSProcess(t, dir, settings...), settings}
}

// applications returns the settings of the applications.
func applications(t *testing.T) []string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(appSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	clients := `clients=[` +
		`{id: tamga-dev, password_grant: true, token_exchange: true, redirect_uris: ["` + oobAddress + `"]}, ` +
		`{id: app, redirect_uris: ["` + appAddress + `", "` + appAddress + `?a=b", "com.example.app:/cb", "` + oobAddress + `"]}, ` +
		`{id: page, implicit_grant: true, without_pkce: true, redirect_uris: ["` + appAddress + `"]}, ` +
		`{id: portal, secret_file: "` + secret + `", password_grant: true, token_exchange: true, redirect_uris: ["` + appAddress + `"]}]`
	return []string{"--set", clients}
}

// form sends a form to the token endpoint.
func (s *signIn) form(values url.Values, headers ...string) tamgatest.Answer {
	s.T.Helper()
	return s.Ask(tamgatest.Nobody, "POST", "/oauth/token", values.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// tokenAnswer is what the token endpoint answers.
type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	IDToken      string `json:"id_token"`
	Scope        string `json:"scope"`
	Error        string `json:"error"`
}

func (s *signIn) read(a tamgatest.Answer) (t tokenAnswer) {
	s.T.Helper()
	a.Into(s.T, &t)
	return t
}

// offline signs the user demo in so that they stay.
func (s *signIn) offline(client string) tokenAnswer {
	s.T.Helper()
	a := s.form(url.Values{
		"grant_type": {"password"}, "username": {s.Dev.User.Login}, "password": {s.Dev.User.Password},
		"client_id": {client}, "resource": {s.Dev.Resource}, "scope": {"dss offline_access"},
	})
	t := s.read(a)
	if a.Status != 200 || t.RefreshToken == "" || t.Scope != "dss offline_access" {
		s.T.Fatalf("%v", a)
	}
	return t
}

func (s *signIn) refresh(client, token string) tamgatest.Answer {
	s.T.Helper()
	return s.form(url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}})
}

// works reports whether an access token opens the signing service.
func (s *signIn) works(token string) bool {
	s.T.Helper()
	status, _ := s.Do(s.T.Context(), "GET", s.Dev.BaseURL+"/api/certificates", token, nil)
	return status == 200
}

func TestOpenIDClient(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	order := judge.OpenIDOrder{
		Issuer: s.Dev.IDPURL, RedirectURI: appAddress, Login: "DEMO", Password: s.Dev.User.Password,
		Scope: "openid profile email offline_access",
	}
	for _, c := range []struct{ name, id, secret, method, resource string }{
		{"public", "app", "", "", ""},
		{"basic", "portal", appSecret, "client_secret_basic", ""},
		{"post", "portal", appSecret, "client_secret_post", s.Dev.Resource},
	} {
		order.ClientID, order.ClientSecret, order.Method, order.Resource = c.id, c.secret, c.method, c.resource
		got := judge.OpenID(t, order)
		for name, want := range map[string]any{"sub": s.Dev.User.ID, "aud": c.id, "iss": s.Dev.IDPURL, "preferred_username": "demo"} {
			if got.Claims[name] != want {
				t.Errorf("%s: claim %s is %v, want %v", c.name, name, got.Claims[name], want)
			}
		}
		want := map[string]any{"sub": s.Dev.User.ID, "preferred_username": "demo", "name": "Demo User"}
		if d := cmp.Diff(want, got.UserInfo); d != "" {
			t.Errorf("%s: userinfo %s", c.name, d)
		}
		if got.Scope != "openid profile offline_access" || !got.Rotated {
			t.Errorf("%s: scope %q, rotated %v", c.name, got.Scope, got.Rotated)
		}
		// A token for the name of a user alone signs nothing.
		if s.works(got.AccessToken) != (c.resource != "") || s.works(got.Refreshed) != (c.resource != "") {
			t.Errorf("%s: the access token opens the signing service: %v", c.name, s.works(got.AccessToken))
		}
	}
}

func TestRefreshTokens(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	s.Walk(t, "Rotation", func(t *testing.T) {
		first := s.offline("tamga-dev")
		if list := s.Command("user", "sessions", "demo", "--json"); strings.Count(list, `"client_id":"tamga-dev","scope":"dss offline_access","method":"password"`) != 1 {
			t.Errorf("sessions: %s", list)
		}
		second := s.read(s.refresh("tamga-dev", first.RefreshToken))
		if second.RefreshToken == first.RefreshToken || !s.works(second.AccessToken) || second.ExpiresIn != 300 {
			t.Fatalf("%+v", second)
		}
		if a := s.refresh("tamga-dev", first.RefreshToken); a.Status != 400 || s.read(a).Error != "invalid_grant" {
			t.Errorf("a spent one: %v", a)
		}
		for name, token := range map[string]string{"first": first.AccessToken, "second": second.AccessToken} {
			if s.works(token) {
				t.Errorf("after a replay the %s access token works", name)
			}
		}
		if a := s.refresh("tamga-dev", second.RefreshToken); a.Status != 400 {
			t.Errorf("after a replay: %v", a)
		}
	})
	s.Walk(t, "AnotherClient", func(t *testing.T) {
		first := s.offline("tamga-dev")
		if a := s.refresh("page", first.RefreshToken); a.Status != 400 || s.read(a).Error != "invalid_grant" {
			t.Errorf("%v", a)
		}
	})
	s.Walk(t, "TogetherExactlyOne", func(t *testing.T) {
		first := s.offline("tamga-dev")
		var wg sync.WaitGroup
		answers := make([]tamgatest.Answer, 32)
		for i := range answers {
			wg.Go(func() { answers[i] = s.refresh("tamga-dev", first.RefreshToken) })
		}
		wg.Wait()
		won := 0
		for _, a := range answers {
			if a.Status == 200 {
				won++
				if s.works(s.read(a).AccessToken) {
					t.Error("the winner's token outlived the replay")
				}
			} else if s.read(a).Error != "invalid_grant" {
				t.Errorf("%v", a)
			}
		}
		if won != 1 {
			t.Errorf("%d of %d got a token, want 1", won, len(answers))
		}
	})
	s.Walk(t, "WhatEndsThem", func(t *testing.T) {
		id := s.Dev.User.ID
		for name, end := range map[string]func(){
			"revoked": func() { s.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/grants/revoke", "") },
			"locked": func() {
				s.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/lockout?lock=True", "")
				s.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/lockout?lock=False", "")
			},
			"a method more": func() {
				s.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/authmethod/oath", "{}")
				s.OK(tamgatest.Ours, "DELETE", "/ums/user/"+id+"/authmethod/oath", "")
			},
		} {
			first := s.offline("tamga-dev")
			end()
			if a := s.refresh("tamga-dev", first.RefreshToken); a.Status != 400 || s.read(a).Error != "invalid_grant" {
				t.Errorf("%s: %v", name, a)
			}
			if s.works(first.AccessToken) {
				t.Errorf("%s: the access token works", name)
			}
		}
	})
}

// unsigned is a subject token.
func unsigned(header, payload string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	return b64([]byte(header)) + "." + b64([]byte(payload)) + "."
}

const noneHeader = `{"alg":"none","typ":"JWT"}`

// naming is a subject token that names a user.
func naming(name, value string, life time.Duration) string {
	now := time.Now().Unix()
	return unsigned(noneHeader, fmt.Sprintf(`{%q:%q,"nbf":%d,"exp":%d,"iat":%d}`, name, value, now, now+int64(life.Seconds()), now))
}

func (s *signIn) exchange(actor, subject string) tamgatest.Answer {
	s.T.Helper()
	return s.form(url.Values{
		"grant_type": {exchangeGrant}, "resource": {strings.ToUpper(s.Dev.Resource)}, "actor_token": {actor}, "actor_token_type": {jwtType},
		"subject_token": {subject}, "subject_token_type": {jwtType},
	}, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s.Dev.ClientID+":")))
}

func TestTokenExchange(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	demo := naming("unique_name", "Demo", time.Hour)
	s.Walk(t, "AsClientsDo", func(t *testing.T) {
		for _, subject := range []string{demo, naming("nameidentifier", s.Dev.User.ID, time.Hour)} {
			a := s.exchange(s.Tokens[tamgatest.Ours], subject)
			got := s.read(a)
			if a.Status != 200 || !s.works(got.AccessToken) || got.RefreshToken != "" || got.ExpiresIn > 300 {
				t.Fatalf("%v", a)
			}
			var claims map[string]any
			payload, err := base64.RawURLEncoding.DecodeString(strings.Split(got.AccessToken, ".")[1])
			if err != nil || json.Unmarshal(payload, &claims) != nil {
				t.Fatal(err)
			}
			act := map[string]any{"sub": s.Dev.Operator.ID, "unique_name": "operator"}
			if d := cmp.Diff(act, claims["act"]); d != "" || claims["unique_name"] != "demo" || claims["nameid"] != s.Dev.User.ID {
				t.Errorf("%v: %s", claims, d)
			}
			// It is no operator's, and no actor's.
			if a := s.exchange(got.AccessToken, demo); a.Status != 400 {
				t.Errorf("as an actor token: %v", a)
			}
			s.Tokens["delegated"] = got.AccessToken
			if a := s.Ask("delegated", "GET", "/ums/user/"+s.Dev.User.ID, ""); a.Status != 403 {
				t.Errorf("in user management: %v", a)
			}
		}
		entries := s.Command("audit", "--json", "--operation", "Token", "--user", s.Dev.User.ID)
		if !strings.Contains(entries, `"object":"`+s.Dev.User.ID+`"`) || !strings.Contains(entries, `"login":"operator"`) {
			t.Errorf("the audit log does not say who acts for whom: %s", entries)
		}
		if entries := s.Command("audit", "--json", "--login", "demo"); !strings.Contains(entries, `"actor":"operator"`) {
			t.Errorf("the audit log does not say who acted: %s", entries)
		}
	})
	s.Walk(t, "WhoMay", func(t *testing.T) {
		nobodys := s.exchange(s.Tokens[tamgatest.Ours], naming("unique_name", "nobody-at-all", time.Hour))
		for name, a := range map[string]tamgatest.Answer{
			"no operator":                s.exchange(s.Tokens[tamgatest.Plain], demo),
			"of another group":           s.exchange(s.Tokens[tamgatest.Foreign], demo),
			"an operator of more":        s.exchange(s.Tokens[tamgatest.Ours], naming("unique_name", tamgatest.TwoGroup, time.Hour)),
			"garbage":                    s.exchange("garbage", demo),
			"an unsigned actor":          s.exchange(demo, demo),
			"nobody":                     nobodys,
			"nobody's id":                s.exchange(s.Tokens[tamgatest.Ours], naming("nameidentifier", tamgatest.Missing, time.Hour)),
			"no identifier":              s.exchange(s.Tokens[tamgatest.Ours], naming("nameidentifier", "' OR 1=1 --\x00", time.Hour)),
			"the subject's own token":    s.exchange(s.Tokens[tamgatest.Ours], s.Token()),
			"swapped":                    s.exchange(demo, s.Tokens[tamgatest.Ours]),
			"a client without the right": s.form(url.Values{"grant_type": {exchangeGrant}, "client_id": {"app"}, "resource": {s.Dev.Resource}, "actor_token": {s.Tokens[tamgatest.Ours]}, "subject_token": {demo}, "subject_token_type": {jwtType}}),
		} {
			if a.Status != 400 || strings.Contains(a.Body, "access_token\"") {
				t.Errorf("%s: %v", name, a)
			}
		}
		if a := s.exchange(s.Tokens[tamgatest.Foreign], demo); a.Body != nobodys.Body {
			t.Errorf("a foreign user and nobody differ: %v, %v", a, nobodys)
		}
	})
	s.Walk(t, "Confusion", func(t *testing.T) {
		now := time.Now().Unix()
		good := fmt.Sprintf(`{"unique_name":"demo","nbf":%d,"exp":%d,"iat":%d}`, now, now+3600, now)
		times := func(nbf, exp, iat int64) string {
			return fmt.Sprintf(`{"unique_name":"demo","nbf":%d,"exp":%d,"iat":%d}`, nbf, exp, iat)
		}
		for name, subject := range map[string]string{
			"HS256":            unsigned(`{"alg":"HS256","typ":"JWT"}`, good),
			"ES256":            unsigned(`{"alg":"ES256","typ":"JWT"}`, good),
			"no algorithm":     unsigned(`{"typ":"JWT"}`, good),
			"NONE":             unsigned(`{"alg":"NONE","typ":"JWT"}`, good),
			"an access token":  unsigned(`{"alg":"none","typ":"at+jwt"}`, good),
			"critical":         unsigned(`{"alg":"none","typ":"JWT","crit":["x"]}`, good),
			"a signature":      unsigned(noneHeader, good) + "AAAA",
			"two parts":        strings.TrimSuffix(unsigned(noneHeader, good), "."),
			"four parts":       unsigned(noneHeader, good) + ".",
			"two values":       unsigned(noneHeader, good+good),
			"no JSON":          unsigned(noneHeader, "demo"),
			"both names":       unsigned(noneHeader, strings.Replace(good, "{", `{"nameidentifier":"x",`, 1)),
			"no name":          unsigned(noneHeader, strings.Replace(good, "unique_name", "name", 1)),
			"no times":         unsigned(noneHeader, `{"unique_name":"demo"}`),
			"expired":          unsigned(noneHeader, times(now-100, now-1, now-100)),
			"to come":          unsigned(noneHeader, times(now+3000, now+3600, now)),
			"issued later":     unsigned(noneHeader, times(now, now+3600, now+3000)),
			"more than a day":  unsigned(noneHeader, times(now, now+24*3600+1, now)),
			"a day of another": unsigned(noneHeader, times(now, now+3600, now-24*3600)),
			"endless":          unsigned(noneHeader, times(now, 1e18, now)),
			"too long":         unsigned(noneHeader, good) + strings.Repeat(" ", 9000),
			"nothing":          "..",
		} {
			if a := s.exchange(s.Tokens[tamgatest.Ours], subject); a.Status != 400 || s.read(a).Error != "invalid_request" {
				t.Errorf("%s: %v", name, a)
			}
		}
		if a := s.exchange(s.Tokens[tamgatest.Ours], unsigned(noneHeader, times(now, now+24*3600, now))); a.Status != 200 {
			t.Errorf("a day: %v", a)
		}
		// Nothing unsigned is taken anywhere else.
		bearer := unsigned(`{"alg":"none","typ":"at+jwt"}`, fmt.Sprintf(`{"iss":%q,"aud":%q,"exp":%d,"iat":%d,"jti":"x","nameid":%q,"unique_name":"demo"}`, s.Dev.IDPURL, s.Dev.Resource, now+60, now, s.Dev.User.ID))
		if s.works(bearer) || s.works(demo) {
			t.Error("the signing service takes an unsigned token")
		}
		s.Tokens["unsigned"] = bearer
		if a := s.Ask("unsigned", "GET", "/oauth/userinfo", ""); a.Status != 401 {
			t.Errorf("userinfo: %v", a)
		}
	})
	s.Walk(t, "EndsWithTheOperator", func(t *testing.T) {
		delegated := s.read(s.exchange(s.Tokens[tamgatest.TwoGroup], demo)).AccessToken
		if !s.works(delegated) {
			t.Fatal("it does not work")
		}
		s.Command("user", "lock", tamgatest.TwoGroup)
		if s.works(delegated) {
			t.Error("it outlives its operator")
		}
	})
}
