// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tamga/internal/domain/audit"

	"tamga/internal/tamgatest"
)

// auditLines reads the audit log of a directory of serve --dev.
func auditLines(t *testing.T, dir string, filter ...string) (lines []audit.Line) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"audit", "--data", dir, "--json", "--attempts", "--limit", "0"}, filter...), strings.NewReader(""), &out, &out); err != nil {
		t.Fatal(err, out.String())
	}
	for d := json.NewDecoder(&out); d.More(); {
		var l audit.Line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// Calls without a known user leave no entries. Failed sign-ins of a user leave few, with the login
// and their number, and those of unknown logins leave none.
func TestAnonymousCallersAndTheAuditLog(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t, "--set", "verification.calls_at_once=1000", // the limits by address are not the subject
		"--set", "passwords.address_at_once=1000", "--set", "passwords.login_at_once=1000")
	earlier := len(auditLines(t, server.Dir))
	for range 20 {
		for _, form := range []url.Values{
			{},
			{"grant_type": {"password"}, "username": {"x"}, "password": {"y"}},
			{"client_id": {server.Dev.ClientID}, "grant_type": {"password"}, "username": {"unknown"}, "password": {"y"}, "resource": {server.Dev.Resource}},
			{"client_id": {server.Dev.ClientID}, "grant_type": {"refresh_token"}, "refresh_token": {strings.Repeat("0", 96)}},
		} {
			request, err := http.NewRequestWithContext(t.Context(), "POST", server.Dev.TokenURL, strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("X-Request-Id", "caller-wrote-this")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if status, body := tamgatest.ReadAll(t, response); status/100 != 4 {
				t.Fatalf("got %d %s", status, body)
			}
		}
		judgedBy(server, "GET", "/rest/api/policy", 200)
		judgedBy(server, "POST", "/rest/api/signatures", 400)
	}
	const guesses = 25
	for range guesses {
		if status, body := server.Grant("DEMO", "wrong"); status != 400 {
			t.Fatalf("got %d %s", status, body)
		}
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	lines := auditLines(t, server.Dir)
	var refused []audit.Line
	for _, l := range lines[earlier:] {
		switch {
		case l.Operation == "ReadAudit":
		case l.Operation == "Token" && l.Login == "demo" && l.Object == server.Dev.User.ID && l.Outcome == "invalid_grant" && l.Remote == "127.0.0.1":
			refused = append(refused, l)
		default:
			t.Errorf("an anonymous caller left %+v", l)
		}
		if l.RequestID == "caller-wrote-this" || l.Correlation != "" {
			t.Errorf("an entry has an anonymous caller's id: %+v", l)
		}
	}
	if n := len(refused); n == 0 || n > 3 || !strings.Contains(refused[n-1].Detail, "refused 25 times since ") {
		t.Errorf("%d wrong passwords left %+v", guesses, refused)
	}
}

func judgedBy(p *tamgatest.Server, method, path string, want int) {
	p.T.Helper()
	if status, body := p.Do(p.T.Context(), method, p.Dev.SVSURL+path, "", strings.NewReader("{}")); status != want {
		p.T.Fatalf("%s: got %d %s", path, status, body)
	}
}
