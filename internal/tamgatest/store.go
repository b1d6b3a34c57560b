// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// DocumentStore is a user at the document store of a server.
type DocumentStore struct {
	*Server
	Base   string // address of the calls
	Bearer string // token of the user
}

// Documents returns a user at the document store of a server.
func Documents(p *Server, token string) *DocumentStore {
	return &DocumentStore{p, p.Dev.DocumentsURL + "/api/documents", token}
}

// Ask sends a request with headers and returns the whole answer.
func (d *DocumentStore) Ask(method, path string, body io.Reader, headers ...string) (*http.Response, []byte) {
	d.T.Helper()
	request, err := http.NewRequestWithContext(d.T.Context(), method, d.Base+path, body)
	if err != nil {
		d.T.Fatal(err)
	}
	if d.Bearer != "" {
		request.Header.Set("Authorization", "Bearer "+d.Bearer)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		d.T.Fatal(err)
	}
	_, answer := ReadAll(d.T, response)
	return response, answer
}

// Get asks for a success and reads its JSON.
func (d *DocumentStore) Get(method, path string, body, answer any, headers ...string) {
	d.T.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case io.Reader:
		reader = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			d.T.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	response, text := d.Ask(method, path, reader, headers...)
	if response.StatusCode != 200 {
		d.T.Fatalf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	if answer == nil {
		if len(text) != 0 {
			d.T.Errorf("%s %s answers %s", method, path, text)
		}
		return
	}
	if kind := response.Header.Get("Content-Type"); !strings.Contains(kind, "application/json") {
		d.T.Errorf("%s %s is %s", method, path, kind)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		d.T.Fatalf("%s %s: %s: %v", method, path, text, err)
	}
}

// Refuse asks for a refusal and reports whether it came.
func (d *DocumentStore) Refuse(status int, code, method, path string, body any, headers ...string) bool {
	d.T.Helper()
	reader, ok := body.(io.Reader)
	if !ok && body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			d.T.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	response, text := d.Ask(method, path, reader, headers...)
	var failure struct{ Message, Error string }
	if err := json.Unmarshal(text, &failure); err != nil || response.StatusCode != status || failure.Message != code {
		d.T.Errorf("%s %s: %d %.300s; want %d %s", method, path, response.StatusCode, text, status, code)
		return false
	}
	return true
}

// Postdoc is the header of a raw upload.
func Postdoc(info any) string {
	text, err := json.Marshal(info)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// DocumentIDs is the answer to an upload: one identifier, or a list of them.
type DocumentIDs struct {
	DocumentID  string   `json:"DocumentId"`
	DocumentIDs []string `json:"DocumentIds"`
}

// Put uploads a document as the body.
func (d *DocumentStore) Put(content []byte, info any) string {
	d.T.Helper()
	var answer DocumentIDs
	d.Get("POST", "", bytes.NewReader(content), &answer, "Content-Type", "application/octet-stream", "CPDSS-POSTDOC", Postdoc(info))
	return answer.DocumentID
}

// Content downloads a document.
func (d *DocumentStore) Content(id string) []byte {
	d.T.Helper()
	response, content := d.Ask("GET", "/"+id+"/content", nil)
	if response.StatusCode != 200 || !slices.Equal(response.Header["Content-Type"], []string{"application/octet-stream"}) {
		d.T.Fatalf("content of %s: %d %v", id, response.StatusCode, response.Header["Content-Type"])
	}
	return content
}

// PresignRequest is the body of a request that prepares an attached signature of a document for the certificate of the user
// demo.
func PresignRequest(t testing.TB, p *Server, document []byte) io.Reader {
	t.Helper()
	text, err := os.ReadFile(p.Path(p.Cert("gost2012-256", false).PEM))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{
		"Document": document, "RawCertificate": text, "signatureType": "CAdES", "signatureParams": map[string]string{"CADESType": "BES", "IsDetached": "false"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(body)
}
