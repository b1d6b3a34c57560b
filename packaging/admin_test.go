// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdminCommand runs tamga-admin with programs of the system that only say how they were called.
func TestAdminCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tamga":   `echo "tamga $*; TAMGA_CONFIG=$TAMGA_CONFIG; HOME=$HOME; in $PWD; credentials ${CREDENTIALS_DIRECTORY:-none}"`,
		"id":      `echo "${TEST_UID:-0}"`,
		"mktemp":  `echo ` + dir + `/credentials`,
		"find":    `:`,
		"chown":   `:`,
		"setpriv": `while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"`,
	} {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n"+text+"\n")
	}
	script, err := filepath.Abs("debian/tamga-admin")
	if err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	for _, c := range []struct {
		uid  string
		args []string
		want string
		fail bool
	}{
		{"1000", nil, "tamga ; ", false},
		{"1000", []string{"--help"}, "tamga --help; ", false},
		{"1000", []string{"user", "add", "-h"}, "tamga user add -h; ", false},
		{"1000", []string{"version"}, "tamga version; ", false},
		{"1000", []string{"complete", "--", "us"}, "tamga complete -- us; ", false},
		{"1000", []string{"user", "list"}, "run it as root: sudo tamga-admin user", true},
		{"0", []string{"import", "users.csv"}, "tamga import users.csv; TAMGA_CONFIG=/etc/tamga/tamga.yaml; HOME=/var/lib/tamga; in " + here + "; credentials " + dir + "/credentials", false},
		{"0", []string{"key", "rotate"}, "HOME=" + here + "; in " + here + "; credentials none", false}, // as root
		{"0", []string{"init"}, "tamga init --config /etc/tamga/tamga.yaml", true},
	} {
		cmd := exec.Command("sh", append([]string{script}, c.args...)...)
		cmd.Dir = here
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + here, "TEST_UID=" + c.uid}
		out, err := cmd.CombinedOutput()
		if (err != nil) != c.fail || !strings.Contains(string(out), c.want) {
			t.Errorf("user %s, %q: %v, %s, want %q", c.uid, c.args, err, out, c.want)
		}
	}
}
