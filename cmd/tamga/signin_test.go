package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/judge"
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
	*umsWorld
	settings []string
}

func startSignIn(t *testing.T, more ...string) *signIn {
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
	settings := append([]string{"--set", clients}, more...)
	return &signIn{startUMS(t, settings...), settings}
}

// form sends a form to the token endpoint.
func (s *signIn) form(values url.Values, headers ...string) umsAnswer {
	s.t.Helper()
	return s.ask(nobody, "POST", "/oauth/token", values.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
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

func (s *signIn) tokens(a umsAnswer) (t tokenAnswer) {
	s.t.Helper()
	a.into(s.t, &t)
	return t
}

// offline signs the user demo in so that they stay.
func (s *signIn) offline(client string) tokenAnswer {
	s.t.Helper()
	a := s.form(url.Values{
		"grant_type": {"password"}, "username": {s.dev.User.Login}, "password": {s.dev.User.Password},
		"client_id": {client}, "resource": {s.dev.Resource}, "scope": {"dss offline_access"},
	})
	t := s.tokens(a)
	if a.status != 200 || t.RefreshToken == "" || t.Scope != "dss offline_access" {
		s.t.Fatalf("%v", a)
	}
	return t
}

func (s *signIn) refresh(client, token string) umsAnswer {
	s.t.Helper()
	return s.form(url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}})
}

// works reports whether an access token opens the signing service.
func (s *signIn) works(token string) bool {
	s.t.Helper()
	status, _ := s.do(s.t.Context(), "GET", s.dev.BaseURL+"/api/certificates", token, nil)
	return status == 200
}

func TestOpenIDClient(t *testing.T) {
	s := startSignIn(t)
	order := judge.OpenIDOrder{
		Issuer: s.idp, RedirectURI: appAddress, Login: "DEMO", Password: s.dev.User.Password,
		Scope: "openid profile email offline_access",
	}
	for _, c := range []struct{ name, id, secret, method, resource string }{
		{"public", "app", "", "", ""},
		{"basic", "portal", appSecret, "client_secret_basic", ""},
		{"post", "portal", appSecret, "client_secret_post", s.dev.Resource},
	} {
		order.ClientID, order.ClientSecret, order.Method, order.Resource = c.id, c.secret, c.method, c.resource
		got := judge.OpenID(t, order)
		for name, want := range map[string]any{"sub": s.dev.User.ID, "aud": c.id, "iss": s.idp, "preferred_username": "demo"} {
			if got.Claims[name] != want {
				t.Errorf("%s: claim %s is %v, want %v", c.name, name, got.Claims[name], want)
			}
		}
		want := map[string]any{"sub": s.dev.User.ID, "preferred_username": "demo", "name": "Demo User"}
		if d := cmp.Diff(want, got.UserInfo); d != "" {
			t.Errorf("%s: userinfo %s", c.name, d)
		}
		if got.Scope != "openid profile offline_access" || !got.Rotated {
			t.Errorf("%s: scope %q, rotated %v", c.name, got.Scope, got.Rotated)
		}
		// Who only asked who somebody is has nothing to sign with.
		if s.works(got.AccessToken) != (c.resource != "") || s.works(got.Refreshed) != (c.resource != "") {
			t.Errorf("%s: the access token opens the signing service: %v", c.name, s.works(got.AccessToken))
		}
	}
}

