// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// identity knows the user demo and says with the token what it was asked. What it does
// not know of is not asked in these tests.
type identity struct {
	Identity
	Tokens
}

func (identity) PasswordGrant(_ context.Context, client signin.Client, login, password, resource, scope string) (token.Token, error) {
	switch {
	case login == "down":
		return token.Token{}, fault.New(fault.Unavailable, "come back")
	case login == "broken":
		return token.Token{}, fmt.Errorf("a text for the log")
	case !client.PasswordGrant:
		return token.Token{}, &token.GrantError{Code: token.UnauthorizedClient, Description: "not you"}
	case login != "demo" || password != "pass word+1":
		return token.Token{}, &token.GrantError{Code: token.InvalidGrant, Description: "wrong"}
	}
	return token.Token{AccessToken: client.ID + "|" + resource + "|" + scope, ExpiresIn: 300 * time.Second, UserID: "7"}, nil
}

func (identity) CodeGrant(_ context.Context, client signin.Client, r signin.CodeRequest) (token.Token, error) {
	if r.Code != "c0de" || r.RedirectURI != signin.RedirectOutOfBand {
		return token.Token{}, &token.GrantError{Code: token.InvalidGrant, Description: "wrong"}
	}
	return token.Token{AccessToken: client.ID + "|" + r.Resource + "|code", ExpiresIn: 300 * time.Second, UserID: "7"}, nil
}

func (identity) AuthorizeCertificate(_ context.Context, der []byte, a signin.Authorization) (string, audit.Principal, error) {
	if string(der) != "good" || a.RedirectURI != signin.RedirectOutOfBand {
		return "", audit.Principal{}, &token.GrantError{Code: token.AccessDenied, Description: "not you"}
	}
	return "c0de", audit.Principal{UserID: "9", Login: "operator", Method: "certificate"}, nil
}

// judge knows one certificate that does not count.
func judge(_ context.Context, certificates [][]byte) error {
	if string(certificates[0]) == "bad" {
		return errors.New("revoked, which is for the log")
	}
	return nil
}

type auditLog []audit.Entry

func (l *auditLog) Record(_ context.Context, e audit.Entry) error {
	*l = append(*l, e)
	return nil
}

func (l *auditLog) Begin(ctx context.Context, e audit.Entry) func(context.Context) error {
	err := l.Record(ctx, e)
	return func(context.Context) error { return err }
}

