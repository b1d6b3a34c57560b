// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// TestProduction sets an installation up as docs/config.md says, over
// PostgreSQL: configuration, master key, migration, group, user, certificate, a
// client with a secret, and two processes that are one service.
func TestProduction(t *testing.T) {
	t.Parallel()
	database := storetest.PostgreSQL(t).Database(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("master.key", strings.Repeat("0123456789abcdef", 4)+"\n")
	write("exchange.secret", "a secret of the exchange\n")
	password := write("password", "correct horse battery staple\n")
	config := write("tamga.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
public_url: http://sign.example.org
database: %q
master_keys: {active: "2026", files: {"2026": master.key}}
clients:
  - {id: exchange, secret_file: exchange.secret, password_grant: true}
two_step: {anonymous: true}
log: {format: text}
`, database))
	p := &tamgatest.Server{T: t}
	p.MustRun("config", "check", "--config", config)
	p.MustRun("migrate", "--config", config)
	p.MustRun("migrate", "--config", config) // a second time changes nothing
	p.MustRun("group", "add", "Default", "--config", config)
	p.MustRun("user", "add", "petrov", "--group", "Default", "--password-file", password, "--config", config)
	p.MustRun("cert", "issue", "petrov", "--default", "--config", config)

	one := tamgatest.StartArgs(t, "serve", "--config", config)
	two := tamgatest.StartArgs(t, "serve", "--config", config)

	grant := func(s *tamgatest.Server, secret string) (int, []byte) {
		t.Helper()
		form := url.Values{"grant_type": {"password"}, "username": {"petrov"}, "password": {"correct horse battery staple"},
			"resource": {"URN:cryptopro:dss:signserver:SignServer"}}
		request, err := http.NewRequest("POST", s.URL+"/STS/oauth/token", strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth("exchange", secret)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return tamgatest.ReadAll(t, response)
	}
	if status, body := grant(one, "not the secret"); status != 401 || !strings.Contains(string(body), "invalid_client") {
		t.Errorf("a wrong client secret is answered %d %s", status, body)
	}
	status, body := grant(one, "a secret of the exchange")
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &token); err != nil || status != 200 {
		t.Fatalf("no token: %d %s", status, body)
	}
	for i, s := range []*tamgatest.Server{one, two} {
		status, body := s.Do(t.Context(), "POST", s.URL+"/SignServer/rest/api/documents/", token.AccessToken, bytes.NewReader(signingBody(t, 0, "")))
		if status != 200 {
			t.Errorf("process %d answers the token of process 0 with %d %s", i, status, body)
		}
	}
	tamgatest.TwoSteps(t, one, two, "gost2012-512", []byte("prepared here, completed there"), func(message []byte, _ string) {
		if len(message) == 0 {
			t.Error("the other process completes to nothing")
		}
	})
	p.MustRun("user", "lock", "petrov", "--config", config)
	for i, s := range []*tamgatest.Server{one, two} {
		status, body := s.Do(t.Context(), "POST", s.URL+"/SignServer/api/documents", token.AccessToken, bytes.NewReader(signingBody(t, 0, "")))
		if status != 401 {
			t.Errorf("process %d answers a locked user with %d %s", i, status, body)
		}
	}
	for i, s := range []*tamgatest.Server{one, two} {
		if err := s.Stop(); err != nil {
			t.Errorf("process %d ends with %v", i, err)
		}
	}
}

// TestServeRefuses: what could do harm or cannot work is said before anything is
// served, all of it at once.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "tamga.yaml")
	for _, c := range []struct {
		name, text string
		says       []string
	}{
		{"unknown key", "listn: x", []string{"listn"}},
		{"several faults", "listen: nowhere\ntokens: {access_life: 0s}\nlog: {level: loud}", []string{"listen:", "tokens.access_life:", "log.level:", "master_keys.active:"}},
		{"password in the URL", "database: postgres://u:p@localhost/db", []string{"database_password_file"}},
		{"a secret that others can read", "master_keys: {active: a, files: {a: open.key}}", []string{"chmod 600"}},
		{"no tables", "master_keys: {active: a, files: {a: master.key}}", []string{"tamga migrate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, mode := range map[string]os.FileMode{"open.key": 0o644, "master.key": 0o600} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("ab", 32)), mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(config, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			err := run(t.Context(), []string{"serve", "--config", config, "--listen", "127.0.0.1:0"}, strings.NewReader(""), &out, &errs)
			if c.name == "several faults" { // --listen would mend one of them
				err = run(t.Context(), []string{"serve", "--config", config}, strings.NewReader(""), &out, &errs)
			}
			if err == nil {
				t.Fatal("it serves")
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v\ndoes not say %q", err, text)
				}
			}
		})
	}
	t.Run("early build", func(t *testing.T) {
		early := filepath.Join(dir, "early.db")
		db, err := sql.Open("sqlite", early)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id BIGINT NOT NULL, is_applied BOOLEAN NOT NULL)"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, []byte("public_url: http://127.0.0.1:1\ndatabase: sqlite:early.db\nmaster_keys: {active: a, files: {a: master.key}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"serve", "--listen", "127.0.0.1:0"}, {"migrate"}, {"group", "list"}, {"init", "--yes"}, {"doctor"}, {"backup", filepath.Join(dir, "backup")}, {"restore", "release", "--yes"},
		} {
			var out, errs bytes.Buffer
			err := run(t.Context(), append(args, "--config", config), strings.NewReader(""), &out, &errs)
			if err == nil {
				t.Fatalf("%v works", args)
			}
			if text := err.Error() + out.String(); !strings.Contains(text, "no such database is upgraded") {
				t.Errorf("%v: %s", args, text)
			}
		}
	})
	t.Run("dev beyond loopback", func(t *testing.T) {
		err := run(t.Context(), []string{"serve", "--dev", "--data", filepath.Join(dir, "dev"), "--listen", "0.0.0.0:0"}, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("got %v", err)
		}
	})
}
