// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"tamga/internal/app/dev"
	webconsole "tamga/internal/web/console"
)

// Cert returns the certificate of the user demo for a suite, with or without a PIN.
func (s *Server) Cert(suite string, withPIN bool) dev.Certificate {
	s.T.Helper()
	for _, c := range s.Dev.Certificates {
		if c.Suite == suite && (c.PIN != "") == withPIN {
			return c
		}
	}
	s.T.Fatalf("dev.json has no certificate %s (PIN: %t)", suite, withPIN)
	return dev.Certificate{}
}

// Token signs the user demo in.
func (s *Server) Token() string {
	s.T.Helper()
	return s.TokenOf(s.Dev.User.Login, s.Dev.User.Password)
}

// TokenOf signs a user or an operator in.
func (s *Server) TokenOf(login, password string) string {
	s.T.Helper()
	status, body := s.Grant(login, password)
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != 200 {
		s.T.Fatalf("no token for %s: %d %s", login, status, body)
	}
	return answer.AccessToken
}

// Grant asks for a token by password and returns the answer.
func (s *Server) Grant(login, password string) (int, []byte) {
	s.T.Helper()
	response, err := http.PostForm(s.Dev.TokenURL, url.Values{
		"grant_type": {"password"}, "username": {login}, "password": {password},
		"client_id": {s.Dev.ClientID}, "resource": {s.Dev.Resource},
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return ReadAll(s.T, response)
}

// Do sends a request with a body of JSON and returns the answer. An empty token sends none.
func (s *Server) Do(ctx context.Context, method, url, token string, body io.Reader) (int, []byte) {
	s.T.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		s.T.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.T.Fatal(err)
	}
	return ReadAll(s.T, response)
}

// Call sends a value as JSON to a path of the signing service and returns the answer.
func (s *Server) Call(method, path, token string, body any) (int, []byte) {
	s.T.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.T.Fatal(err)
	}
	return s.Do(s.T.Context(), method, s.URL+"/SignServer"+path, token, bytes.NewReader(data))
}

// Signed is Call for a request that must succeed. It returns the bytes of the answer, which is
// a string of Base64.
func (s *Server) Signed(method, path, token string, body any) []byte {
	s.T.Helper()
	status, answer := s.Call(method, path, token, body)
	var content []byte
	if err := json.Unmarshal(answer, &content); err != nil || status != 200 {
		s.T.Fatalf("%s %s: %d %.400s", method, path, status, answer)
	}
	return content
}

// Post sends a request for a signature as it is.
func (s *Server) Post(token string, body io.Reader) (int, []byte) {
	s.T.Helper()
	return s.Do(context.Background(), "POST", s.Dev.BaseURL+"/api/documents", token, body)
}

// Parameters are those of a signature.
type Parameters = map[string]any

// Request is the body of a request for a signature.
func Request(content []byte, kind string, cert int64, p Parameters) map[string]any {
	return map[string]any{"Content": content, "Signature": map[string]any{"Type": kind, "Parameters": p, "CertificateId": cert, "PinCode": ""}}
}

// Captured returns the messages that the server would have sent.
func (s *Server) Captured() (list []webconsole.Message) {
	s.T.Helper()
	request, err := http.NewRequest("GET", s.Dev.CapturedURL, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.T.Fatal(err)
	}
	status, body := ReadAll(s.T, response)
	if err := json.Unmarshal(body, &list); err != nil || status != 200 {
		s.T.Fatalf("captured messages: %d %s, %v", status, body, err)
	}
	return list
}

// ReadAll reads an answer and closes it.
func ReadAll(t testing.TB, response *http.Response) (int, []byte) {
	t.Helper()
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, data
}
