// SPDX-License-Identifier: Apache-2.0

package idp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/token"
)

// provider is an identity provider that answers what a test sets.
type provider struct {
	*httptest.Server
	key    *ecdsa.PrivateKey
	answer func(w http.ResponseWriter, r *http.Request) // of the token endpoint
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","jwks_uri":"%[1]s/keys","id_token_signing_alg_values_supported":["ES256","HS256","none"]}`, p.URL)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) { p.answer(w, r) })
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p *provider) says(idToken string) {
	p.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": idToken})
	}
}

func client(t *testing.T, p *provider, claim string) *OIDC {
	t.Helper()
	c, err := New(Options{
		Name: "main", Issuer: p.URL, ClientID: "tamga", ClientSecret: "a client secret of some length!!", RedirectURL: "https://us/return",
		Claim: claim, Now: time.Now, Failed: func(err error) { t.Log(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFinish(t *testing.T) {
	p := newProvider(t)
	now := time.Now().Unix()
	claims := func(change ...any) map[string]any {
		c := map[string]any{"iss": p.URL, "aud": "tamga", "sub": "anna", "nonce": "n", "iat": now, "exp": now + 60, "email": "anna@example.ru"}
		for i := 0; i+1 < len(change); i += 2 {
			if c[change[i].(string)] = change[i+1]; change[i+1] == nil {
				delete(c, change[i].(string))
			}
		}
		return c
	}
	es := func(change ...any) string { return p.sign(t, jose.ES256, p.key, claims(change...)) }
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	payload := strings.Split(es(), ".")[1]
	for _, c := range []struct {
		name, token, claim, want string
	}{
		{"good", es(), "sub", "anna"},
		{"several audiences", es("aud", []string{"tamga", "other"}, "azp", "tamga"), "sub", "anna"},
		{"verified e-mail", es("email_verified", true), "email", "anna@example.ru"},

		{"e-mail not verified", es(), "email", ""},
		{"e-mail verified as a text", es("email_verified", "true"), "email", ""},
		{"another nonce", es("nonce", "m"), "sub", ""},
		{"no nonce", es("nonce", nil), "sub", ""},
		{"another audience", es("aud", "other"), "sub", ""},
		{"several audiences without azp", es("aud", []string{"tamga", "other"}), "sub", ""},
		{"another client's", es("azp", "other"), "sub", ""},
		{"another issuer", es("iss", "https://evil.example"), "sub", ""},
		{"expired", es("exp", now-1), "sub", ""},
		{"not yet valid", es("nbf", now+3600), "sub", ""},
		{"no claim", es(), "login", ""},
		{"a number", es("login", 7), "login", ""},
		{"another access token's", es("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"), "sub", ""},
		{"another key", p.sign(t, jose.ES256, other, claims()), "sub", ""},
		{"the client's secret as a key", p.sign(t, jose.HS256, []byte("a client secret of some length!!"), claims()), "sub", ""},
		{"unsigned", "eyJhbGciOiJub25lIn0." + payload + ".", "sub", ""},
		{"no token", "", "sub", ""},
		{"garbage", "x.y.z", "sub", ""},
	} {
		p.says(c.token)
		got, err := client(t, p, c.claim).Finish(t.Context(), "code", "n", "verifier")
		var refused *token.GrantError
		if got != c.want || (c.want == "") != errors.As(err, &refused) || c.want != "" && err != nil {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestProvidersThatMisbehave(t *testing.T) {
	p := newProvider(t)
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		denied bool
	}{
		"refuses": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
		}, true},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, false},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for range 4 << 10 {
				fmt.Fprint(w, strings.Repeat(" ", 1<<10))
			}
		}, false},
	} {
		p.answer = c.answer
		_, err := client(t, p, "sub").Finish(t.Context(), "code", "n", "v")
		var refused *token.GrantError
		if errors.As(err, &refused) != c.denied || !c.denied && !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.Close()
	if _, err := client(t, p, "sub").Begin(t.Context(), "s", "n", "v"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("one that is down: %v", err)
	}
}

func TestBegin(t *testing.T) {
	p := newProvider(t)
	address, err := client(t, p, "sub").Begin(t.Context(), "the state", "n", "v")
	u, perr := url.Parse(address)
	if err != nil || perr != nil || !strings.HasPrefix(address, p.URL+"/authorize?") {
		t.Fatal(address, err, perr)
	}
	q := u.Query()
	if q.Get("state") != "the state" || q.Get("nonce") != "n" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 ||
		q.Get("client_id") != "tamga" || q.Get("redirect_uri") != "https://us/return" || q.Get("response_type") != "code" || q.Get("scope") != "openid" {
		t.Errorf("%v", q)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"empty":     {},
		"plain":     {Name: "n", Issuer: "http://idp.example", ClientID: "c", Claim: "sub"},
		"no scheme": {Name: "n", Issuer: "idp.example", ClientID: "c", Claim: "sub"},
		"no claim":  {Name: "n", Issuer: "https://idp.example", ClientID: "c"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
