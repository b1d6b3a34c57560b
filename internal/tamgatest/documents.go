// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
)

// Verdict is what existing clients read of an answer of the verification service.
type Verdict struct {
	Result                *bool
	Message               *string
	SignerCertificate     *string
	SignerCertificateInfo *struct{ SubjectName, IssuerName, NotBefore, NotAfter, SerialNumber, Thumbprint, KeyIdentifier string }
	SignatureInfo         *struct {
		CAdESType        string
		LocalSigningTime *string
	}
}

// AskSVS calls the verification service, without a token.
func (s *Server) AskSVS(method, path string, body any) (int, []byte) {
	s.T.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.T.Fatal(err)
	}
	return s.Do(s.T.Context(), method, s.Dev.SVSURL+path, "", bytes.NewReader(data))
}

// Verdicts asks the verification service, without a token.
func (s *Server) Verdicts(question map[string]any) []Verdict {
	s.T.Helper()
	status, body := s.AskSVS("POST", "/rest/api/signatures", question)
	if status != 200 {
		s.T.Fatalf("the verification service answered %d %s", status, body)
	}
	var list []Verdict
	if err := json.Unmarshal(body, &list); err != nil {
		s.T.Fatalf("%v in %s", err, body)
	}
	for _, v := range list {
		if v.Result == nil || v.Message == nil || v.SignerCertificate == nil {
			s.T.Fatalf("Result, Message and SignerCertificate are always there for existing clients: %s", body)
		}
	}
	return list
}

// Stream sends a document as the body and the request in the header, as clients do that
// do not want their document in Base64. Some send no Content-Type, some this one.
func (s *Server) Stream(path, token string, params any, body []byte) (int, []byte) {
	s.T.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		s.T.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.T.Context(), "POST", s.Dev.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/octet-string")
	r.Header.Set("CPDSS-OPERATION-PARAMS", base64.URLEncoding.EncodeToString(text))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return answer.StatusCode, data
}
