// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/judge"

	"tamga/internal/tamgatest"
)

func TestOpenIDClient(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	order := judge.OpenIDOrder{
		Issuer: s.Dev.IDPURL, RedirectURI: tamgatest.AppAddress, Login: "DEMO", Password: s.Dev.User.Password,
		Scope: "openid profile email offline_access",
	}
	for _, c := range []struct{ name, id, secret, method, resource string }{
		{"public", "app", "", "", ""},
		{"basic", "portal", tamgatest.AppSecret, "client_secret_basic", ""},
		{"post", "portal", tamgatest.AppSecret, "client_secret_post", s.Dev.Resource},
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
		if s.Works(got.AccessToken) != (c.resource != "") || s.Works(got.Refreshed) != (c.resource != "") {
			t.Errorf("%s: the access token opens the signing service: %v", c.name, s.Works(got.AccessToken))
		}
	}
}

func TestRefreshTokens(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	s.Walk(t, "Rotation", func(t *testing.T) {
		first := s.Offline("tamga-dev")
		if list := s.Command("user", "sessions", "demo"); strings.Count(list, "\ntamga-dev  dss offline_access  password  ") != 1 {
			t.Errorf("sessions: %s", list)
		}
		second := s.Read(s.Refresh("tamga-dev", first.RefreshToken))
		if second.RefreshToken == first.RefreshToken || !s.Works(second.AccessToken) || second.ExpiresIn != 300 {
			t.Fatalf("%+v", second)
		}
		if a := s.Refresh("tamga-dev", first.RefreshToken); a.Status != 400 || s.Read(a).Error != "invalid_grant" {
			t.Errorf("a spent one: %v", a)
		}
		for name, token := range map[string]string{"first": first.AccessToken, "second": second.AccessToken} {
			if s.Works(token) {
				t.Errorf("after a replay the %s access token works", name)
			}
		}
		if a := s.Refresh("tamga-dev", second.RefreshToken); a.Status != 400 {
			t.Errorf("after a replay: %v", a)
		}
	})
	s.Walk(t, "AnotherClient", func(t *testing.T) {
		first := s.Offline("tamga-dev")
		if a := s.Refresh("page", first.RefreshToken); a.Status != 400 || s.Read(a).Error != "invalid_grant" {
			t.Errorf("%v", a)
		}
	})
	s.Walk(t, "TogetherExactlyOne", func(t *testing.T) {
		first := s.Offline("tamga-dev")
		var wg sync.WaitGroup
		answers := make([]tamgatest.Answer, 32)
		for i := range answers {
			wg.Go(func() { answers[i] = s.Refresh("tamga-dev", first.RefreshToken) })
		}
		wg.Wait()
		won := 0
		for _, a := range answers {
			if a.Status == 200 {
				won++
				if s.Works(s.Read(a).AccessToken) {
					t.Error("the winner's token outlived the replay")
				}
			} else if s.Read(a).Error != "invalid_grant" {
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
			first := s.Offline("tamga-dev")
			end()
			if a := s.Refresh("tamga-dev", first.RefreshToken); a.Status != 400 || s.Read(a).Error != "invalid_grant" {
				t.Errorf("%s: %v", name, a)
			}
			if s.Works(first.AccessToken) {
				t.Errorf("%s: the access token works", name)
			}
		}
	})
}

func TestTokenExchange(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	demo := tamgatest.Naming("unique_name", "Demo", time.Hour)
	s.Walk(t, "AsClientsDo", func(t *testing.T) {
		for _, subject := range []string{demo, tamgatest.Naming("nameidentifier", s.Dev.User.ID, time.Hour)} {
			a := s.Exchange(s.Tokens[tamgatest.Ours], subject)
			got := s.Read(a)
			if a.Status != 200 || !s.Works(got.AccessToken) || got.RefreshToken != "" || got.ExpiresIn > 300 {
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
			if a := s.Exchange(got.AccessToken, demo); a.Status != 400 {
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
		unknown := s.Exchange(s.Tokens[tamgatest.Ours], tamgatest.Naming("unique_name", "unknown-user", time.Hour))
		for name, a := range map[string]tamgatest.Answer{
			"no operator":                s.Exchange(s.Tokens[tamgatest.Plain], demo),
			"of another group":           s.Exchange(s.Tokens[tamgatest.Foreign], demo),
			"an operator of more":        s.Exchange(s.Tokens[tamgatest.Ours], tamgatest.Naming("unique_name", tamgatest.TwoGroup, time.Hour)),
			"garbage":                    s.Exchange("garbage", demo),
			"an unsigned actor":          s.Exchange(demo, demo),
			"an unknown user":            unknown,
			"an unknown id":              s.Exchange(s.Tokens[tamgatest.Ours], tamgatest.Naming("nameidentifier", tamgatest.Missing, time.Hour)),
			"no identifier":              s.Exchange(s.Tokens[tamgatest.Ours], tamgatest.Naming("nameidentifier", "' OR 1=1 --\x00", time.Hour)),
			"the subject's own token":    s.Exchange(s.Tokens[tamgatest.Ours], s.Token()),
			"swapped":                    s.Exchange(demo, s.Tokens[tamgatest.Ours]),
			"a client without the right": s.Form(url.Values{"grant_type": {tamgatest.ExchangeGrant}, "client_id": {"app"}, "resource": {s.Dev.Resource}, "actor_token": {s.Tokens[tamgatest.Ours]}, "subject_token": {demo}, "subject_token_type": {tamgatest.JWTType}}),
		} {
			if a.Status != 400 || strings.Contains(a.Body, "access_token\"") {
				t.Errorf("%s: %v", name, a)
			}
		}
		if a := s.Exchange(s.Tokens[tamgatest.Foreign], demo); a.Body != unknown.Body {
			t.Errorf("a foreign user and an unknown one differ: %v, %v", a, unknown)
		}
	})
	s.Walk(t, "Confusion", func(t *testing.T) {
		now := time.Now().Unix()
		good := fmt.Sprintf(`{"unique_name":"demo","nbf":%d,"exp":%d,"iat":%d}`, now, now+3600, now)
		times := func(nbf, exp, iat int64) string {
			return fmt.Sprintf(`{"unique_name":"demo","nbf":%d,"exp":%d,"iat":%d}`, nbf, exp, iat)
		}
		for name, subject := range map[string]string{
			"HS256":            tamgatest.Unsigned(`{"alg":"HS256","typ":"JWT"}`, good),
			"ES256":            tamgatest.Unsigned(`{"alg":"ES256","typ":"JWT"}`, good),
			"no algorithm":     tamgatest.Unsigned(`{"typ":"JWT"}`, good),
			"NONE":             tamgatest.Unsigned(`{"alg":"NONE","typ":"JWT"}`, good),
			"an access token":  tamgatest.Unsigned(`{"alg":"none","typ":"at+jwt"}`, good),
			"critical":         tamgatest.Unsigned(`{"alg":"none","typ":"JWT","crit":["x"]}`, good),
			"a signature":      tamgatest.Unsigned(tamgatest.NoneHeader, good) + "AAAA",
			"two parts":        strings.TrimSuffix(tamgatest.Unsigned(tamgatest.NoneHeader, good), "."),
			"four parts":       tamgatest.Unsigned(tamgatest.NoneHeader, good) + ".",
			"two values":       tamgatest.Unsigned(tamgatest.NoneHeader, good+good),
			"no JSON":          tamgatest.Unsigned(tamgatest.NoneHeader, "demo"),
			"both names":       tamgatest.Unsigned(tamgatest.NoneHeader, strings.Replace(good, "{", `{"nameidentifier":"x",`, 1)),
			"no name":          tamgatest.Unsigned(tamgatest.NoneHeader, strings.Replace(good, "unique_name", "name", 1)),
			"no times":         tamgatest.Unsigned(tamgatest.NoneHeader, `{"unique_name":"demo"}`),
			"expired":          tamgatest.Unsigned(tamgatest.NoneHeader, times(now-100, now-1, now-100)),
			"to come":          tamgatest.Unsigned(tamgatest.NoneHeader, times(now+3000, now+3600, now)),
			"issued later":     tamgatest.Unsigned(tamgatest.NoneHeader, times(now, now+3600, now+3000)),
			"more than a day":  tamgatest.Unsigned(tamgatest.NoneHeader, times(now, now+24*3600+1, now)),
			"a day of another": tamgatest.Unsigned(tamgatest.NoneHeader, times(now, now+3600, now-24*3600)),
			"endless":          tamgatest.Unsigned(tamgatest.NoneHeader, times(now, 1e18, now)),
			"too long":         tamgatest.Unsigned(tamgatest.NoneHeader, good) + strings.Repeat(" ", 9000),
			"nothing":          "..",
		} {
			if a := s.Exchange(s.Tokens[tamgatest.Ours], subject); a.Status != 400 || s.Read(a).Error != "invalid_request" {
				t.Errorf("%s: %v", name, a)
			}
		}
		if a := s.Exchange(s.Tokens[tamgatest.Ours], tamgatest.Unsigned(tamgatest.NoneHeader, times(now, now+24*3600, now))); a.Status != 200 {
			t.Errorf("a day: %v", a)
		}
		// Nothing unsigned is taken anywhere else.
		bearer := tamgatest.Unsigned(`{"alg":"none","typ":"at+jwt"}`, fmt.Sprintf(`{"iss":%q,"aud":%q,"exp":%d,"iat":%d,"jti":"x","nameid":%q,"unique_name":"demo"}`, s.Dev.IDPURL, s.Dev.Resource, now+60, now, s.Dev.User.ID))
		if s.Works(bearer) || s.Works(demo) {
			t.Error("the signing service takes an unsigned token")
		}
		s.Tokens["unsigned"] = bearer
		if a := s.Ask("unsigned", "GET", "/oauth/userinfo", ""); a.Status != 401 {
			t.Errorf("userinfo: %v", a)
		}
	})
	s.Walk(t, "EndsWithTheOperator", func(t *testing.T) {
		delegated := s.Read(s.Exchange(s.Tokens[tamgatest.TwoGroup], demo)).AccessToken
		if !s.Works(delegated) {
			t.Fatal("it does not work")
		}
		s.Command("user", "lock", tamgatest.TwoGroup)
		if s.Works(delegated) {
			t.Error("it outlives its operator")
		}
	})
}

// signIn is a server with applications of every kind, and its sign-in pages.
type signIn struct{ *tamgatest.SignIn }

func startSignIn(t *testing.T, more ...string) *signIn {
	t.Helper()
	return &signIn{tamgatest.StartSignIn(t, more...)}
}
