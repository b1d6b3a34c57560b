package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tamga/internal/cli/admin"
)

// auditLines reads the audit log of a directory of serve --dev.
func auditLines(t *testing.T, dir string, filter ...string) (lines []admin.AuditLine) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"audit", "--data", dir, "--json", "--attempts", "--limit", "0"}, filter...), strings.NewReader(""), &out, &out); err != nil {
		t.Fatal(err, out.String())
	}
	for d := json.NewDecoder(&out); d.More(); {
		var l admin.AuditLine
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// Calls of nobody leave no entries. Failed sign-ins of a user leave few, with the login
// and their number, and those of logins nobody has leave none.
func TestStrangersAndTheAuditLog(t *testing.T) {
	server := startDev(t, t.TempDir(), "--set", "verification.calls_at_once=1000", // the limits by address are not the subject
		"--set", "passwords.address_at_once=1000", "--set", "passwords.login_at_once=1000")
	earlier := len(auditLines(t, server.dir))
	for range 20 {
		for _, form := range []url.Values{
			{},
			{"grant_type": {"password"}, "username": {"x"}, "password": {"y"}},
			{"client_id": {server.dev.ClientID}, "grant_type": {"password"}, "username": {"nobody"}, "password": {"y"}, "resource": {server.dev.Resource}},
			{"client_id": {server.dev.ClientID}, "grant_type": {"refresh_token"}, "refresh_token": {strings.Repeat("0", 96)}},
		} {
			request, err := http.NewRequestWithContext(t.Context(), "POST", server.dev.TokenURL, strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("X-Request-Id", "stranger-wrote-this")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if status, body := readAll(t, response); status/100 != 4 {
				t.Fatalf("got %d %s", status, body)
			}
		}
		server.judgedBy("GET", "/rest/api/policy", 200)
		server.judgedBy("POST", "/rest/api/signatures", 400)
	}
	const guesses = 25
	for range guesses {
		if status, body := server.grant("DEMO", "wrong"); status != 400 {
			t.Fatalf("got %d %s", status, body)
		}
	}
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	lines := auditLines(t, server.dir)
	var refused []admin.AuditLine
	for _, l := range lines[earlier:] {
		switch {
		case l.Operation == "ReadAudit":
		case l.Operation == "Token" && l.Login == "demo" && l.Object == server.dev.User.ID && l.Outcome == "invalid_grant" && l.Remote == "127.0.0.1":
			refused = append(refused, l)
		default:
			t.Errorf("a stranger left %+v", l)
		}
		if l.RequestID == "stranger-wrote-this" || l.Correlation != "" {
			t.Errorf("an entry has a stranger's id: %+v", l)
		}
	}
	if n := len(refused); n == 0 || n > 3 || !strings.Contains(refused[n-1].Detail, "refused 25 times since ") {
		t.Errorf("%d wrong passwords left %+v", guesses, refused)
	}
}

func (p *process) judgedBy(method, path string, want int) {
	p.t.Helper()
	if status, body := p.do(p.t.Context(), method, p.dev.SVSURL+path, "", strings.NewReader("{}")); status != want {
		p.t.Fatalf("%s: got %d %s", path, status, body)
	}
}
