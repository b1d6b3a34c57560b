// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// finding is a line of doctor --json.
type finding struct{ Check, State, Text, Remedy string }

// examine runs doctor and returns its findings by state, and its exit code.
func examine(t *testing.T, config string, flags ...string) (list []finding, code int) {
	t.Helper()
	r := tamgatest.Run(t.Context(), "", append([]string{"doctor", "--json", "--config", config}, flags...)...)
	var said struct {
		Healthy  bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(r.Out), &said); err != nil || said.Healthy != (r.Code == 0) {
		t.Fatalf("%v: %v, exit code %d:\n%s", flags, err, r.Code, r.Out)
	}
	for _, f := range said.Findings {
		if f.Text == "" || (f.State == "ok") != (f.Remedy == "") {
			t.Errorf("a finding without a text, or a fault without a remedy: %+v", f)
		}
	}
	return said.Findings, r.Code
}

// TestDoctor checks that each kind of fault is found, with its remedy, and that a good installation has
// none.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "tamga.yaml")
	s := &tamgatest.Server{T: t}
	s.MustRun("init", "--yes", "--public-url", "https://sign.example.org", "--listen", "127.0.0.1:0", "--config", config)
	s.MustRun("operator", "add", "second", "--group", "Default", "--password-file", tamgatest.WriteFile(t, filepath.Join(dir, "password"), "correct horse battery staple\n"), "--config", config)

	list, code := examine(t, config, "--set", "trusted_proxies=[127.0.0.1]")
	for _, f := range list {
		if f.State != "ok" {
			t.Errorf("a good installation: %+v", f)
		}
	}
	if code != 0 || len(list) < 12 {
		t.Errorf("a good installation: exit code %d, %d findings", code, len(list))
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	path := func(name string) string { return filepath.Join(dir, name) }
	// A port without answers: bound by another process would be taken; an address of no machine is not.
	tamgatest.WriteFile(t, path("plain.txt"), "text\n")
	tamgatest.WriteFile(t, path("open.key"), strings.Repeat("0123456789abcdef", 4)+"\n")
	if err := os.Chmod(path("open.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	tamgatest.WriteFile(t, path("other.key"), strings.Repeat("0123456789abcdef", 4)+"\n")
	tamgatest.WriteFile(t, path("templates/contact-code.en.txt"), "{{ .Broken")
	for _, c := range []struct {
		name                       string
		set                        []string
		check, state, text, remedy string
	}{
		// Faults of the configuration as such.
		{"bad port", []string{"listen=127.0.0.1:99999"}, "configuration", "fault", "listen: want HOST:PORT", "docs/config.md"},
		{"every address", []string{"listen=0.0.0.0:8080", "public_url=''"}, "configuration", "fault", "public_url", "set public_url to the address"},
		// What it names.
		{"no TLS files", []string{"tls.certificate_file=a.pem", "tls.key_file=a.key"}, "files", "fault", "tls.certificate_file: open", "correct the path"},
		{"key is the certificate", []string{"tls.certificate_file=plain.txt", "tls.key_file=plain.txt"}, "files", "fault", "do not belong together", "its own key"},
		{"no master key", []string{"master_keys.files={'1': gone.key}"}, "files", "fault", "master key 1", "your copy"},
		{"readable master key", []string{"master_keys.files={'1': open.key}"}, "files", "fault", "chmod 600", "run the chmod"},
		{"wrong form of a master key", []string{"master_keys.files={'1': plain.txt}"}, "files", "fault", "64 hexadecimal digits", "put the right file back"},
		{"wrong master key", []string{"master_keys.files={'1': other.key}"}, "master keys", "fault", "wrong master key", "put the master key back"},
		{"spool", []string{"spool_dir=plain.txt"}, "files", "fault", "spool_dir", "name a directory"},
		{"roots of evidence", []string{"evidence.root_files=[gone.pem]"}, "files", "fault", "evidence.root_files", "correct the path"},
		{"no roots of evidence", []string{"evidence.authority_files=[plain.txt]"}, "files", "fault", "evidence.authority_files", "docs/config.md"},
		{"templates", []string{"messages.templates_dir=gone"}, "files", "fault", "messages.templates_dir", "correct the path"},
		{"broken template", []string{"messages.templates_dir=templates"}, "files", "fault", "messages.templates_dir", "docs/config.md"},
		{"SAML metadata", []string{"external=[{name: corp, title: Corp, saml: {metadata_file: gone.xml}}]"}, "files", "fault", "external[0].saml.metadata_file", "correct the path"},
		{"outside authority", []string{"certificates.authorities=[{id: 2, name: Out, certificates_file: gone.pem}]"}, "files", "fault", "certificates.authorities", "correct the path"},
		{"operators' authorities", []string{"operator_certificates={authorities_file: gone.pem, revocation_files: [gone.crl]}"}, "files", "fault", "operator_certificates.authorities_file", "correct the path"},
		// The machine and its surroundings.
		{"foreign address", []string{"listen=192.0.2.1:8080"}, "port", "fault", "listen", "an address of this machine"},
		{"port that answers", []string{"listen=" + taken.Addr().String()}, "port", "fault", "another program", "ss -ltnp"},
		{"plain HTTP", []string{"listen=192.0.2.1:8080", "public_url=http://sign.example.org"}, "proxies", "fault", "in the clear", "tls.certificate_file"},
		{"proxy without a name", nil, "proxies", "warning", "trusted_proxies is empty", "name the proxy"},
		{"no delay", []string{"users.factor_delay=0s"}, "production", "warning", "at once", "users.factor_delay: 24h"},
		{"no second operator", []string{"users.second_operator=[]"}, "production", "warning", "one operator alone", "users.second_operator"},
		{"names of others at once", []string{"certificates.approval=automatic"}, "production", "warning", "in any name", "certificates.approval: operator"},
		{"captured messages", []string{"messages.capture=true"}, "production", "warning", "shown to every client", "messages.capture"},
		{"no administrator of the pages", []string{"pages.administrators=[]"}, "operators", "warning", "pages.administrators names no operator", "tamga operator list"},
		{"login of an auditor", []string{"pages.auditors=[second]"}, "operators", "warning", "pages.auditors: second is not the identifier", "tamga operator list"},
		{"no database", []string{"database=sqlite:gone.db"}, "database", "fault", "no such file", "tamga init"},
		{"no password of the database", []string{"database=postgres://tamga@127.0.0.1:1/tamga?connect_timeout=1", "database_password_file=gone"}, "files", "fault", "database_password_file", "correct the path"},
		{"not a database", []string{"database=sqlite:plain.txt"}, "database", "fault", "", ""},
		{"server away", []string{"database=postgres://tamga@127.0.0.1:1/tamga?connect_timeout=1"}, "database", "fault", "", "start the database server"},
		{"bucket away", []string{"bucket={endpoint: 'http://127.0.0.1:1', region: a, name: a, access_key_file: other.key, secret_key_file: other.key, path_style: true}"}, "documents", "fault", "documents cannot be kept", "bucket.endpoint"},
		{"stamps away", []string{"evidence={allow_networks: [127.0.0.1], tsp_services: [{name: main, url: 'http://127.0.0.1:1/tsp'}]}"}, "network", "warning", "the time-stamp service main", "firewall"},
	} {
		var flags []string
		for _, s := range c.set {
			flags = append(flags, "--set", s)
		}
		list, code := examine(t, config, flags...)
		found := false
		for _, f := range list {
			found = found || f.Check == c.check && f.State == c.state && strings.Contains(f.Text, c.text) && strings.Contains(f.Remedy, c.remedy)
		}
		for _, f := range list {
			if f.Check == "database" && f.State == "fault" && c.check != "database" {
				t.Errorf("%s: the database has a fault too: %+v", c.name, f)
			}
		}
		if !found || c.state == "fault" && code != 1 {
			t.Errorf("%s: exit code %d, no %s of %s with %q and %q in:\n%+v", c.name, code, c.state, c.check, c.text, c.remedy, list)
		}
	}

	// A schema of another release, and messages and records that are left behind, are in the database.
	r := tamgatest.Run(t.Context(), "", "doctor", "--config", config)
	if r.Code != 0 || !strings.Contains(r.Out, "Faults: 0, warnings: 1") || !strings.Contains(r.Out, "-> name the proxy") {
		t.Errorf("for people, exit code %d:\n%s", r.Code, r.Out)
	}
	if err := os.Chmod(config, 0o666); err != nil {
		t.Fatal(err)
	}
	if list, code := examine(t, config); code != 1 || !strings.Contains(list[2].Text, "can be changed by other users") {
		t.Errorf("a configuration that others can change: %d, %+v", code, list)
	}
}
