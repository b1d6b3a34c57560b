// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// loopbackClients are a program on the user's machine and a page without PKCE.
const loopbackClients = `clients=[{id: tamga-dev, password_grant: true, redirect_uris: ["urn:ietf:wg:oauth:2.0:oob:auto"]}, ` +
	`{id: desktop, redirect_uris: ["http://127.0.0.1/cb", "http://[::1]:8000/cb", "http://localhost/cb"]}, ` +
	`{id: plain, without_pkce: true, implicit_grant: true, redirect_uris: ["http://127.0.0.1:8000/cb"]}]`

// TestScopeWithPlusSigns: one client encodes a form twice, so that a plus sign arrives where a space
// is meant.
func TestScopeWithPlusSigns(t *testing.T) {
	t.Parallel()
	s := tamgatest.StartSignIn(t)
	for _, scope := range []string{"dss+offline_access", "dss%2Boffline_access", "dss+offline_access+dss", "+dss++offline_access "} {
		// The names as they are left after one decoding.
		text := strings.ReplaceAll(scope, "%2B", "+")
		a := s.Form(url.Values{
			"grant_type": {"password"}, "username": {s.Dev.User.Login}, "password": {s.Dev.User.Password},
			"client_id": {s.Dev.ClientID}, "resource": {s.Dev.Resource}, "scope": {text},
		})
		if got := s.Read(a); a.Status != 200 || got.Scope != "dss offline_access" || got.RefreshToken == "" {
			t.Errorf("scope %q: %v", scope, a)
		}
	}
	a := s.Form(url.Values{
		"grant_type": {"password"}, "username": {s.Dev.User.Login}, "password": {s.Dev.User.Password},
		"client_id": {s.Dev.ClientID}, "resource": {s.Dev.Resource}, "scope": {"dss+everything"},
	})
	if a.Status != 400 || s.Read(a).Error != "invalid_scope" {
		t.Errorf("an unknown name: %v", a)
	}
}

// TestBodyIsCompressed sends a compressed body to each surface. It is refused before it is read.
func TestBodyIsCompressed(t *testing.T) {
	t.Parallel()
	s := tamgatest.StartSignIn(t)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprint(w, `{"Resource":"x"}`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	send := func(address, coding string, body []byte) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", address, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Encoding", coding)
		r.Header.Set("Authorization", "Bearer "+s.Token())
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		status, text := tamgatest.ReadAll(t, response)
		return status, response.Header, string(text)
	}
	for _, address := range []string{s.Dev.IDPURL + "/confirmation", s.Dev.BaseURL + "/api/documents", s.Dev.IDPURL + "/ums/users", s.Dev.DocumentsURL + "/api/documents"} {
		for _, coding := range []string{"gzip", "identity, GZIP", "br"} {
			status, header, text := send(address, coding, packed.Bytes())
			if status != 415 || !strings.Contains(text, `"error":"unsupported_encoding"`) || header.Get("Accept-Encoding") != "identity" {
				t.Errorf("%s, %s: %d %v %s", address, coding, status, header, text)
			}
		}
	}
	if status, _, text := send(s.Dev.BaseURL+"/api/documents", "identity", []byte("{}")); status == 415 {
		t.Errorf("identity: %d %s", status, text)
	}
	if status, _, text := send(s.Dev.BaseURL+"/api/documents", "gzip", nil); status == 415 {
		t.Errorf("no body: %d %s", status, text)
	}
}

// TestWholeNumberWithFraction sends numbers as programs do that know no whole ones.
func TestWholeNumberWithFraction(t *testing.T) {
	t.Parallel()
	s := tamgatest.StartSignIn(t)
	token := s.Token()
	number := s.Cert("gost2012-256", false).ID
	for _, row := range []struct {
		certificate string // as JSON
		status      int
	}{
		{"0.0", 200}, {`"0.0"`, 200}, {"0.00", 200}, {`" 0.0 "`, 200}, {fmt.Sprintf("%d.0", number), 200}, {fmt.Sprintf(`"%d.0"`, number), 200},
		{"0.5", 400}, {`"0."`, 400}, {`".0"`, 400}, {`"0.0.0"`, 400}, {"-0.1", 400},
	} {
		body := `{"Content":"SGVsbG8K","Signature":{"Type":"CMS","CertificateId":` + row.certificate + `}}`
		if status, text := s.Do(t.Context(), "POST", s.Dev.BaseURL+"/api/documents", token, strings.NewReader(body)); status != row.status {
			t.Errorf("CertificateId %s: %d %s, want %d", row.certificate, status, text, row.status)
		}
	}
	s.OK(tamgatest.Ours, "POST", "/ums/users", `{"StartPosition":0.0,"EndPosition":"10.0"}`)
	if a := s.Ask(tamgatest.Ours, "POST", "/ums/users", `{"StartPosition":0,"EndPosition":10.5}`); a.Status != 400 {
		t.Errorf("EndPosition 10.5: %v", a)
	}
}

