// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tamga/internal/tamgatest"
)

// signingBody is a small signing request.
func signingBody(t testing.TB, cert int64, pin string) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"Content":   []byte("document"),
		"Signature": map[string]any{"Type": "CAdES", "Parameters": map[string]string{}, "CertificateId": cert, "PinCode": pin},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestKillDuringSigning kills the server in the middle of many signatures and
// looks whether everything it had answered is still so: the user, the token, the
// keys, and the number of wrong PINs.
func TestKillDuringSigning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := tamgatest.StartProcess(t, dir)
	token := server.Token()
	withPIN, without := server.Cert("gost2012-256", true), server.Cert("gost2012-512", false)
	wrong := func(s *tamgatest.Server) {
		t.Helper()
		status, body := s.Post(token, bytes.NewReader(signingBody(t, withPIN.ID, withPIN.PIN+"0")))
		if status != 400 || !strings.Contains(string(body), "invalid_pin") {
			t.Fatalf("a wrong PIN is answered %d %s", status, body)
		}
	}
	for range 4 {
		wrong(server)
	}

	answered := make(chan struct{}, 1000)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for {
				request, err := http.NewRequest("POST", server.Dev.BaseURL+"/api/documents", bytes.NewReader(signingBody(t, without.ID, "")))
				if err != nil {
					return
				}
				request.Header.Set("Authorization", "Bearer "+token)
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					return // the server is gone
				}
				response.Body.Close()
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 20 {
		<-answered
	}
	server.Kill()
	senders.Wait()

	// On the same address, since it is what tokens are issued by.
	again := tamgatest.StartProcess(t, dir, "--listen", strings.TrimPrefix(server.URL, "http://"))
	if again.Dev.User != server.Dev.User || len(again.Dev.Certificates) != len(server.Dev.Certificates) {
		t.Fatal("dev.json names another user or other certificates after the restart")
	}
	for _, c := range again.Dev.Certificates {
		if c.PIN != "" {
			continue
		}
		if status, body := again.Post(token, bytes.NewReader(signingBody(t, c.ID, ""))); status != 200 {
			t.Errorf("certificate %d (%s) with the token from before: %d %s", c.ID, c.Suite, status, body)
		}
	}
	for range 6 {
		wrong(again)
	}
	if status, body := again.Post(token, bytes.NewReader(signingBody(t, withPIN.ID, withPIN.PIN))); status != 400 {
		t.Errorf("after 4 + 6 wrong PINs the right one is answered %d %s; want it blocked", status, body)
	}
	if err := again.Stop(); err != nil {
		t.Errorf("a polite stop ends with %v", err)
	}
}