func TestRefreshTokens(t *testing.T) {
	s := startSignIn(t)
	s.walk(t, "Rotation", func(t *testing.T) {
		first := s.offline("tamga-dev")
		second := s.tokens(s.refresh("tamga-dev", first.RefreshToken))
		if second.RefreshToken == first.RefreshToken || !s.works(second.AccessToken) || second.ExpiresIn != 300 {
			t.Fatalf("%+v", second)
		}
		if a := s.refresh("tamga-dev", first.RefreshToken); a.status != 400 || s.tokens(a).Error != "invalid_grant" {
			t.Errorf("a spent one: %v", a)
		}
		for name, token := range map[string]string{"first": first.AccessToken, "second": second.AccessToken} {
			if s.works(token) {
				t.Errorf("after a replay the %s access token works", name)
			}
		}
		if a := s.refresh("tamga-dev", second.RefreshToken); a.status != 400 {
			t.Errorf("after a replay: %v", a)
		}
	})
	s.walk(t, "AnotherClient", func(t *testing.T) {
		first := s.offline("tamga-dev")
		if a := s.refresh("page", first.RefreshToken); a.status != 400 || s.tokens(a).Error != "invalid_grant" {
			t.Errorf("%v", a)
		}
	})
	s.walk(t, "TogetherExactlyOne", func(t *testing.T) {
		first := s.offline("tamga-dev")
		var wg sync.WaitGroup
		answers := make([]umsAnswer, 32)
		for i := range answers {
			wg.Go(func() { answers[i] = s.refresh("tamga-dev", first.RefreshToken) })
		}
		wg.Wait()
		won := 0
		for _, a := range answers {
			if a.status == 200 {
				won++
				if s.works(s.tokens(a).AccessToken) {
					t.Error("the winner's token outlived the replay")
				}
			} else if s.tokens(a).Error != "invalid_grant" {
				t.Errorf("%v", a)
			}
		}
		if won != 1 {
			t.Errorf("%d of %d got a token, want 1", won, len(answers))
		}
	})
	s.walk(t, "WhatEndsThem", func(t *testing.T) {
		id := s.dev.User.ID
		for name, end := range map[string]func(){
			"revoked": func() { s.ok(ours, "POST", "/ums/user/"+id+"/grants/revoke", "") },
			"locked": func() {
				s.ok(ours, "POST", "/ums/user/"+id+"/lockout?lock=True", "")
				s.ok(ours, "POST", "/ums/user/"+id+"/lockout?lock=False", "")
			},
			"a method more": func() {
				s.ok(ours, "POST", "/ums/user/"+id+"/authmethod/oath", "{}")
				s.ok(ours, "DELETE", "/ums/user/"+id+"/authmethod/oath", "")
			},
		} {
			first := s.offline("tamga-dev")
			end()
			if a := s.refresh("tamga-dev", first.RefreshToken); a.status != 400 || s.tokens(a).Error != "invalid_grant" {
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

func (s *signIn) exchange(actor, subject string) umsAnswer {
	s.t.Helper()
	return s.form(url.Values{
		"grant_type": {exchangeGrant}, "resource": {strings.ToUpper(s.dev.Resource)}, "actor_token": {actor}, "actor_token_type": {jwtType},
		"subject_token": {subject}, "subject_token_type": {jwtType},
	}, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s.dev.ClientID+":")))
}

func TestTokenExchange(t *testing.T) {
	s := startSignIn(t)
	demo := naming("unique_name", "Demo", time.Hour)
	s.walk(t, "AsClientsDo", func(t *testing.T) {
		for _, subject := range []string{demo, naming("nameidentifier", s.dev.User.ID, time.Hour)} {
			a := s.exchange(s.tokens_(ours), subject)
			got := s.tokens(a)
			if a.status != 200 || !s.works(got.AccessToken) || got.RefreshToken != "" || got.ExpiresIn > 300 {
				t.Fatalf("%v", a)
			}
			var claims map[string]any
			payload, err := base64.RawURLEncoding.DecodeString(strings.Split(got.AccessToken, ".")[1])
			if err != nil || json.Unmarshal(payload, &claims) != nil {
				t.Fatal(err)
			}
			act := map[string]any{"sub": s.dev.Operator.ID, "unique_name": "operator"}
			if d := cmp.Diff(act, claims["act"]); d != "" || claims["unique_name"] != "demo" || claims["nameid"] != s.dev.User.ID {
				t.Errorf("%v: %s", claims, d)
			}
			// It is no operator's, and no actor's.
			if a := s.exchange(got.AccessToken, demo); a.status != 400 {
				t.Errorf("as an actor token: %v", a)
			}
			s.umsWorld.tokens["delegated"] = got.AccessToken
			if a := s.ask("delegated", "GET", "/ums/user/"+s.dev.User.ID, ""); a.status != 403 {
				t.Errorf("in user management: %v", a)
			}
		}
		journal := s.tamga("audit", "--json", "--operation", "Token", "--user", s.dev.User.ID)
		if !strings.Contains(journal, `"object":"`+s.dev.User.ID+`"`) || !strings.Contains(journal, `"login":"operator"`) {
			t.Errorf("the journal does not say who acts for whom: %s", journal)
		}
		if journal := s.tamga("audit", "--json", "--login", "demo"); !strings.Contains(journal, `"actor":"operator"`) {
			t.Errorf("the journal does not say who acted: %s", journal)
		}
	})
	s.walk(t, "WhoMay", func(t *testing.T) {
		nobodys := s.exchange(s.tokens_(ours), naming("unique_name", "nobody-at-all", time.Hour))
		for name, a := range map[string]umsAnswer{
			"no operator":                s.exchange(s.tokens_(plain), demo),
			"of another group":           s.exchange(s.tokens_(foreign), demo),
			"an operator of more":        s.exchange(s.tokens_(ours), naming("unique_name", twoGroup, time.Hour)),
			"garbage":                    s.exchange("garbage", demo),
			"an unsigned actor":          s.exchange(demo, demo),
			"nobody":                     nobodys,
			"nobody's id":                s.exchange(s.tokens_(ours), naming("nameidentifier", missing, time.Hour)),
			"no identifier":              s.exchange(s.tokens_(ours), naming("nameidentifier", "' OR 1=1 --\x00", time.Hour)),
			"the subject's own token":    s.exchange(s.tokens_(ours), s.token()),
			"swapped":                    s.exchange(demo, s.tokens_(ours)),
			"a client without the right": s.form(url.Values{"grant_type": {exchangeGrant}, "client_id": {"app"}, "resource": {s.dev.Resource}, "actor_token": {s.tokens_(ours)}, "subject_token": {demo}, "subject_token_type": {jwtType}}),
		} {
			if a.status != 400 || strings.Contains(a.body, "access_token\"") {
				t.Errorf("%s: %v", name, a)
			}
		}
		if a := s.exchange(s.tokens_(foreign), demo); a.body != nobodys.body {
			t.Errorf("a foreign user and nobody differ: %v, %v", a, nobodys)
		}
	})
	s.walk(t, "Confusion", func(t *testing.T) {
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
			if a := s.exchange(s.tokens_(ours), subject); a.status != 400 || s.tokens(a).Error != "invalid_request" {
				t.Errorf("%s: %v", name, a)
			}
		}
		if a := s.exchange(s.tokens_(ours), unsigned(noneHeader, times(now, now+24*3600, now))); a.status != 200 {
			t.Errorf("a day: %v", a)
		}
		// Nothing unsigned is taken anywhere else.
		bearer := unsigned(`{"alg":"none","typ":"at+jwt"}`, fmt.Sprintf(`{"iss":%q,"aud":%q,"exp":%d,"iat":%d,"jti":"x","nameid":%q,"unique_name":"demo"}`, s.idp, s.dev.Resource, now+60, now, s.dev.User.ID))
		if s.works(bearer) || s.works(demo) {
			t.Error("the signing service takes an unsigned token")
		}
		s.umsWorld.tokens["unsigned"] = bearer
		if a := s.ask("unsigned", "GET", "/oauth/userinfo", ""); a.status != 401 {
			t.Errorf("userinfo: %v", a)
		}
	})
	s.walk(t, "EndsWithTheOperator", func(t *testing.T) {
		delegated := s.tokens(s.exchange(s.tokens_(twoGroup), demo)).AccessToken
		if !s.works(delegated) {
			t.Fatal("it does not work")
		}
		s.tamga("user", "lock", twoGroup)
		if s.works(delegated) {
			t.Error("it outlives its operator")
		}
	})
}

// tokens_ is the access token of a caller of umsWorld.
func (s *signIn) tokens_(who string) string { return s.umsWorld.tokens[who] }

var (
	ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)
	codeForm    = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// browser keeps cookies and follows nothing.
type browser struct {
	s      *signIn
	cookie string
}

func (b *browser) send(method, address, body string, headers ...string) (*http.Response, string) {
	b.s.t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		b.s.t.Fatal(err)
	}
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		b.s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	if c := response.Cookies(); len(c) > 0 {
		b.cookie = c[0].Name + "=" + c[0].Value
	}
	return response, string(text)
}

// challenge is that of RFC 7636, appendix B, and verifier its verifier.
const (
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)

// asked is a request that the application app makes.
func (s *signIn) asked(change ...string) string {
	q := url.Values{
		"client_id": {"app"}, "response_type": {"code"}, "redirect_uri": {appAddress}, "scope": {"dss"}, "resource": {s.dev.Resource},
		"state": {"st&te"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		q.Set(change[i], change[i+1])
		if change[i+1] == "" {
			q.Del(change[i])
		}
	}
	return s.idp + "/oauth/authorize?" + q.Encode()
}

func (b *browser) logIn(page string, change ...string) (*http.Response, string) {
	b.s.t.Helper()
	m := ticketField.FindStringSubmatch(page)
	if m == nil {
		b.s.t.Fatalf("no login page: %s", page)
	}
	form := url.Values{"ticket": {m[1]}, "login": {b.s.dev.User.Login}, "password": {b.s.dev.User.Password}}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return b.send("POST", b.s.idp+"/oauth/login", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func (s *signIn) exchangeCode(code string, change ...string) umsAnswer {
	s.t.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {"app"}, "code": {code}, "redirect_uri": {appAddress}, "code_verifier": {verifier}}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return s.form(form)
}

// newCode signs in at the page and returns the code.
func (s *signIn) newCode(change ...string) string {
	s.t.Helper()
	b := &browser{s: s}
	_, page := b.send("GET", s.asked(change...), "")
	response, text := b.logIn(page)
	to, err := url.Parse(response.Header.Get("Location"))
	if err != nil || response.StatusCode != 303 {
		s.t.Fatalf("%d %s, %v", response.StatusCode, text, err)
	}
	return to.Query().Get("code")
}

func TestLoginPage(t *testing.T) {
	s := startSignIn(t)
	s.walk(t, "Code", func(t *testing.T) {
		b := &browser{s: s}
		response, page := b.send("GET", s.asked("login_hint", `"><script>alert(1)</script>`), "", "Accept-Language", "ru-RU,ru;q=0.9,en;q=0.8")
		h := response.Header
		if response.StatusCode != 200 || !strings.Contains(page, `lang="ru"`) || !strings.Contains(page, "Пароль") || strings.Contains(page, "<script") {
			t.Errorf("%d %s", response.StatusCode, page)
		}
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") || !strings.HasSuffix(policy, "form-action "+s.url+" https://app.example") ||
			h.Get("X-Frame-Options") != "DENY" || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("headers %v", h)
		}
		if c := response.Cookies(); len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode {
			t.Errorf("cookies %v", c)
		}
		response, page = b.logIn(page, "password", "wrong")
		if response.StatusCode != 401 || !strings.Contains(page, "The name or the password is not correct") || strings.Contains(page, "wrong") {
			t.Errorf("%d %s", response.StatusCode, page)
		}
		response, page = b.logIn(page)
		to, found := strings.CutPrefix(response.Header.Get("Location"), appAddress+"?code=")
		code, state, _ := strings.Cut(to, "&")
		if response.StatusCode != 303 || !found || !codeForm.MatchString(code) || state != "state=st%26te" {
			t.Fatalf("%d %q %s", response.StatusCode, response.Header.Get("Location"), page)
		}
		got := s.tokens(s.exchangeCode(code))
		if !s.works(got.AccessToken) || got.IDToken != "" {
			t.Errorf("%+v", got)
		}
		if a := s.exchangeCode(code); a.status != 400 || s.works(got.AccessToken) {
			t.Errorf("twice: %v; the token works: %v", a, s.works(got.AccessToken))
		}
	})
	s.walk(t, "CodesTogether", func(t *testing.T) {
		code := s.newCode("scope", "dss offline_access")
		answers := make([]umsAnswer, 16)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = s.exchangeCode(code) })
		}
		wg.Wait()
		won := 0
		for _, a := range answers {
			if a.status != 200 {
				continue
			}
			won++
			got := s.tokens(a)
			if s.works(got.AccessToken) || s.refresh("app", got.RefreshToken).status != 400 {
				t.Error("what the code was exchanged for outlives its replay")
			}
		}
		if won != 1 {
			t.Errorf("%d of 16 exchanged one code", won)
		}
	})
	s.walk(t, "CodesOfOthers", func(t *testing.T) {
		for name, change := range map[string][]string{
			"no verifier":      {"code_verifier", ""},
			"another verifier": {"code_verifier", strings.Repeat("x", 43)},
			"the challenge":    {"code_verifier", challenge},
			"another client":   {"client_id", "page"},
			"another address":  {"redirect_uri", appAddress + "?a=b"},
			"no address":       {"redirect_uri", ""},
		} {
			code := s.newCode()
			if a := s.exchangeCode(code, change...); a.status != 400 || s.tokens(a).Error != "invalid_grant" {
				t.Errorf("%s: %v", name, a)
			}
		}
		// A verifier for a code without a challenge: the code was put into the session.
		b := &browser{s: s}
		_, page := b.send("GET", s.asked("client_id", "page", "code_challenge", "", "code_challenge_method", ""), "")
		response, _ := b.logIn(page)
		to, _ := url.Parse(response.Header.Get("Location"))
		if a := s.exchangeCode(to.Query().Get("code"), "client_id", "page"); a.status != 400 {
			t.Errorf("a verifier without a challenge: %v", a)
		}
	})
	s.walk(t, "NoOpenRedirects", func(t *testing.T) {
		for _, address := range []string{
			"", "https://evil.example/", "https://app.example/cb/", "https://app.example/cb/../x", "https://app.example/CB", "https://app.example/cb#x",
			"https://app.example/cb?x=y", "https://app.example:443/cb", "https://app.example@evil.example/cb", "http://app.example/cb", "//app.example/cb",
			"https://app.example/cb%00", "https://app.example/cb\r\nX: y", "javascript:alert(1)", "/cb", "com.example.app:/cb2",
		} {
			b := &browser{s: s}
			for _, more := range [][]string{nil, {"scope", "nonsense"}, {"prompt", "none"}, {"response_type", "x"}} {
				response, text := b.send("GET", s.asked(append([]string{"redirect_uri", address}, more...)...), "")
				if response.StatusCode != 400 || response.Header.Get("Location") != "" {
					t.Errorf("%q %v: %d %s", address, more, response.StatusCode, text)
				}
			}
		}
		b := &browser{s: s}
		response, text := b.send("GET", s.asked()+"&redirect_uri=https://evil.example/", "")
		if response.StatusCode != 400 || response.Header.Get("Location") != "" {
			t.Errorf("two addresses: %d %s", response.StatusCode, text)
		}
	})
	s.walk(t, "Refusals", func(t *testing.T) {
		for _, c := range []struct {
			name   string
			change []string
			want   string
		}{
			{"no challenge", []string{"code_challenge", "", "code_challenge_method", ""}, "?error=invalid_request"},
			{"plain", []string{"code_challenge_method", "plain"}, "?error=invalid_request"},
			{"no method", []string{"code_challenge_method", ""}, "?error=invalid_request"},
			{"a short challenge", []string{"code_challenge", "x"}, "?error=invalid_request"},
			{"id_token", []string{"response_type", "id_token"}, "?error=unsupported_response_type"},
			{"implicit", []string{"response_type", "token"}, "#error=unauthorized_client"},
			{"scope", []string{"scope", "admin"}, "?error=invalid_scope"},
			{"resource", []string{"resource", "urn:x"}, "?error=invalid_request"},
			{"no resource", []string{"resource", ""}, "?error=invalid_request"},
			{"silently", []string{"prompt", "none"}, "?error=login_required"},
			{"request object", []string{"request", "x"}, "?error=request_not_supported"},
			{"form_post", []string{"response_mode", "form_post"}, "?error=invalid_request"},
		} {
			b := &browser{s: s}
			response, text := b.send("GET", s.asked(c.change...), "")
			if to := response.Header.Get("Location"); response.StatusCode != 302 || !strings.HasPrefix(to, appAddress+c.want) || !strings.HasSuffix(to, "&state=st%26te") {
				t.Errorf("%s: %d %q %s", c.name, response.StatusCode, to, text)
			}
		}
	})
	s.walk(t, "ForgedForms", func(t *testing.T) {
		victim, attacker := &browser{s: s}, &browser{s: s}
		_, page := victim.send("GET", s.asked(), "")
		_, theirs := attacker.send("GET", s.asked(), "")
		for name, try := range map[string]func() (*http.Response, string){
			"the attacker's ticket in the victim's browser": func() (*http.Response, string) { return victim.logIn(theirs) },
			"no cookie": func() (*http.Response, string) { return (&browser{s: s}).logIn(page) },
			"two cookies": func() (*http.Response, string) {
				return (&browser{s: s, cookie: victim.cookie + "; " + attacker.cookie}).logIn(page)
			},
			"a chosen cookie": func() (*http.Response, string) {
				return (&browser{s: s, cookie: "tamga-sign-in=" + strings.Repeat("0", 32)}).logIn(page)
			},
			"a changed ticket": func() (*http.Response, string) {
				m := ticketField.FindStringSubmatch(page)[1]
				return victim.logIn(page, "ticket", m[:len(m)-8]+"AAAAAAAA")
			},
		} {
			response, text := try()
			if response.StatusCode != 403 || response.Header.Get("Location") != "" || !strings.Contains(text, `role="alert"`) {
				t.Errorf("%s: %d %s", name, response.StatusCode, text)
			}
		}
		m := ticketField.FindStringSubmatch(page)[1]
		form := url.Values{"ticket": {m}, "login": {s.dev.User.Login}, "password": {s.dev.User.Password}}.Encode()
		if response, _ := victim.send("POST", s.idp+"/oauth/login", form, "Sec-Fetch-Site", "cross-site"); response.StatusCode != 403 {
			t.Errorf("from another site: %d", response.StatusCode)
		}
		// The ticket of the form is good on the form alone.
		if response, _ := victim.send("GET", s.idp+"/oauth/external?code=x&state="+url.QueryEscape(m), ""); response.StatusCode != 403 {
			t.Errorf("as the state of another provider: %d", response.StatusCode)
		}
		if response, _ := victim.logIn(page); response.StatusCode != 303 {
			t.Errorf("the victim in person: %d", response.StatusCode)
		}
		before := victim.cookie
		if victim.send("GET", s.asked(), ""); victim.cookie == before {
			t.Error("a cookie that was there before is used again")
		}
	})
	s.walk(t, "HostHeader", func(t *testing.T) {
		b := &browser{s: s}
		for _, headers := range [][]string{{"Host", "evil.example"}, {"X-Forwarded-Host", "evil.example"}, {"Forwarded", "host=evil.example"}} {
			for _, address := range []string{s.asked(), s.idp + "/.well-known/openid-configuration"} {
				response, text := b.send("GET", address, "", headers...)
				if response.StatusCode != 200 || strings.Contains(text, "evil") || strings.Contains(fmt.Sprint(response.Header), "evil") {
					t.Errorf("%v: %d %s", headers, response.StatusCode, text)
				}
			}
		}
	})
	s.walk(t, "WithAToken", func(t *testing.T) {
		b := &browser{s: s}
		address := s.asked("client_id", "tamga-dev", "redirect_uri", oobAddress, "state", "", "code_challenge", "", "code_challenge_method", "", "scope", "dss offline_access")
		response, text := b.send("GET", address, "", "Authorization", "Bearer "+s.token())
		code, found := strings.CutPrefix(response.Header.Get("Location"), oobAddress+"?code=")
		if response.StatusCode != 302 || !found || !codeForm.MatchString(code) {
			t.Fatalf("%d %s", response.StatusCode, text)
		}
		a := s.exchangeCode(code, "client_id", "tamga-dev", "redirect_uri", oobAddress, "code_verifier", "")
		if got := s.tokens(a); !s.works(got.AccessToken) || got.RefreshToken != "" {
			t.Errorf("%v", a)
		}
		delegated := s.tokens(s.exchange(s.tokens_(ours), naming("unique_name", "demo", time.Hour))).AccessToken
		for name, c := range map[string]struct{ address, token string }{
			"garbage":        {address, "garbage"},
			"another client": {s.asked(), s.token()},
			"delegated":      {address, delegated},
		} {
			if response, text := b.send("GET", c.address, "", "Authorization", "Bearer "+c.token); response.StatusCode != 400 || !strings.Contains(text, "access_denied") {
				t.Errorf("%s: %d %s", name, response.StatusCode, text)
			}
		}
	})
	s.walk(t, "TokenInTheFragment", func(t *testing.T) {
		b := &browser{s: s}
		_, page := b.send("GET", s.asked("client_id", "page", "response_type", "token", "scope", "dss offline_access", "code_challenge", "", "code_challenge_method", ""), "")
		response, text := b.logIn(page)
		to, err := url.Parse(response.Header.Get("Location"))
		if err != nil || to.RawQuery != "" {
			t.Fatalf("%d %s: %v", response.StatusCode, text, err)
		}
		got, err := url.ParseQuery(to.EscapedFragment())
		if err != nil || !s.works(got.Get("access_token")) || got.Get("expires_in") != "300" || got.Get("token_type") != "Bearer" || got.Get("state") != "st&te" || got.Get("scope") != "dss" {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// Guessing at the page and at the token endpoint is one guessing.
func TestOneBudgetOfGuesses(t *testing.T) {
	s := startSignIn(t, "--set", "passwords.attempts=6")
	b := &browser{s: s}
	_, page := b.send("GET", s.asked(), "")
	for range 3 {
		if response, _ := b.logIn(page, "password", "wrong"); response.StatusCode != 401 {
			t.Fatalf("%d", response.StatusCode)
		}
		if status, _ := s.grant("demo", "wrong"); status != 400 {
			t.Fatalf("%d", status)
		}
	}
	if response, _ := b.logIn(page); response.StatusCode != 401 {
		t.Errorf("the page lets in who is locked out: %d", response.StatusCode)
	}
	if status, _ := s.grant("demo", s.dev.User.Password); status != 400 {
		t.Errorf("the token endpoint lets in who is locked out: %d", status)
	}
}

func TestTokenKeysRotate(t *testing.T) {
	s := startSignIn(t, "--set", "tokens.key_overlap=0s")
	keys := func() []string {
		var set struct {
			Keys []struct {
				KID string `json:"kid"`
				KTY string `json:"kty"`
				D   string `json:"d"`
			} `json:"keys"`
		}
		s.ok(nobody, "GET", "/.well-known/jwks.json", "").into(t, &set)
		var ids []string
		for _, k := range set.Keys {
			if k.KTY != "EC" || k.D != "" {
				t.Errorf("key %+v", k)
			}
			ids = append(ids, k.KID)
		}
		return ids
	}
	first := keys()
	old := s.token()
	s.tamga("key", "rotate-tokens")
	// Another process signs with the new key at once; this one finds it when it meets it.
	fresh := s.tokenOfAnother()
	if !s.works(fresh) || !s.works(old) {
		t.Errorf("after a rotation the new token works: %v, the old one: %v", s.works(fresh), s.works(old))
	}
	if got := keys(); len(first) != 1 || len(got) != 2 || got[1] != first[0] {
		t.Errorf("keys %v, then %v", first, got)
	}
	s.tamga("key", "rotate-tokens", "--at-once")
	if token := s.tokenOfAnother(); !s.works(token) {
		t.Error("after a rotation at once the new token does not work")
	}
	if s.works(old) || s.works(fresh) {
		t.Error("what the keys that were taken away have signed still works")
	}
}

// tokenOfAnother starts another process over the same data, as another server behind
// one address, and signs demo in there.
func (s *signIn) tokenOfAnother() string {
	s.t.Helper()
	program, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	args := append([]string{"serve", "--dev", "--data", s.dir, "--listen", "127.0.0.1:0", "--set", "public_url=" + s.url}, s.settings...)
	other := startServer(s.t, program, args...)
	defer other.kill()
	response, err := http.PostForm(other.url+"/STS/oauth/token", url.Values{
		"grant_type": {"password"}, "username": {s.dev.User.Login}, "password": {s.dev.User.Password},
		"client_id": {s.dev.ClientID}, "resource": {s.dev.Resource},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	_, body := readAll(s.t, response)
	var t tokenAnswer
	if err := json.Unmarshal(body, &t); err != nil || t.AccessToken == "" {
		s.t.Fatalf("%s, %v", body, err)
	}
	return t.AccessToken
}