// authorize asks for an authorization as a browser does, and does not follow the answer.
func authorize(t *testing.T, s *tamgatest.SignIn, query url.Values, bearer string) (status int, location string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.Dev.IDPURL+"/oauth/authorize?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	status, _ = tamgatest.ReadAll(t, response)
	return status, response.Header.Get("Location")
}

// TestRedirectToLoopback authorizes a program that listens on a port which the system gave it.
func TestRedirectToLoopback(t *testing.T) {
	t.Parallel()
	s := tamgatest.StartSignIn(t, "--set", loopbackClients)
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" // of RFC 7636, appendix B
	for _, row := range []struct {
		client, address, kind string
		pkce, accepted        bool
	}{
		{"desktop", "http://127.0.0.1/cb", "code", true, true},
		{"desktop", "http://127.0.0.1:51004/cb", "code", true, true},
		{"desktop", "http://[::1]/cb", "code", true, true},
		{"desktop", "http://[::1]:51004/cb", "code", true, true},
		{"desktop", "http://127.0.0.1:51004/other", "code", true, false},
		{"desktop", "http://127.0.0.1:51004/cb?x=1", "code", true, false},
		{"desktop", "http://127.0.0.1:0/cb", "code", true, false},
		{"desktop", "http://127.0.0.1:65536/cb", "code", true, false},
		{"desktop", "http://127.0.0.1:/cb", "code", true, false},
		{"desktop", "http://127.0.0.1:80@evil.example/cb", "code", true, false},
		{"desktop", "http://127.0.0.1.evil.example/cb", "code", true, false},
		{"desktop", "https://127.0.0.1:51004/cb", "code", true, false},
		{"desktop", "http://localhost:51004/cb", "code", true, false},
		{"plain", "http://127.0.0.1:8000/cb", "code", false, true},
		{"plain", "http://127.0.0.1:51004/cb", "code", false, false},
		{"plain", "http://127.0.0.1:51004/cb", "code", true, true},
		{"plain", "http://127.0.0.1:8000/cb", "token", false, true},
		{"plain", "http://127.0.0.1:51004/cb", "token", true, false},
	} {
		query := url.Values{"client_id": {row.client}, "response_type": {row.kind}, "redirect_uri": {row.address}, "resource": {s.Dev.Resource}, "scope": {"dss"}}
		if row.pkce {
			query.Set("code_challenge", challenge)
			query.Set("code_challenge_method", "S256")
		}
		// A page asks for the password, unless the request is refused: to the program, or on the spot.
		status, location := authorize(t, s, query, "")
		if accepted := status == 200; accepted != row.accepted {
			t.Errorf("%+v: %d %s", row, status, location)
		}
	}
}

// TestDefaultClient confirms a sign-in of a program that names no client in any of its calls, and
// uses the token to authorize another client.
func TestDefaultClient(t *testing.T) { onBothEngines(t, testDefaultClient) }