func open(t *testing.T, configure ...func(*httptest.Server)) (*httptest.Server, *auditLog) {
	t.Helper()
	clients, err := signin.NewClients([]signin.Client{
		{ID: "public", Public: true, PasswordGrant: true},
		{ID: "secret", Secret: signin.HashSecret("s:e%c+r"), PasswordGrant: true},
		{ID: "other", Public: true},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	j := &auditLog{}
	mux := http.NewServeMux()
	rest.Mount(mux, "/STS", &rest.Gate{Audit: j, Log: slog.New(slog.DiscardHandler)}, New(Deps{Identity: identity{}, Tokens: identity{}, Clients: clients, Judge: judge, Issuer: "http://idp.test/STS"}).Routes())
	s := httptest.NewUnstartedServer(rest.Front(mux, slog.New(slog.DiscardHandler), rest.NewMetrics(prometheus.NewRegistry()), nil))
	for _, c := range configure {
		c(s)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, j
}

func TestRouteTable(t *testing.T) {
	var got []string
	for _, r := range New(Deps{}).Routes() {
		got = append(got, fmt.Sprintf("%s %s %s %s", r.Method, r.Path, r.Name, r.Right))
	}
	if d := cmp.Diff([]string{"POST /confirmation Confirmation anyone", "POST /v2.0/confirmation ConfirmationV2 anyone", "POST /oauth/token Token anyone", "GET /oauth/token Token anyone", "GET /oauth/authorize/certificate AuthorizeCertificate anyone",
		"GET /oauth/authorize Authorize anyone", "POST /oauth/login Login anyone", "POST /oauth/step SecondStep anyone", "GET /oauth/step SecondStep anyone", "GET /oauth/external/{name}/return ExternalReturn anyone", "POST /oauth/external/{name}/return ExternalHandOn anyone",
		"POST /oauth/external/{name}/finish ExternalReturn anyone", "GET /oauth/external/{name}/metadata ExternalMetadata anyone", "GET /oauth/external/{name} ExternalLogin anyone",
		"GET /oauth/userinfo UserInfo anyone", "POST /oauth/userinfo UserInfo anyone",
		"GET /.well-known/openid-configuration Discovery anyone", "GET /.well-known/jwks.json TokenKeys anyone"}, got); d != "" {
		t.Error(d)
	}
}

// Every grant is a method of the service that package signin walks in its test of descent,
// and discovery names what the table has and the implicit grant.
func TestGrantTable(t *testing.T) {
	methods := map[string]string{
		"password": "PasswordGrant", "authorization_code": "CodeGrant", "refresh_token": "RefreshGrant", grantExchange: "ExchangeGrant",
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(methods)), slices.Sorted(maps.Keys(grants))); d != "" {
		t.Error(d)
	}
	var offered []string
	for _, room := range []reflect.Type{reflect.TypeFor[Identity](), reflect.TypeFor[Tokens]()} {
		for i := range room.NumMethod() {
			for j := range room.Method(i).Type.NumOut() {
				if room.Method(i).Type.Out(j) == reflect.TypeFor[token.Token]() {
					offered = append(offered, room.Method(i).Name)
				}
			}
		}
	}
	slices.Sort(offered)
	if d := cmp.Diff(slices.Sorted(maps.Values(methods)), offered); d != "" {
		t.Error(d)
	}
	m, err := New(Deps{}).discovery(t.Context(), struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(m.Grants)
	if d := cmp.Diff(append(slices.Sorted(maps.Keys(grants)), "implicit"), m.Grants, cmpopts.SortSlices(strings.Compare)); d != "" {
		t.Error(d)
	}
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

func TestToken(t *testing.T) {
	s, _ := open(t)
	const user = "&username=demo&password=pass+word%2B1&resource=urn:cryptopro:dss:signserver:signserver"
	const token = `{"access_token":"%s|urn:cryptopro:dss:signserver:signserver|%s","token_type":"Bearer","expires_in":300}`
	public, confidential := fmt.Sprintf(token, "public", ""), fmt.Sprintf(token, "secret", "")
	failure := func(code, description string) string {
		return fmt.Sprintf(`{"error":%q,"error_description":%q}`, code, description)
	}
	const unproven = "the client is unknown or did not prove itself"
	for _, c := range []struct {
		name, method, path, kind, authorization, form string
		status                                        int
		want                                          string
	}{
		{"public", "POST", "", "application/x-www-form-urlencoded", "", "grant_type=password&client_id=public" + user, 200, public},
		{"with a slash", "POST", "/", "application/x-www-form-urlencoded", "", "grant_type=password&client_id=public" + user, 200, public},
		{"no type", "POST", "", "", "", "grant_type=password&client_id=public" + user, 200, public},
		{"plain text", "POST", "", "text/plain; charset=utf-8", "", "grant_type=password&client_id=public" + user, 200, public},
		{"encoded", "POST", "", "", "", "grant_type=password&client_id=public" + strings.ReplaceAll(user, ":", "%3a"), 200, public},
		{"a line break at the end", "POST", "", "", "", "grant_type=password&client_id=public" + user + "\r\n", 200, public},
		{"query", "GET", "?grant_type=authorization_code&client_id=public&code=c0de&redirect_uri=urn:ietf:wg:oauth:2.0:oob:auto", "", "", "", 200, `{"access_token":"public||code","token_type":"Bearer","expires_in":300}`},
		{"a password in a query", "GET", "?grant_type=password&client_id=public" + user, "", "", "", 405, failure("invalid_request", passwordInAddress{}.Error())},
		{"a password beside another grant", "GET", "?grant_type=authorization_code&client_id=public&code=c0de" + user, "", "", "", 405, failure("invalid_request", passwordInAddress{}.Error())},
		{"scope", "POST", "", "", "", "scope=dss+offline_access&grant_type=password&client_id=public" + user, 200, fmt.Sprintf(token, "public", "dss offline_access")},
		{"secret in the form", "POST", "", "", "", "grant_type=password&client_id=secret&client_secret=s:e%25c%2Br" + user, 200, confidential},
		{"basic", "POST", "", "", basic("secret", "s:e%c+r"), "grant_type=password" + user, 200, confidential},
		{"basic, encoded", "POST", "", "", basic("secret", "s%3Ae%25c%2Br"), "grant_type=password" + user, 200, confidential},
		{"basic and client_id", "POST", "", "", basic("secret", "s:e%c+r"), "client_id=secret&grant_type=password" + user, 200, confidential},
		{"basic, public", "POST", "", "", basic("public", ""), "grant_type=password" + user, 200, public},
		{"not basic", "POST", "", "", "Bearer x", "grant_type=password&client_id=public" + user, 200, public},

		{"code", "POST", "", "", "", "grant_type=authorization_code&client_id=public&code=c0de&redirect_uri=urn:ietf:wg:oauth:2.0:oob:auto", 200, `{"access_token":"public||code","token_type":"Bearer","expires_in":300}`},
		{"a wrong code", "POST", "", "", "", "grant_type=authorization_code&client_id=public&code=c0df&redirect_uri=urn:ietf:wg:oauth:2.0:oob:auto", 400, failure("invalid_grant", "wrong")},
		{"two codes", "POST", "", "", "", "grant_type=authorization_code&client_id=public&code=c0de&code=x&redirect_uri=urn:ietf:wg:oauth:2.0:oob:auto", 400, failure("invalid_request", "code is given more than once")},
		{"no grant", "POST", "", "", "", "client_id=public" + user, 400, failure("invalid_request", "grant_type is missing")},
		{"unknown grant", "POST", "", "", "", "grant_type=magic&client_id=public" + user, 400, failure("unsupported_grant_type", "this grant_type is not served here")},
		{"twice", "POST", "", "", "", "grant_type=password&client_id=public&client_id=secret" + user, 400, failure("invalid_request", "client_id is given more than once")},
		{"no client", "POST", "", "", "", "grant_type=password" + user, 401, failure("invalid_client", "client_id is missing: send it in the form or by HTTP Basic")},
		{"nothing", "POST", "", "", "", "", 401, failure("invalid_client", "client_id is missing: send it in the form or by HTTP Basic")},
		{"unknown client", "POST", "", "", "", "grant_type=password&client_id=unknown" + user, 401, failure("invalid_client", unproven)},
		{"no secret", "POST", "", "", "", "grant_type=password&client_id=secret" + user, 401, failure("invalid_client", unproven)},
		{"wrong secret", "POST", "", "", basic("secret", "x"), "grant_type=password" + user, 401, failure("invalid_client", unproven)},
		{"broken basic", "POST", "", "", "Basic ***", "grant_type=password" + user, 401, failure("invalid_client", "the Authorization header is not valid HTTP Basic")},
		{"two proofs", "POST", "", "", basic("secret", "s:e%c+r"), "client_id=public&grant_type=password" + user, 400, failure("invalid_request", "the client proves itself in two ways: use HTTP Basic or the form")},
		{"wrong password", "POST", "", "", "", "grant_type=password&client_id=public&username=demo&password=x&resource=r", 400, failure("invalid_grant", "wrong")},
		{"a client without the grant", "POST", "", "", "", "grant_type=password&client_id=other" + user, 400, failure("unauthorized_client", "not you")},
		{"unavailable", "POST", "", "", "", "grant_type=password&client_id=public&username=down", 503, `{"Message":"temporarily_unavailable","error":"temporarily_unavailable","error_description":"come back"}`},
		{"internal", "POST", "", "", "", "grant_type=password&client_id=public&username=broken", 500, `{"Message":"An error has occurred","error":"internal_error","error_description":"An error has occurred"}`},
		{"too large", "POST", "", "", "", "grant_type=password&client_id=public&x=" + strings.Repeat("x", maxForm), 413, `{"Message":"max_request_length_exceeded","error":"max_request_length_exceeded","error_description":"the request is larger than 65536 bytes"}`},
	} {
		r, err := http.NewRequest(c.method, s.URL+"/STS/oauth/token"+c.path, strings.NewReader(c.form))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": c.kind, "Authorization": c.authorization} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s: got %d %s, %v", c.name, resp.StatusCode, body, err)
		}
		if d := cmp.Diff(c.want, string(body)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if resp.Header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: headers %v", c.name, resp.Header)
		}
		if c.status == 401 != strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Basic") {
			t.Errorf("%s: WWW-Authenticate %q", c.name, resp.Header.Get("WWW-Authenticate"))
		}
	}
}

// The audit log names users who got a token, and never what was typed in vain.
func TestTokenAuditLog(t *testing.T) {
	s, j := open(t)
	for _, form := range []string{
		"grant_type=password&client_id=public&username=demo&password=pass+word%2B1&resource=r",
		"grant_type=password&client_id=public&username=my-password&password=x&resource=r",
		"grant_type=password&client_id=my-secret",
	} {
		resp, err := s.Client().Post(s.URL+"/STS/oauth/token", "", strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	s.Close()
	var got []string
	for _, e := range *j {
		got = append(got, fmt.Sprintf("%s %s %s user=%s login=%s client=%s", e.Operation, e.Phase, e.Outcome, e.Principal.UserID, e.Principal.Login, e.Principal.ClientID))
	}
	// The others have no known user.
	want := []string{"Token done ok user=7 login=demo client=public"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
