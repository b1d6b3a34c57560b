// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestConfigCheck checks each kind of broken configuration, and that one fault does not hide another.
func TestConfigCheck(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const key = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
	tamgatest.WriteFile(t, "master.key", key)
	tamgatest.WriteFile(t, "open.key", key)
	if err := os.Chmod("open.key", 0o644); err != nil {
		t.Fatal(err)
	}
	tamgatest.WriteFile(t, "short.key", "0123\n")
	tamgatest.WriteFile(t, "tls.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
	const good = "master_keys: {active: '1', files: {'1': master.key}}\n"
	for _, c := range []struct{ name, text, want string }{
		{"good", good, ""},
		{"port", good + "listen: 127.0.0.1:99999\n", "tamga.yaml: line 2: listen: want HOST:PORT"},
		{"no port", good + "listen: 127.0.0.1\n", "listen: want HOST:PORT"},
		{"every address", good + "listen: 0.0.0.0:8080\n", "tamga.yaml: line 2: public_url: http://0.0.0.0:8080 would be in every issued certificate"},
		{"no TLS files", good + "tls: {certificate_file: a.pem, key_file: a.key}\n", "tamga.yaml: line 2: tls.certificate_file: open a.pem"},
		{"no TLS files, the other one", good + "tls:\n  certificate_file: a.pem\n  key_file: a.key\n", "tamga.yaml: line 4: tls.key_file: open a.key"},
		{"no TLS key", good + "tls: {certificate_file: tls.pem, key_file: a.key}\n", "tls.key_file: open a.key"},
		{"a key that is the certificate", good + "tls: {certificate_file: tls.pem, key_file: tls.pem}\n", "tls: tls.pem and tls.pem do not belong together"},
		{"no master key", "master_keys: {active: '1', files: {'1': gone.key}}\n", "tamga.yaml: line 1: master key 1: stat gone.key: no such file"},
		{"readable master key", "master_keys: {active: '1', files: {'1': open.key}}\n", "chmod 600"},
		{"short master key", "master_keys: {active: '1', files: {'1': short.key}}\n", "not 64 hexadecimal digits"},
		{"spool is a file", good + "spool_dir: tls.pem\n", "spool_dir: tls.pem is not a directory"},
		{"no directory of the database", good + "database: sqlite:tls.pem/a.db\n", "database: tls.pem is not a directory"},
		{"no secret of a client", good + "clients: [{id: a, secret_file: gone}]\n", "tamga.yaml: line 2: clients[0].secret_file: stat gone"},
		{"unknown setting", good + "listne: 127.0.0.1:1\n", "tamga.yaml: line 2: listne: unknown setting; did you mean listen?"},
		{"wrong form", good + "tokens: {access_life: 5}\nlimits: {signing_request: lots}\n", `line 2: tokens.access_life: want a time, such as 300s, 15m or 1h, not "5"`},
		{"second of a list", good + "clients:\n- id: a\n  password_grant: true\n- id: b\n  secret_file: gone\n", "tamga.yaml: line 6: clients[1].secret_file: stat gone"},
		{"a setting of the default", good + "blob_dir: b\nspool_dir: tls.pem\n", "tamga.yaml: line 3: spool_dir"},
		{"no logo", good + "pdf: {logo: gone.png}\n", "tamga.yaml: line 2: pdf.logo: "},
		{"a logo that is no picture", good + "pdf:\n  logo: tls.pem\n", "tamga.yaml: line 3: pdf.logo: tls.pem is not an image"},
		{"an empty file", "", "tamga.yaml: master_keys.active: want"},
		{"not YAML", "a: [\n", "tamga.yaml: yaml: line"},
		{"twice", good + "listen: a\nlisten: b\n", "tamga.yaml: yaml: line 3: mapping key \"listen\" already defined at line 2"},
		{"a list", "[1]\n", "tamga.yaml: line 1: the file: want settings by their names, such as listen: 127.0.0.1:8080"},
	} {
		tamgatest.WriteFile(t, "tamga.yaml", c.text)
		r := tamgatest.Run(t.Context(), "", "config", "check", "--config", "tamga.yaml")
		if (r.Failure == nil) != (c.want == "") || r.Failure != nil && !strings.Contains(r.Failure.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, r.Failure, c.want)
		}
		if r.Failure != nil && (strings.Contains(r.Failure.Error(), "config.Config") || strings.Contains(r.Failure.Error(), "!!")) {
			t.Errorf("%s: speaks of types: %v", c.name, r.Failure)
		}
	}

	tamgatest.WriteFile(t, "tamga.yaml", "listne: a\nlisten: 127.0.0.1:99999\ntokens: {access_life: soon}\nlog: {level: loud}\n")
	r := tamgatest.Run(t.Context(), "", "config", "check", "--config", "tamga.yaml", "--json")
	var said struct {
		Valid  bool
		Faults []struct {
			File, Key, Text, Remedy string
			Line                    int
		}
	}
	if err := json.Unmarshal([]byte(r.Out), &said); err != nil || r.Code != 1 || said.Valid || len(said.Faults) != 5 {
		t.Fatalf("exit code %d, %v:\n%s", r.Code, err, r.Out)
	}
	for i, want := range []struct {
		key, text, remedy string
		line              int
	}{
		{"listne", "unknown setting; did you mean listen?", "correct the name", 1},
		{"tokens.access_life", "want a time", "correct the setting", 3},
		{"log.level", "want debug", "correct the setting", 0},
		{"listen", "want HOST:PORT", "correct the setting", 2},
		{"master_keys.active", "want the name of the key", "tamga init", 0},
	} {
		f := said.Faults[i]
		if f.File != "tamga.yaml" && want.line > 0 || want.line > 0 && f.Line != want.line || f.Key != want.key || !strings.HasPrefix(f.Text, want.key+": "+want.text) || !strings.Contains(f.Remedy, want.remedy) {
			t.Errorf("fault %d is %+v, want %+v", i, f, want)
		}
	}
	// doctor has the same names, and the same places.
	r = tamgatest.Run(t.Context(), "", "doctor", "--offline", "--config", "tamga.yaml", "--json")
	var findings struct {
		Findings []struct {
			File, Key, Text, Remedy string
			Line                    int
		}
	}
	if err := json.Unmarshal([]byte(r.Out), &findings); err != nil || !slices.Equal(findings.Findings, said.Faults) {
		t.Errorf("doctor says %+v, %v; config check %+v", findings.Findings, err, said.Faults)
	}
	// A file that is missing, and a setting of the command line, which is in no file.
	for _, set := range []struct{ given, key, file string }{
		{"master_keys.files.1=gone.key", "master_keys.files.1", ""},
		{"tokens.access_life=soon", "tokens.access_life", ""},
	} {
		tamgatest.WriteFile(t, "tamga.yaml", good)
		said.Faults = nil
		r = tamgatest.Run(t.Context(), "", "config", "check", "--config", "tamga.yaml", "--json", "--set", set.given)
		if err := json.Unmarshal([]byte(r.Out), &said); err != nil || len(said.Faults) != 1 || said.Faults[0].Key != set.key || said.Faults[0].File != "" || strings.Contains(said.Faults[0].Text, "line ") {
			t.Errorf("--set %s: %+v, %v", set.given, said.Faults, err)
		}
	}
	// What is not YAML has no other faults, and --set has no line.
	tamgatest.WriteFile(t, "tamga.yaml", "\tlisten: a\n")
	if r := tamgatest.Run(t.Context(), "", "config", "check", "--config", "tamga.yaml"); r.Failure == nil || strings.Contains(r.Failure.Error(), "\n") {
		t.Errorf("a tab: %v", r.Failure)
	}
	tamgatest.WriteFile(t, "tamga.yaml", good+"listen: 127.0.0.1:1\n")
	if r := tamgatest.Run(t.Context(), "", "config", "check", "--config", "tamga.yaml", "--set", "listen=a"); r.Failure == nil || strings.HasPrefix(r.Failure.Error(), "tamga.yaml: line") {
		t.Errorf("--set: %v", r.Failure)
	}
	tamgatest.WriteFile(t, "tamga.yaml", good)
	if r := tamgatest.Run(t.Context(), "", "config", "check", "--config", "tamga.yaml", "--json"); r.Failure != nil || !strings.Contains(r.Out, `"valid": true`) {
		t.Errorf("a valid configuration: %v, %s", r.Failure, r.Out)
	}
	left, err := filepath.Glob(".tamga-check-*")
	if err != nil || len(left) > 0 {
		t.Errorf("the check leaves %q, %v", left, err)
	}
}
