// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/tamgatest"
)

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
	b.s.T.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		b.s.T.Fatal(err)
	}
	r.Header.Set("Accept-Language", "en")
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
		b.s.T.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.s.T.Fatal(err)
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
		"client_id": {"app"}, "response_type": {"code"}, "redirect_uri": {tamgatest.AppAddress}, "scope": {"dss"}, "resource": {s.Dev.Resource},
		"state": {"st&te"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		q.Set(change[i], change[i+1])
		if change[i+1] == "" {
			q.Del(change[i])
		}
	}
	return s.Dev.IDPURL + "/oauth/authorize?" + q.Encode()
}

func (b *browser) logIn(page string, change ...string) (*http.Response, string) {
	b.s.T.Helper()
	m := ticketField.FindStringSubmatch(page)
	if m == nil {
		b.s.T.Fatalf("no login page: %s", page)
	}
	form := url.Values{"ticket": {m[1]}, "login": {b.s.Dev.User.Login}, "password": {b.s.Dev.User.Password}}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return b.send("POST", b.s.Dev.IDPURL+"/oauth/login", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func (s *signIn) exchangeCode(code string, change ...string) tamgatest.Answer {
	s.T.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {"app"}, "code": {code}, "redirect_uri": {tamgatest.AppAddress}, "code_verifier": {verifier}}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return s.Form(form)
}

// newCode signs in at the page and returns the code.
func (s *signIn) newCode(change ...string) string {
	s.T.Helper()
	b := &browser{s: s}
	_, page := b.send("GET", s.asked(change...), "")
	response, text := b.logIn(page)
	to, err := url.Parse(response.Header.Get("Location"))
	if err != nil || response.StatusCode != 303 {
		s.T.Fatalf("%d %s, %v", response.StatusCode, text, err)
	}
	return to.Query().Get("code")
}

func TestLoginPage(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	for _, part := range []struct {
		name string
		try  func(*testing.T, *signIn)
	}{
		{"Code", pageCode},
		{"CodesTogether", pageCodesTogether},
		{"CodesOfOthers", pageCodesOfOthers},
		{"NoOpenRedirects", pageNoOpenRedirects},
		{"Refusals", pageRefusals},
		{"ForgedForms", pageForgedForms},
		{"HostHeader", pageHostHeader},
		{"WithAToken", pageWithAToken},
		{"TokenInTheFragment", pageTokenInTheFragment},
	} {
		s.Walk(t, part.name, func(t *testing.T) { part.try(t, s) })
	}
}

// pageCode tries a code from the page to the token, and once more.
func pageCode(t *testing.T, s *signIn) {
	b := &browser{s: s}
	response, page := b.send("GET", s.asked("login_hint", `"><script>alert(1)</script>`), "", "Accept-Language", "ru-RU,ru;q=0.9,en;q=0.8")
	h := response.Header
	if response.StatusCode != 200 || !strings.Contains(page, `lang="ru"`) || !strings.Contains(page, "Пароль") || strings.Contains(page, "<script") {
		t.Errorf("%d %s", response.StatusCode, page)
	}
	policy := h.Get("Content-Security-Policy")
	if !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") || !strings.HasSuffix(policy, "form-action "+s.URL+" https://app.example") ||
		h.Get("X-Frame-Options") != "DENY" || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("headers %v", h)
	}
	if c := response.Cookies(); len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode {
		t.Errorf("cookies %v", c)
	}
	response, page = b.logIn(page, "password", "wrong")
	if response.StatusCode != 401 || !strings.Contains(page, "The login or the password is not correct") || strings.Contains(page, "wrong") {
		t.Errorf("%d %s", response.StatusCode, page)
	}
	response, page = b.logIn(page)
	to, found := strings.CutPrefix(response.Header.Get("Location"), tamgatest.AppAddress+"?code=")
	code, state, _ := strings.Cut(to, "&")
	if response.StatusCode != 303 || !found || !codeForm.MatchString(code) || state != "state=st%26te" {
		t.Fatalf("%d %q %s", response.StatusCode, response.Header.Get("Location"), page)
	}
	got := s.Read(s.exchangeCode(code))
	if !s.Works(got.AccessToken) || got.IDToken != "" {
		t.Errorf("%+v", got)
	}
	if a := s.exchangeCode(code); a.Status != 400 || s.Works(got.AccessToken) {
		t.Errorf("twice: %v; the token works: %v", a, s.Works(got.AccessToken))
	}
}

