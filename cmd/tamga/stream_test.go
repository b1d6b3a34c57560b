package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"tamga/pki/suite"

	"tamga/internal/tamgatest"
)

// stream sends octets as the body and the request in the header, as clients do that
// do not want their document in Base64. Some send no Content-Type, some this one.
func stream(p *tamgatest.Server, path, token string, params any, body []byte) (int, []byte) {
	p.T.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		p.T.Fatal(err)
	}
	r, err := http.NewRequestWithContext(p.T.Context(), "POST", p.Dev.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		p.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/octet-string")
	r.Header.Set("CPDSS-OPERATION-PARAMS", base64.URLEncoding.EncodeToString(text))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.T.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		p.T.Fatal(err)
	}
	return answer.StatusCode, data
}

// TestStreaming signs and hashes documents that are bodies of their own.
func TestStreaming(t *testing.T) {
	server := tamgatest.Start(t)
	token := server.Token()
	for _, size := range []int{1, 70_000, 3 << 20} {
		document := bytes.Repeat([]byte{7}, size)
		order := tamgatest.Request(nil, "CAdES", 0, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"})
		delete(order, "Content")
		status, body := stream(server, "/rest/api/documents", token, order, document)
		var signature []byte
		if err := json.Unmarshal(body, &signature); status != 200 || err != nil {
			t.Fatalf("%d octets: %d %.300s", size, status, body)
		}
		if v := judged(server, map[string]any{"SignatureType": "CAdES", "Content": signature, "Source": document}); len(v) != 1 || !*v[0].Result {
			t.Errorf("%d octets: the signature does not hold: %+v", size, v)
		}
		for _, h := range []*suite.Hash{suite.GOST94, suite.Streebog256, suite.Streebog512, suite.SHA256} {
			status, body := stream(server, "/api/documents/hash", token, map[string]any{"Hash": map[string]any{"Parameters": map[string]any{"HashAlgorithm": h.Name}}}, document)
			var sum []byte
			if err := json.Unmarshal(body, &sum); status != 200 || err != nil || !bytes.Equal(sum, h.Digest(document).Sum) {
				t.Errorf("%s of %d octets: %d %.200s", h.Name, size, status, body)
			}
		}
	}
	bad := tamgatest.Request([]byte("x"), "CAdES", 0, tamgatest.Parameters{"IsDetached": "True"})
	if status, body := stream(server, "/api/documents", token, bad, []byte("y")); status != 400 {
		t.Errorf("a document twice: %d %s", status, body)
	}
	if status, body := stream(server, "/api/documents/hash", token, map[string]any{"Hash": map[string]any{"Parameters": map[string]any{"HashAlgorithm": "MD5"}}}, []byte("y")); status != 400 {
		t.Errorf("an unknown hash: %d %s", status, body)
	}
	order := tamgatest.Request(nil, "CAdES", 0, tamgatest.Parameters{"IsDetached": "True"})
	if status, body := stream(server, "/api/documents", token, order, nil); status != 400 || !bytes.Contains(body, []byte("content_required")) {
		t.Errorf("no document: %d %s", status, body)
	}
}
