// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// TestInitDatabase checks that init over PostgreSQL writes nothing before the database can be used, says what is
// wrong in words of their own, takes the corrected flags, and says which flags an existing configuration ignores.
func TestInitDatabase(t *testing.T) {
	t.Parallel()
	g := storetest.GuardedPostgreSQL(t)
	address := g.Owned(t, "daemon", "right")
	dir := t.TempDir()
	config := filepath.Join(dir, "etc", "tamga.yaml")
	right := tamgatest.WriteFile(t, filepath.Join(dir, "right"), "right\n")
	wrong := tamgatest.WriteFile(t, filepath.Join(dir, "wrong"), "wrong\n")
	tcp := strings.Replace(address.TCP, ":right@", "@", 1)
	run := func(flags ...string) tamgatest.Result {
		return tamgatest.Run(t.Context(), "", append([]string{"init", "--yes", "--public-url", "https://sign.example.org", "--config", config}, flags...)...)
	}
	for _, c := range []struct {
		name   string
		flags  []string
		remedy string
	}{
		{"wrong password", []string{"--database", tcp, "--database-password-file", wrong}, "database_password_file"},
		{"no such role", []string{"--database", strings.Replace(tcp, "daemon@", "nowhere@", 1), "--database-password-file", wrong}, "database_password_file"},
		{"no such database", []string{"--database", strings.Replace(tcp, "/test1?", "/gone?", 1), "--database-password-file", right}, "createdb"},
		{"authority of TLS unknown", []string{"--database", tcp[:strings.Index(tcp, "?")] + "?sslmode=verify-full", "--database-password-file", right}, "sslrootcert"},
		{"nothing listens", []string{"--database", "postgres://daemon@127.0.0.1:1/tamga?sslmode=verify-full"}, "start the database server"},
	} {
		r := run(c.flags...)
		if r.Code != 1 || !strings.Contains(r.Failure.Error(), "nothing was written") || !strings.Contains(r.Failure.Error(), c.remedy) {
			t.Errorf("%s: %d, %v", c.name, r.Code, r.Failure)
		}
		if _, err := os.Stat(filepath.Dir(config)); !os.IsNotExist(err) {
			t.Fatalf("%s: something was written: %v", c.name, err)
		}
	}
	if r := run("--database", tcp, "--database-password-file", right); r.Code != 0 {
		t.Fatalf("the corrected flags: %v\n%s", r.Failure, r.Out)
	}
	r := run("--database", "sqlite:other.db", "--listen", "127.0.0.1:9999", "--database-password-file", right)
	if r.Code != 0 || strings.Count(r.Out, "is not used") != 2 || !strings.Contains(r.Out, `--listen 127.0.0.1:9999 is not used: `+config+` exists and says "127.0.0.1:8080"`) {
		t.Errorf("flags that differ: %d, %v\n%s", r.Code, r.Failure, r.Out)
	}
}

// TestInitPeer makes an installation as root over a socket of PostgreSQL that admits the user of the service only.
func TestInitPeer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root connects as another user")
	}
	address := storetest.GuardedPostgreSQL(t).Owned(t, "daemon", "unused").Socket
	config := filepath.Join(t.TempDir(), "tamga.yaml")
	r := tamgatest.Run(t.Context(), "", "init", "--yes", "--public-url", "https://sign.example.org", "--config", config, "--database", address)
	if r.Code != 0 {
		t.Fatalf("%v\n%s", r.Failure, r.Out)
	}
}