// pageCodesTogether exchanges one code many times at once.
func pageCodesTogether(t *testing.T, s *signIn) {
	code := s.newCode("scope", "dss offline_access")
	answers := make([]tamgatest.Answer, 16)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = s.exchangeCode(code) })
	}
	wg.Wait()
	won := 0
	for _, a := range answers {
		if a.Status != 200 {
			continue
		}
		won++
		got := s.Read(a)
		if s.Works(got.AccessToken) || s.Refresh("app", got.RefreshToken).Status != 400 {
			t.Error("what the code was exchanged for outlives its replay")
		}
	}
	if won != 1 {
		t.Errorf("%d of 16 exchanged one code", won)
	}
}

// pageCodesOfOthers exchanges codes as another user.
func pageCodesOfOthers(t *testing.T, s *signIn) {
	for name, change := range map[string][]string{
		"no verifier":      {"code_verifier", ""},
		"another verifier": {"code_verifier", strings.Repeat("x", 43)},
		"the challenge":    {"code_verifier", challenge},
		"another client":   {"client_id", "page"},
		"another address":  {"redirect_uri", tamgatest.AppAddress + "?a=b"},
		"no address":       {"redirect_uri", ""},
	} {
		code := s.newCode()
		if a := s.exchangeCode(code, change...); a.Status != 400 || s.Read(a).Error != "invalid_grant" {
			t.Errorf("%s: %v", name, a)
		}
	}
	// A verifier for a code without a challenge: the code was put into the session.
	b := &browser{s: s}
	_, page := b.send("GET", s.asked("client_id", "page", "code_challenge", "", "code_challenge_method", ""), "")
	response, _ := b.logIn(page)
	to, _ := url.Parse(response.Header.Get("Location"))
	if a := s.exchangeCode(to.Query().Get("code"), "client_id", "page"); a.Status != 400 {
		t.Errorf("a verifier without a challenge: %v", a)
	}
}

// pageNoOpenRedirects names addresses that are not registered.
func pageNoOpenRedirects(t *testing.T, s *signIn) {
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
}

// pageRefusals asks for what is refused at the address of the application.
func pageRefusals(t *testing.T, s *signIn) {
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
		if to := response.Header.Get("Location"); response.StatusCode != 302 || !strings.HasPrefix(to, tamgatest.AppAddress+c.want) || !strings.HasSuffix(to, "&state=st%26te") {
			t.Errorf("%s: %d %q %s", c.name, response.StatusCode, to, text)
		}
	}
}

// pageForgedForms posts the form of another browser or site.
func pageForgedForms(t *testing.T, s *signIn) {
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
	form := url.Values{"ticket": {m}, "login": {s.Dev.User.Login}, "password": {s.Dev.User.Password}}.Encode()
	if response, _ := victim.send("POST", s.Dev.IDPURL+"/oauth/login", form, "Sec-Fetch-Site", "cross-site"); response.StatusCode != 403 {
		t.Errorf("from another site: %d", response.StatusCode)
	}
	// The ticket of the form is good on the form alone.
	if response, _ := victim.send("GET", s.Dev.IDPURL+"/oauth/external/main/return?code=x&state="+url.QueryEscape(m), ""); response.StatusCode != 403 {
		t.Errorf("as the state of another provider: %d", response.StatusCode)
	}
	if response, _ := victim.logIn(page); response.StatusCode != 303 {
		t.Errorf("the victim in person: %d", response.StatusCode)
	}
	before := victim.cookie
	if victim.send("GET", s.asked(), ""); victim.cookie == before {
		t.Error("a cookie that was there before is used again")
	}
}

// pageHostHeader names another host.
func pageHostHeader(t *testing.T, s *signIn) {
	b := &browser{s: s}
	for _, headers := range [][]string{{"Host", "evil.localhost"}, {"X-Forwarded-Host", "evil.example"}, {"Forwarded", "host=evil.example"}} {
		for _, address := range []string{s.asked(), s.Dev.IDPURL + "/.well-known/openid-configuration"} {
			response, text := b.send("GET", address, "", headers...)
			if response.StatusCode != 200 || strings.Contains(text, "evil") || strings.Contains(fmt.Sprint(response.Header), "evil") {
				t.Errorf("%v: %d %s", headers, response.StatusCode, text)
			}
		}
	}
}