func testDefaultClient(t *testing.T, database string) {
	c := confirmingAt(t, database, "clientless", "otpviasms")
	me := basic("clientless", tamgatest.Password)
	resource := fmt.Sprintf(`{"Resource":%q`, c.Dev.Resource)
	first := c.ask("/confirmation", me, resource+"}")
	if first.Challenge == nil {
		t.Fatalf("%+v", first)
	}
	ref := first.Challenge.ContextData.RefID
	answered := func(value string) string {
		return resource + fmt.Sprintf(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q%s}]}}`, ref, value)
	}
	if p := c.ask("/confirmation", me, answered("")); *p.IsFinal || *p.IsError {
		t.Errorf("a poll: %+v", p)
	}
	done := c.ask("/confirmation", me, answered(fmt.Sprintf(`,"Value":%q`, c.Code(c.phone))))
	if done.AccessToken == "" {
		t.Fatalf("%+v", done)
	}
	for _, more := range []string{`,"ClientSecret":"x"}`, `,"ClientId":"no such client"}`} {
		if a := c.ask("/confirmation", me, resource+more); !*a.IsError || a.Error != "invalid_client" {
			t.Errorf("%s: %+v", more, a)
		}
	}
	if a := c.ask("/confirmation", basic("clientless", "wrong"), resource+"}"); a.Error != "invalid_grant" {
		t.Errorf("a wrong password: %+v", a)
	}
}

// TestTokenOfDefaultClient uses a token of the default client at the authorization endpoint for
// another client. A token of any other client opens nothing there.
func TestTokenOfDefaultClient(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		settings := []string{"--set", `signin.default_client=""`}
		if named {
			settings = nil
		}
		s := tamgatest.StartSignIn(t, settings...)
		query := url.Values{"client_id": {"page"}, "response_type": {"code"}, "redirect_uri": {tamgatest.AppAddress}, "resource": {s.Dev.Resource}, "scope": {"dss"}}
		status, location := authorize(t, s, query, s.Token())
		if opened := status == 302 && strings.Contains(location, "code="); opened != named {
			t.Errorf("default client %t: %d %s", named, status, location)
		}
		first := s.Ask(tamgatest.Anonymous, "POST", "/confirmation", fmt.Sprintf(`{"Resource":%q}`, s.Dev.Resource), "Authorization", basic(s.Dev.User.Login, s.Dev.User.Password))
		if refused := strings.Contains(first.Body, "invalid_client"); refused == named {
			t.Errorf("default client %t: %v", named, first)
		}
	}
}

// TestNameAndPhone is a client without a secret that knows a name and a phone: it signs in by the
// name alone, and the user confirms operations by the phone. A second step of sign-ins stays one.
func TestNameAndPhone(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{true, false} {
		c := &confirming{UMS: tamgatest.StartUMS(t, "--set", fmt.Sprintf("users.id_only_public=%t", open)), t: t}
		c.add("named", "idonly", "otpviasms?level=1")
		status, text := c.Grant("named", "")
		if signedIn := status == 200; signedIn != open {
			t.Errorf("allowed %t: %d %s", open, status, text)
		}
		if !open {
			continue
		}
		var got struct {
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal(text, &got); err != nil || got.Token == "" {
			t.Fatalf("%s", text)
		}
		c.add("stepped", "idonly", "otpviasms?level=2")
		if status, text := c.Grant("stepped", ""); status != 400 || !strings.Contains(string(text), "authn_method_not_confirmed") {
			t.Errorf("with a second step: %d %s", status, text)
		}
	}
}

// TestOneOpenOperation: where a user has one operation at a time, the confirmation of a text waits for
// the open operation, too. The answer is what clients repeat their form for.
func TestOneOpenOperation(t *testing.T) {
	t.Parallel()
	c := &confirming{UMS: tamgatest.StartUMS(t, "--set", "confirmation.one_open=true", "--set", "confirmation.codes.resend=1s"), t: t}
	c.add("single", "otpviasms?level=1")
	c.Command("cert", "issue", "single", "--default")
	token := c.TokenOf("single", tamgatest.Password)
	order := map[string]any{
		"BinaryData":        []any{map[string]any{"Content": []byte("one"), "ContentInfo": "one.txt"}},
		"Signature":         map[string]any{"Type": "CMS", "Parameters": tamgatest.Parameters{"IsDetached": "False"}, "CertificateId": 0},
		"ForceConfirmation": true,
	}
	status, text := c.Call("POST", "/api/v2/signature", token, order)
	var created struct{ Operation struct{ ID string } }
	if err := json.Unmarshal(text, &created); err != nil || status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := c.Call("POST", "/api/v2/signature", token, order); status != 400 || !strings.Contains(string(text), "transaction_pending") {
		t.Errorf("a second operation: %d %s", status, text)
	}
	scope := c.begin(`,"ConfirmationScope":"checkprofile"`)
	if a := c.ask("/confirmation", "Bearer "+token, scope); !*a.IsFinal || a.Error != "transaction_pending" {
		t.Errorf("a text beside an operation: %+v", a)
	}
	first := c.ask("/v2.0/confirmation", "Bearer "+token, c.begin(fmt.Sprintf(`,"OperationId":%q`, created.Operation.ID)))
	if first.Challenge == nil {
		t.Fatalf("the open operation itself: %+v", first)
	}
	if status, text := c.Do(t.Context(), "DELETE", c.Dev.IDPURL+"/operations/"+created.Operation.ID, token, nil); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if a := c.ask("/confirmation", "Bearer "+token, scope); a.Challenge == nil {
		t.Errorf("a text afterwards: %+v", a)
	}
	if status, text := c.Call("POST", "/api/v2/signature", token, order); status != 200 {
		t.Errorf("an operation beside a text: %d %s", status, text)
	}
}
