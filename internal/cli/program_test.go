// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPasted(t *testing.T) {
	for _, c := range []struct{ path, goos, want string }{
		{`./tamga`, "linux", `./tamga`},
		{`./it's`, "linux", `'./it'\''s'`},
		{`C:\tamga\tamga.exe`, "windows", `C:\tamga\tamga.exe`},
		{`C:\Program Files\it's.exe`, "windows", `& 'C:\Program Files\it''s.exe'`},
	} {
		if got := pasted(c.path, c.goos); got != c.want {
			t.Errorf("%s on %s: got %s, want %s", c.path, c.goos, got, c.want)
		}
	}
}

func TestStartedAs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bin", "tamga")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(file))
	for _, c := range []struct{ cwd, executable, argument, cache, want string }{
		{dir, file, "tamga", "", "tamga"},
		{dir, file, file, "", "tamga"}, // the shell finds this file
		{dir, "/opt/tamga", "./tamga", "", "./tamga"},
		{dir, "/opt/tamga", "../x y/tamga", "", "'../x y/tamga'"},
		{dir, "/tmp/go-build12/b001/tamga.test", "/tmp/go-build12/b001/tamga.test", "", "tamga"},
		{dir, "/tmp/go-build12/b001/exe/tamga", "/tmp/go-build12/b001/exe/tamga", "", "go run tamga/cmd/tamga"},
		{"../..", "/root/.cache/go-build/ab/abcd-d/tamga", "/root/.cache/go-build/ab/abcd-d/tamga", "", "go run ./cmd/tamga"},
		{"../..", "/var/cache/go/ab/abcd-d/tamga", "/var/cache/go/ab/abcd-d/tamga", "/var/cache/go/", "go run ./cmd/tamga"},
		{"../../cmd/tamga", "/tmp/go-build12/b001/exe/tamga", "/tmp/go-build12/b001/exe/tamga", "", "go run ."},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Chdir(c.cwd)
			if got := startedAs(c.executable, c.argument, c.cache); got != c.want {
				t.Errorf("%s as %s: got %q", c.executable, c.argument, got)
			}
		})
	}
	const text = `run "tamga migrate", then tamga gost-tls check --dir x; see tamga --help. Tamga and tamga.db stay.`
	if got, want := newProgram("./t", "", []string{"migrate", "gost-tls"}).AsStarted(text), `run "./t migrate", then ./t gost-tls check --dir x; see ./t --help. Tamga and tamga.db stay.`; got != want {
		t.Errorf("got %s", got)
	}
}