// pageWithAToken gets a code with an access token instead of the page.
func pageWithAToken(t *testing.T, s *signIn) {
	b := &browser{s: s}
	address := s.asked("client_id", "tamga-dev", "redirect_uri", tamgatest.OOBAddress, "state", "", "code_challenge", "", "code_challenge_method", "", "scope", "dss offline_access")
	response, text := b.send("GET", address, "", "Authorization", "Bearer "+s.Token())
	code, found := strings.CutPrefix(response.Header.Get("Location"), tamgatest.OOBAddress+"?code=")
	if response.StatusCode != 302 || !found || !codeForm.MatchString(code) {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	a := s.exchangeCode(code, "client_id", "tamga-dev", "redirect_uri", tamgatest.OOBAddress, "code_verifier", "")
	if got := s.Read(a); !s.Works(got.AccessToken) || got.RefreshToken != "" {
		t.Errorf("%v", a)
	}
	delegated := s.Read(s.Exchange(s.Tokens[tamgatest.Ours], tamgatest.Naming("unique_name", "demo", time.Hour))).AccessToken
	portal := s.Read(s.Form(url.Values{
		"grant_type": {"password"}, "username": {s.Dev.User.Login}, "password": {s.Dev.User.Password},
		"client_id": {"portal"}, "client_secret": {tamgatest.AppSecret}, "resource": {s.Dev.Resource},
	})).AccessToken
	for name, c := range map[string]struct{ address, token string }{
		"garbage":        {address, "garbage"},
		"another client": {address, portal}, // which is not the default one
		"delegated":      {address, delegated},
	} {
		if response, text := b.send("GET", c.address, "", "Authorization", "Bearer "+c.token); response.StatusCode != 400 || !strings.Contains(text, "access_denied") {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
}

// pageTokenInTheFragment gets a token in the fragment.
func pageTokenInTheFragment(t *testing.T, s *signIn) {
	b := &browser{s: s}
	_, page := b.send("GET", s.asked("client_id", "page", "response_type", "token", "scope", "dss offline_access", "code_challenge", "", "code_challenge_method", ""), "")
	response, text := b.logIn(page)
	to, err := url.Parse(response.Header.Get("Location"))
	if err != nil || to.RawQuery != "" {
		t.Fatalf("%d %s: %v", response.StatusCode, text, err)
	}
	got, err := url.ParseQuery(to.EscapedFragment())
	if err != nil || !s.Works(got.Get("access_token")) || got.Get("expires_in") != "300" || got.Get("token_type") != "Bearer" || got.Get("state") != "st&te" || got.Get("scope") != "dss" {
		t.Errorf("%v, %v", got, err)
	}
}

// Guessing at the page and at the token endpoint is one guessing.
func TestOneBudgetOfGuesses(t *testing.T) {
	t.Parallel()
	s := startSignIn(t, "--set", "passwords.attempts=6")
	b := &browser{s: s}
	_, page := b.send("GET", s.asked(), "")
	for range 3 {
		if response, _ := b.logIn(page, "password", "wrong"); response.StatusCode != 401 {
			t.Fatalf("%d", response.StatusCode)
		}
		if status, _ := s.Grant("demo", "wrong"); status != 400 {
			t.Fatalf("%d", status)
		}
	}
	if response, _ := b.logIn(page); response.StatusCode != 401 {
		t.Errorf("the page lets in who is locked out: %d", response.StatusCode)
	}
	if status, _ := s.Grant("demo", s.Dev.User.Password); status != 400 {
		t.Errorf("the token endpoint lets in who is locked out: %d", status)
	}
}

func TestTokenKeysRotate(t *testing.T) {
	t.Parallel()
	s := startSignIn(t, "--set", "tokens.key_overlap=0s")
	keys := func() []string {
		var set struct {
			Keys []struct {
				KID string `json:"kid"`
				KTY string `json:"kty"`
				D   string `json:"d"`
			} `json:"keys"`
		}
		s.OK(tamgatest.Anonymous, "GET", "/.well-known/jwks.json", "").Into(t, &set)
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
	old := s.Token()
	s.Command("key", "rotate-tokens")
	// Another process signs with the new key at once; this one finds it when it meets it.
	fresh := s.tokenOfAnother()
	if !s.Works(fresh) || !s.Works(old) {
		t.Errorf("after a rotation the new token works: %v, the old one: %v", s.Works(fresh), s.Works(old))
	}
	if got := keys(); len(first) != 1 || len(got) != 2 || got[1] != first[0] {
		t.Errorf("keys %v, then %v", first, got)
	}
	s.Command("key", "rotate-tokens", "--at-once")
	if token := s.tokenOfAnother(); !s.Works(token) {
		t.Error("after a rotation at once the new token does not work")
	}
	if s.Works(old) || s.Works(fresh) {
		t.Error("what the keys that were taken away have signed still works")
	}
}

// tokenOfAnother starts another process over the same data, as another server behind
// one address, and signs demo in there.
func (s *signIn) tokenOfAnother() string {
	s.T.Helper()
	other := s.Another()
	defer other.Kill()
	response, err := http.PostForm(other.URL+"/STS/oauth/token", url.Values{
		"grant_type": {"password"}, "username": {s.Dev.User.Login}, "password": {s.Dev.User.Password},
		"client_id": {s.Dev.ClientID}, "resource": {s.Dev.Resource},
	})
	if err != nil {
		s.T.Fatal(err)
	}
	_, body := tamgatest.ReadAll(s.T, response)
	var t tamgatest.TokenAnswer
	if err := json.Unmarshal(body, &t); err != nil || t.AccessToken == "" {
		s.T.Fatalf("%s, %v", body, err)
	}
	return t.AccessToken
}

// TestPagesForPeople checks that a browser gets pages where a program gets JSON, or an address
// that only a program can read.
func TestPagesForPeople(t *testing.T) {
	s := startSignIn(t)
	b := &browser{s: s}
	for name, c := range map[string]struct {
		change []string
		status int
		want   string
	}{
		"client":   {[]string{"client_id", "<unknown>"}, 400, "client_id is missing or unknown"},
		"address":  {[]string{"redirect_uri", "https://evil.example/"}, 400, "redirect_uri"},
		"twice":    {nil, 400, "state is given more than once"},
		"language": {[]string{"ui_locales", "ru"}, 200, "Забыли пароль"},
	} {
		address := s.asked(c.change...)
		if name == "twice" {
			address += "&state=b"
		}
		response, page := b.send("GET", address, "", "Accept", "text/html,*/*")
		if response.StatusCode != c.status || !strings.Contains(page, c.want) || !strings.Contains(page, `<main class="narrow">`) || response.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %d %s", name, response.StatusCode, page)
		}
		if id := response.Header.Get("X-Request-Id"); len(id) != 26 || strings.Contains(page, "<code>"+id+"</code>") != (c.status >= 400) {
			t.Errorf("%s: a page has the id of its request exactly if something is wrong: %q", name, page)
		}
		// A refusal is there in the other language, too.
		if m := regexp.MustCompile(`href="([^"]+)" lang="ru"`).FindStringSubmatch(page); c.status == 400 && m != nil {
			if response, page := b.send("GET", html.UnescapeString(m[1]), "", "Accept", "text/html"); response.StatusCode != 400 || !strings.Contains(page, "Передайте тем") || !strings.Contains(page, c.want) {
				t.Errorf("%s: the other language: %d %s", name, response.StatusCode, page)
			}
		} else if c.status == 400 {
			t.Errorf("%s: no switch of the language: %s", name, page)
		}
		if response, text := b.send("GET", address, ""); c.status == 400 && !strings.Contains(text, `"error"`) {
			t.Errorf("%s: a program gets %d %s", name, response.StatusCode, text)
		}
	}

	// The other language is the same request: its form signs in to the same application.
	_, page := b.send("GET", s.asked("login_hint", "demo"), "", "Accept", "text/html")
	m := regexp.MustCompile(`href="([^"]+)" lang="ru"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no switch of the language: %s", page)
	}
	_, page = b.send("GET", html.UnescapeString(m[1]), "", "Accept", "text/html", "Accept-Language", "en")
	if !strings.Contains(page, "Пароль") || !strings.Contains(page, `value="demo"`) {
		t.Errorf("the other language: %s", page)
	}
	if response, text := b.logIn(page); !strings.HasPrefix(response.Header.Get("Location"), tamgatest.AppAddress+"?code=") {
		t.Errorf("%d %s", response.StatusCode, text)
	}

	// An application without an address: the person carries the code.
	_, page = b.send("GET", s.asked("client_id", "tamga-dev", "redirect_uri", tamgatest.OOBAddress), "", "Accept", "text/html")
	form := url.Values{"ticket": {ticketField.FindStringSubmatch(page)[1]}, "login": {s.Dev.User.Login}, "password": {s.Dev.User.Password}}
	response, page := b.send("POST", s.Dev.IDPURL+"/oauth/login", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html")
	shown := regexp.MustCompile(`<code class="secret">([0-9a-f]{64})</code>`).FindStringSubmatch(page)
	if response.StatusCode != 200 || shown == nil {
		t.Fatalf("%d %s", response.StatusCode, page)
	}
	got := s.Read(s.exchangeCode(shown[1], "client_id", "tamga-dev", "redirect_uri", tamgatest.OOBAddress))
	if !s.Works(got.AccessToken) {
		t.Errorf("the code that the page shows opens nothing: %+v", got)
	}
}
