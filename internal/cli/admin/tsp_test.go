// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tamga/internal/cli"
	"tamga/internal/domain/authority"
	"tamga/pki/tsp"
)

// pkiServer serves the built-in authority at the public address of an installation. spoil may answer a
// request in its place and then returns true.
type pkiServer struct {
	*httptest.Server
	authority *authority.Service
	spoil     func(w http.ResponseWriter, r *http.Request) bool
}

func (p *pkiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.spoil != nil && p.spoil(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	answer, name := []byte(nil), strings.TrimPrefix(r.URL.Path, "/pki/")
	switch {
	case r.URL.Path == authority.TSPPath():
		answer, err = p.authority.TimeStamp(r.Context(), body)
	case r.URL.Path == authority.OCSPPath():
		answer, err = p.authority.OCSP(r.Context(), body)
	case strings.HasSuffix(name, ".crl"):
		answer, err = p.authority.CRL(r.Context(), strings.TrimSuffix(name, ".crl"))
	default:
		err = fmt.Errorf("unexpected request for %s", r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(answer)
}

// tspInstallation makes an installation whose public address is a pkiServer.
func tspInstallation(t *testing.T) (cli.Installation, *pkiServer) {
	t.Helper()
	p := &pkiServer{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"master.key": strings.Repeat("0123456789abcdef", 4),
		"tamga.yaml": "public_url: " + p.URL + "\nmaster_keys: {active: a, files: {a: master.key}}\nlog: {format: text}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	from := cli.Installation{Config: filepath.Join(dir, "tamga.yaml")}
	command(t, &Migrate{From: from})
	h, err := from.Open(&cli.Console{Context: t.Context(), Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	if err := h.Authority.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.authority = h.Authority
	return from, p
}

// command runs a command that must succeed and returns its output.
func command(t *testing.T, cmd interface{ Run(*cli.Console) error }) string {
	t.Helper()
	out, err := attempt(t, cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// attempt runs a command and returns its output.
func attempt(t *testing.T, cmd interface{ Run(*cli.Console) error }) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := cmd.Run(&cli.Console{Context: t.Context(), Stdout: &out, Stderr: t.Output()})
	return out.String(), err
}

func TestTSPRegister(t *testing.T) {
	from, server := tspInstallation(t)
	asJSON := from
	asJSON.JSON = true
	command(t, &tspAddCommand{Name: "b", URL: "http://b.example/tsp", From: from})
	said := command(t, &tspAddCommand{Name: "a", URL: "http://a.example/tsp", Title: "Служба", Class: "q", Policy: "1.2.643.2.2.38.4", PerMinute: 60, From: from})
	if !strings.Contains(said, "tamga tsp check a") {
		t.Errorf("the output is %q", said)
	}
	for _, c := range []struct {
		cmd  interface{ Run(*cli.Console) error }
		want string
	}{
		{&tspAddCommand{Name: "a", URL: "http://c.example/", From: from}, "registered already"},
		{&tspAddCommand{Name: "c", URL: "HTTP://a.example:80/tsp/", From: from}, "registered already"},
		{&tspAddCommand{Name: "c", URL: "gopher://c.example/", From: from}, "want an http or https address"},
		{&tspAddCommand{Name: "C", URL: "http://c.example/", From: from}, "lower-case"},
		{&tspRemoveCommand{Name: "builtin", From: from}, "registered in the configuration"},
		{&tspAddCommand{Name: "own", URL: server.URL + authority.TSPPath(), From: from}, "registered already"},
		{&tspRemoveCommand{Name: "c", From: from}, "no time-stamp service of this name"},
		{&tspCheckCommand{Service: "unknown", Hash: "GR 34.11-2012 256", From: from}, "want an http or https address"},
		{&tspCheckCommand{Service: "a", Hash: "MD5", From: from}, "--hash MD5"},
	} {
		if out, err := attempt(t, c.cmd); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v (%s), want %q", c.cmd, err, out, c.want)
		}
	}
	var list []tspJSON
	if err := json.Unmarshal([]byte(command(t, &tspListCommand{From: asJSON})), &list); err != nil {
		t.Fatal(err)
	}
	want := []tspJSON{
		{"builtin", "Tamga", server.URL + authority.TSPPath(), "", "", 0, "configuration"},
		{"b", "", "http://b.example/tsp", "", "", 0, "database"},
		{"a", "Служба", "http://a.example/tsp", "q", "1.2.643.2.2.38.4", 60, "database"},
	}
	if !slices.Equal(list, want) {
		t.Errorf("the list is %+v", list)
	}
	if text := command(t, &tspListCommand{From: from}); !strings.Contains(text, "class q, policy 1.2.643.2.2.38.4, title Служба, 60 a minute") {
		t.Errorf("the list for people is\n%s", text)
	}
	command(t, &tspRemoveCommand{Name: "b", From: from})
	if text := command(t, &tspListCommand{From: from}); strings.Contains(text, "b.example") {
		t.Errorf("after the removal\n%s", text)
	}
}

func TestTSPCheck(t *testing.T) {
	from, server := tspInstallation(t)
	asJSON := from
	asJSON.JSON = true
	address := server.URL + authority.TSPPath()
	const gost = "GR 34.11-2012 256"
	for _, service := range []string{"builtin", address} {
		text := command(t, &tspCheckCommand{Service: service, Hash: gost, From: from})
		for _, title := range checkTitles {
			if !strings.Contains(text, "ok     "+string(title)) {
				t.Errorf("%q is missing in\n%s", title, text)
			}
		}
		if !strings.Contains(text, "Stamps of this service are accepted.") {
			t.Errorf("the verdict is\n%s", text)
		}
	}
	examine := func(c *tspCheckCommand) (checkJSON, error) {
		t.Helper()
		c.From = asJSON
		out, err := attempt(t, c)
		var e checkJSON
		if jsonErr := json.Unmarshal([]byte(out), &e); jsonErr != nil {
			t.Fatalf("%v: %v\n%s", err, jsonErr, out)
		}
		return e, err
	}
	if e, err := examine(&tspCheckCommand{Service: "builtin", Hash: "SHA-256"}); err != nil || !e.Good || e.Time == nil || len(e.Path) != 3 || len(e.Checks) != len(checkTitles) {
		t.Errorf("%+v, %v", e, err)
	}
	var code cli.ExitCode
	wrong := func(name, want string, c *tspCheckCommand) {
		t.Helper()
		e, err := examine(c)
		if !errors.As(err, &code) || code != 1 || e.Good {
			t.Errorf("%s: %v", name, err)
		}
		for _, check := range e.Checks {
			if !check.Good && strings.Contains(check.Error, want) {
				return
			}
		}
		t.Errorf("%s: %+v, want %q", name, e.Checks, want)
	}
	wrong("policy", "unacceptedPolicy", &tspCheckCommand{Service: "builtin", Hash: gost, Policy: "1.2.3"})
	wrong("algorithm", "badAlg", &tspCheckCommand{Service: "builtin", Hash: "SHA-1"})
	wrong("private", "not an address of the public internet, and no exception is configured for it: 10.1.2.3:80",
		&tspCheckCommand{Service: "http://10.1.2.3/", Hash: gost})
	server.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != authority.TSPPath() {
			return false
		}
		_, _ = w.Write(tsp.CreateRejection(tsp.Rejection, tsp.SystemFailure, "on fire"))
		return true
	}
	wrong("rejection", "on fire", &tspCheckCommand{Service: "builtin", Hash: gost})
	server.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == authority.TSPPath() {
			return false
		}
		http.Error(w, "away", http.StatusServiceUnavailable)
		return true
	}
	wrong("revocation", "HTTP 503", &tspCheckCommand{Service: "builtin", Hash: gost})
}
