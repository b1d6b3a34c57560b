// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What the applications of SignIn have in common: where they are sent back to, and the secret of
// the application "portal".
const (
	AppAddress = "https://app.example/cb"
	OOBAddress = "urn:ietf:wg:oauth:2.0:oob:auto"
	AppSecret  = "a secret of the portal"

	// The exchange of tokens.
	ExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	JWTType       = "urn:ietf:params:oauth:token-type:jwt"
)

// SignIn is a server with applications of every kind.
type SignIn struct{ *UMS }

// StartSignIn starts a server in this process.
func StartSignIn(t *testing.T, more ...string) *SignIn {
	t.Helper()
	return &SignIn{StartUMS(t, append(applications(t), more...)...)}
}

// StartSignInProcess is StartSignIn over a directory and in a process of its own.
func StartSignInProcess(t *testing.T, dir string, more ...string) *SignIn {
	t.Helper()
	return &SignIn{StartUMSProcess(t, dir, append(applications(t), more...)...)}
}

// applications returns the settings of the applications.
func applications(t *testing.T) []string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(AppSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	clients := `clients=[` +
		`{id: tamga-dev, password_grant: true, token_exchange: true, redirect_uris: ["` + OOBAddress + `"]}, ` +
		`{id: app, redirect_uris: ["` + AppAddress + `", "` + AppAddress + `?a=b", "com.example.app:/cb", "` + OOBAddress + `"]}, ` +
		`{id: page, implicit_grant: true, without_pkce: true, redirect_uris: ["` + AppAddress + `"]}, ` +
		`{id: portal, secret_file: "` + secret + `", password_grant: true, token_exchange: true, redirect_uris: ["` + AppAddress + `"]}]`
	return []string{"--set", clients}
}

// Form sends a form to the token endpoint.
func (s *SignIn) Form(values url.Values, headers ...string) Answer {
	s.T.Helper()
	return s.Ask(Anonymous, "POST", "/oauth/token", values.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// TokenAnswer is what the token endpoint answers.
type TokenAnswer struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	IDToken      string `json:"id_token"`
	Scope        string `json:"scope"`
	Error        string `json:"error"`
}

// Read reads an answer of the token endpoint.
func (s *SignIn) Read(a Answer) (t TokenAnswer) {
	s.T.Helper()
	a.Into(s.T, &t)
	return t
}

// Offline signs the user demo in so that they stay.
func (s *SignIn) Offline(client string) TokenAnswer {
	s.T.Helper()
	a := s.Form(url.Values{
		"grant_type": {"password"}, "username": {s.Dev.User.Login}, "password": {s.Dev.User.Password},
		"client_id": {client}, "resource": {s.Dev.Resource}, "scope": {"dss offline_access"},
	})
	t := s.Read(a)
	if a.Status != 200 || t.RefreshToken == "" || t.Scope != "dss offline_access" {
		s.T.Fatalf("%v", a)
	}
	return t
}

// Refresh asks for new tokens with a refresh token.
func (s *SignIn) Refresh(client, token string) Answer {
	s.T.Helper()
	return s.Form(url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}})
}

// Works reports whether an access token opens the signing service.
func (s *SignIn) Works(token string) bool {
	s.T.Helper()
	status, _ := s.Do(s.T.Context(), "GET", s.Dev.BaseURL+"/api/certificates", token, nil)
	return status == 200
}

// Unsigned is a subject token of a header and a payload.
func Unsigned(header, payload string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	return b64([]byte(header)) + "." + b64([]byte(payload)) + "."
}

// NoneHeader is the header of a token without a signature.
const NoneHeader = `{"alg":"none","typ":"JWT"}`

// Naming is a subject token that names a user.
func Naming(name, value string, life time.Duration) string {
	now := time.Now().Unix()
	return Unsigned(NoneHeader, fmt.Sprintf(`{%q:%q,"nbf":%d,"exp":%d,"iat":%d}`, name, value, now, now+int64(life.Seconds()), now))
}

// Exchange asks for a token to act as the subject.
func (s *SignIn) Exchange(actor, subject string) Answer {
	s.T.Helper()
	return s.Form(url.Values{
		"grant_type": {ExchangeGrant}, "resource": {strings.ToUpper(s.Dev.Resource)}, "actor_token": {actor}, "actor_token_type": {JWTType},
		"subject_token": {subject}, "subject_token_type": {JWTType},
	}, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s.Dev.ClientID+":")))
}
