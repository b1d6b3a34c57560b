// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/web/rest"
)

func TestAuthorizeByCertificate(t *testing.T) {
	s, j := open(t, func(s *httptest.Server) { s.Config.ConnContext = rest.FrontEnd })
	client := s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	const oob = "&redirect_uri=urn:ietf:wg:oauth:2.0:oob:auto"
	for _, c := range []struct {
		name, certificate, query string
		status                   int
		want                     string // the address, or the body
	}{
		{"as clients ask", "good", "client_id=public&response_type=code&scope=dss&redirect_uri=urn:ietf:wg:oauth:2.0:oob:auto&resource=urn:cryptopro:dss:signserver:signserver", 302, "urn:ietf:wg:oauth:2.0:oob:auto?code=c0de"},
		{"encoded, with what is not ours", "good", "promt=none&client_secret=x&client_id=public&response_type=code&redirect_uri=urn%3Aietf%3Awg%3Aoauth%3A2.0%3Aoob%3Aauto", 302, "urn:ietf:wg:oauth:2.0:oob:auto?code=c0de"},
		{"state", "good", "client_id=public&response_type=code&state=a%26b%0d%0aX:y" + oob, 302, "urn:ietf:wg:oauth:2.0:oob:auto?code=c0de&state=a%26b%0D%0AX%3Ay"},
		{"another response", "good", "client_id=public&response_type=token" + oob, 400, `{"error":"unsupported_response_type","error_description":"response_type: want code"}`},
		{"an unknown client", "good", "client_id=unknown&response_type=code" + oob, 401, `{"error":"invalid_client","error_description":"client_id is missing or unknown"}`},
		{"an open redirect", "good", "client_id=public&response_type=code&redirect_uri=https://evil.example/", 400, `{"error":"access_denied","error_description":"not you"}`},
		{"another party", "else", "client_id=public&response_type=code" + oob, 400, `{"error":"access_denied","error_description":"not you"}`},
		{"a certificate that does not count", "bad", "client_id=public&response_type=code" + oob, 401, `{"Message":"invalid_token","error":"invalid_token","error_description":"the client certificate is not accepted"}`},
	} {
		r, err := http.NewRequest("GET", s.URL+"/STS/oauth/authorize/certificate?"+c.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Client-Cert", ":"+base64.StdEncoding.EncodeToString([]byte(c.certificate))+":")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := string(body)
		if resp.StatusCode == 302 {
			got += resp.Header.Get("Location")
		}
		if d := cmp.Diff(fmt.Sprint(c.status, c.want), fmt.Sprint(resp.StatusCode, got)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	if last := (*j)[1]; last.Principal.Login != "operator" || last.Principal.ClientID != "public" {
		t.Errorf("the audit log does not say who got the code: %+v", last)
	}
}

func TestAuthorizeWithoutCertificate(t *testing.T) {
	s, _ := open(t)
	resp, err := s.Client().Get(s.URL + "/STS/oauth/authorize/certificate?client_id=public&response_type=code")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	want := `{"error":"login_required","error_description":"the connection has shown no client certificate: use TLS with mutual authentication"}`
	if err != nil || resp.StatusCode != 401 || string(body) != want {
		t.Errorf("got %d %s, %v", resp.StatusCode, body, err)
	}
}
