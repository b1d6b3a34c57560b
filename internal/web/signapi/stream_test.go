// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"tamga/pki/suite"

	"tamga/internal/tamgatest"
)

// TestStreaming signs and hashes documents that are bodies of their own.
func TestStreaming(t *testing.T) {
	server := tamgatest.Start(t)
	token := server.Token()
	for _, size := range []int{1, 70_000, 3 << 20} {
		document := bytes.Repeat([]byte{7}, size)
		order := tamgatest.Request(nil, "CAdES", 0, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"})
		delete(order, "Content")
		status, body := server.Stream("/rest/api/documents", token, order, document)
		var signature []byte
		if err := json.Unmarshal(body, &signature); status != 200 || err != nil {
			t.Fatalf("%d bytes: %d %.300s", size, status, body)
		}
		if v := server.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": signature, "Source": document}); len(v) != 1 || !*v[0].Result {
			t.Errorf("%d bytes: the signature does not hold: %+v", size, v)
		}
		for _, h := range []*suite.Hash{suite.GOST94, suite.Streebog256, suite.Streebog512, suite.SHA256} {
			status, body := server.Stream("/api/documents/hash", token, map[string]any{"Hash": map[string]any{"Parameters": map[string]any{"HashAlgorithm": h.Name}}}, document)
			var sum []byte
			if err := json.Unmarshal(body, &sum); status != 200 || err != nil || !bytes.Equal(sum, h.Digest(document).Sum) {
				t.Errorf("%s of %d bytes: %d %.200s", h.Name, size, status, body)
			}
		}
	}
	bad := tamgatest.Request([]byte("x"), "CAdES", 0, tamgatest.Parameters{"IsDetached": "True"})
	if status, body := server.Stream("/api/documents", token, bad, []byte("y")); status != 400 {
		t.Errorf("a document twice: %d %s", status, body)
	}
	if status, body := server.Stream("/api/documents/hash", token, map[string]any{"Hash": map[string]any{"Parameters": map[string]any{"HashAlgorithm": "MD5"}}}, []byte("y")); status != 400 {
		t.Errorf("an unknown hash: %d %s", status, body)
	}
	order := tamgatest.Request(nil, "CAdES", 0, tamgatest.Parameters{"IsDetached": "True"})
	if status, body := server.Stream("/api/documents", token, order, nil); status != 400 || !bytes.Contains(body, []byte("content_required")) {
		t.Errorf("no document: %d %s", status, body)
	}
}
