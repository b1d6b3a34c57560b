// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// TestMemoryOfCards makes cards of large documents through a running server: by the interface, and on the page that
// verifies. The card has the document twice, and the server holds neither.
func TestMemoryOfCards(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("it compiles a program and moves gigabytes")
	}
	t.Parallel()
	size := 100_000_000
	if testsize.Of() < testsize.Whole {
		size = 70 << 20 // more than a request may have
	}
	server := tamgatest.StartProgram(t, plainProgram(t), t.TempDir(), "--set", "verification.request=300MiB")
	token := server.Token()
	for kind, data := range map[string][]byte{"letter.pdf": tamgatest.PDFOf(size), "letter.bin": slices.Repeat([]byte("abcdefgh"), size/8)} {
		var signature []byte
		status, answer := server.Stream("/api/documents", token, map[string]any{"Signature": map[string]any{
			"Type": "CAdES", "Parameters": map[string]string{"CADESType": "BES", "IsDetached": "True"}, "CertificateId": server.Cert("gost2012-256", false).ID,
		}}, data)
		if err := json.Unmarshal(answer, &signature); err != nil || status != 200 {
			t.Fatalf("%s: %d %.200s", kind, status, answer)
		}
		for way, request := range map[string]func() *http.Request{
			"interface": func() *http.Request {
				text := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
				r, err := http.NewRequestWithContext(t.Context(), "POST", server.Dev.BaseURL+"/api/tamga/card", io.MultiReader(
					strings.NewReader(`{"Document":{"Name":"`+kind+`","Content":"`), strings.NewReader(text(data)),
					strings.NewReader(`"},"Signatures":[{"Name":"`+kind+`.sig","Content":"`+text(signature)+`"}]}`)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+token)
				return r
			},
			"page": func() *http.Request {
				part := func(name, content string) string {
					return "--b\r\nContent-Disposition: form-data; name=file; filename=" + name + "\r\n\r\n" + content + "\r\n"
				}
				r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/verify", io.MultiReader(
					strings.NewReader("--b\r\nContent-Disposition: form-data; name=answer\r\n\r\ncard.1\r\n"), strings.NewReader(part(kind, string(data))),
					strings.NewReader(part(kind+".sig", string(signature))+"--b--\r\n")))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
				return r
			},
		} {
			t.Run(kind+" "+way, func(t *testing.T) {
				rise := peakRise(server, func() {
					answer, err := http.DefaultClient.Do(request())
					if err != nil {
						t.Fatal(err)
					}
					defer answer.Body.Close()
					if answer.StatusCode != 200 {
						text, _ := io.ReadAll(answer.Body)
						t.Fatalf("%d %.2000s", answer.StatusCode, text)
					}
					if n, err := io.Copy(io.Discard, answer.Body); err != nil || n < int64(len(data)) {
						t.Fatalf("a card of %d bytes: %v", n, err)
					}
				})
				if rise > oneRequestRise {
					t.Errorf("a card of a document of %d MiB raised the resident memory by %d MiB; want at most %d", len(data)>>20, rise>>20, oneRequestRise>>20)
				}
				t.Logf("%d MiB", rise>>20)
			})
		}
	}
}
