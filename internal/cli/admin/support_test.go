// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestSupportBundle makes bundles of a sound and of a broken installation. They have the named parts,
// and no secret of the configuration.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string { return tamgatest.WriteFile(t, filepath.Join(dir, name), text) }
	secrets := map[string]string{
		"master.key": strings.Repeat("0123456789abcdef", 4), "client.secret": "a-secret-of-a-client", "proxy": "a-proxy-password", "query": "a-key-in-a-query",
		"callback": "whsec_c2VjcmV0IG9mIGNhbGxiYWNrcyBvZiAyNA==",
	}
	for _, name := range []string{"master.key", "client.secret", "callback"} {
		write(name, secrets[name]+"\n")
	}
	log := write("tamga.log", strings.Repeat("an old line\n", 200_000)+"the last line\n")
	config := write("tamga.yaml", fmt.Sprintf(`
database: sqlite:tamga.db
master_keys: {active: "1", files: {"1": master.key}}
clients: [{id: exchange, secret_file: client.secret, password_grant: true}]
evidence: {proxy: "http://user:%s@proxy.example.org:3128"}
operations: {callbacks: {secret_file: callback}}
operator_certificates: {revocation_files: [missing.crl]}
public_url: "http://sign.example.org"
`, secrets["proxy"]))
	p := &tamgatest.Server{T: t}
	broken := write("broken.yaml", "database: \"postgres://tamga:"+secrets["proxy"]+"@db.example.org/tamga?password="+secrets["query"]+"\"\nmaster_keys: {active: \"1\", files: {\"1\": master.key}}\n")
	for _, c := range []struct {
		config  string
		migrate bool
		want    []string
	}{
		{config, false, []string{"version.json", "doctor.json", "config.yaml", "database.json", "log.txt"}},
		{config, true, []string{"version.json", "doctor.json", "config.yaml", "database.json", "log.txt"}},
		{broken, false, []string{"version.json", "doctor.json", "log.txt"}},
	} {
		if c.migrate {
			p.MustRun("migrate", "--config", c.config)
		}
		bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
		p.MustRun("support-bundle", bundle, "--log", log, "--config", c.config)
		if info, err := os.Stat(bundle); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the bundle has the mode %v, %v: want 0600", info.Mode(), err)
		}
		parts := unpack(t, tamgatest.ReadFile(t, bundle))
		var names []string
		for _, part := range parts {
			names = append(names, part[0])
			for name, secret := range secrets {
				if strings.Contains(part[1], secret) {
					t.Errorf("%s has the secret %s", part[0], name)
				}
			}
			switch part[0] {
			case "log.txt":
				if n := strings.Count(part[1], "\n"); n > 2000 || !strings.HasSuffix(part[1], "the last line\n") {
					t.Errorf("%d lines of the log", n)
				}
			case "doctor.json":
				var findings []struct{ State, Remedy string }
				err := json.Unmarshal([]byte(part[1]), &findings)
				found := slices.ContainsFunc(findings, func(f struct{ State, Remedy string }) bool { return f.State == "fault" && f.Remedy != "" })
				if err != nil || !found {
					t.Errorf("the fault in the configuration is missing, %v:\n%s", err, part[1])
				}
			}
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s has the parts %q, want %q", c.config, names, c.want)
		}
		if r := p.TryCommand("support-bundle", bundle, "--config", c.config); r.Failure == nil {
			t.Error("an existing file was replaced")
		}
	}
}

func unpack(t *testing.T, text []byte) (parts [][2]string) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, [2]string{h.Name, string(content)})
	}
}
