// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// olderCommit closed the issue before the packages got backups, alerts and questions. An upgrade from its package is tried.
const olderCommit = "8681462d"

// olderPackage makes the package of olderCommit.
func olderPackage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := strings.TrimSpace(output(t, "git", "rev-parse", "--show-toplevel"))
	output(t, "git", "clone", "-q", source, dir+"/source")
	output(t, "git", "-C", dir+"/source", "checkout", "-q", olderCommit)
	cmd := exec.Command(dir+"/source/packaging/release.sh", "1.2.2", dir+"/out")
	cmd.Env = append(os.Environ(), "TAMGA_RELEASE_TARGETS=linux/amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir + "/out/tamga_1.2.2_amd64.deb"
}

// tryUpgrade makes an installation with an older package as the manual says, and upgrades it.
func tryUpgrade(t *testing.T, older, newer string) {
	mmdebstrap := installed(t, "mmdebstrap")
	if os.Getuid() != 0 {
		t.Skip("a clean Debian needs root")
	}
	root := filepath.Join(t.TempDir(), "root")
	output(t, mmdebstrap, "--quiet", "--variant=minbase", "--include=adduser,debconf,systemd", "bookworm", root)
	inside := func(args ...string) string {
		t.Helper()
		return output(t, "chroot", append([]string{root}, args...)...)
	}
	output(t, "cp", older, root+"/tmp/older.deb")
	output(t, "cp", newer, root+"/tmp/newer.deb")
	inside("dpkg", "-i", "/tmp/older.deb")
	inside("tamga", "init", "--yes", "--public-url", "https://sign.example.org", "--listen", freeAddress(t), "--config", "/etc/tamga/tamga.yaml", "--data", "/var/lib/tamga", "--user", "tamga")
	serves(t, root)
	inside("tamga-admin", "group", "add", "Before")
	roots := inside("tamga-admin", "ca", "export")
	inside("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "-i", "/tmp/newer.deb")
	if groups := inside("tamga-admin", "group", "list"); !strings.Contains(groups, "Before") {
		t.Errorf("after the upgrade: %s", groups)
	}
	if after := inside("tamga-admin", "ca", "export"); after != roots {
		t.Errorf("other roots after the upgrade:\n%s", after)
	}
	inside("tamga-admin", "config", "check", "--config", "/etc/tamga/tamga.yaml")
	inside("tamga-admin", "operator", "list")
	serves(t, root)
	// All units are the new ones, and systemd can load them with the program and the user of the package.
	for _, unit := range []string{"tamga.service", "tamga.socket", "tamga-backup.service", "tamga-backup.timer"} {
		have, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system", unit))
		want, wanted := os.ReadFile("debian/" + unit)
		if err != nil || wanted != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not the one of the new package: %v, %v", unit, err, wanted)
		}
	}
	if out, err := exec.Command("chroot", root, "systemd-analyze", "verify", "--man=no", "tamga.service", "tamga.socket", "tamga-backup.service", "tamga-backup.timer").CombinedOutput(); err != nil || strings.Contains(string(out), "tamga") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// freeAddress returns an address of this machine that is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serves starts the service of a Debian as systemd does, with its user and its secrets in a directory of credentials, waits until
// it is ready, and ends it.
func serves(t *testing.T, root string) {
	t.Helper()
	output(t, "chroot", root, "sh", "-c", `rm -rf /run/credentials && mkdir -m 700 /run/credentials && for f in /etc/tamga/secrets/*; do cp "$f" "/run/credentials/secrets_${f##*/}"; done && chmod 440 /run/credentials/* && chown -R tamga: /run/credentials`)
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	server := exec.CommandContext(ctx, "chroot", "--userspec=tamga:tamga", root, "env", "CREDENTIALS_DIRECTORY=/run/credentials", "tamga", "serve", "--config", "/etc/tamga/tamga.yaml")
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ready := ""
	// Only a question shows that another process is ready.
	for tick := time.NewTicker(100 * time.Millisecond); ready != "ready\n" && ctx.Err() == nil; <-tick.C {
		out, _ := exec.Command("chroot", root, "tamga", "ready", "--config", "/etc/tamga/tamga.yaml").CombinedOutput()
		ready = string(out)
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	err := server.Wait()
	if ready != "ready\n" || err != nil {
		t.Fatalf("ready says %q; the server ended with %v:\n%s", ready, err, log.String())
	}
}

// TestDebianInstalled installs the package of a release that exists already.
func TestDebianInstalled(t *testing.T) {
	release := os.Getenv("TAMGA_TEST_RELEASE_DIR")
	if release == "" {
		t.Skip("set TAMGA_TEST_RELEASE_DIR to the directory of release.sh 1.2.3; TestRelease does the same with its own release")
	}
	newer := release + "/tamga_1.2.3_amd64.deb"
	older := os.Getenv("TAMGA_TEST_OLDER_PACKAGE")
	t.Run("systemd", func(t *testing.T) { trySystemd(t, cmp.Or(older, newer), newer) })
	t.Run("Debian", func(t *testing.T) { tryDebian(t, release) })
	if older != "" {
		t.Run("Upgrade", func(t *testing.T) { tryUpgrade(t, older, newer) })
	}
}

// tryDebian installs, starts, upgrades, removes and purges the package of a release in a clean Debian, which
// comes from a mirror.
func tryDebian(t *testing.T, release string) {
	mmdebstrap := installed(t, "mmdebstrap")
	if os.Getuid() != 0 {
		t.Skip("a clean Debian needs root")
	}
	root := filepath.Join(t.TempDir(), "root")
	output(t, mmdebstrap, "--quiet", "--variant=minbase", "--include=adduser", "bookworm", root)
	inside := func(args ...string) string {
		t.Helper()
		return output(t, "chroot", append([]string{root}, args...)...)
	}
	fails := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("chroot", append([]string{root}, args...)...).CombinedOutput()
		if err == nil {
			t.Errorf("%q succeeds:\n%s", args, out)
		}
		return string(out)
	}
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	// The next version has the same files. It is packed without compression, which takes most of the time.
	first, err := os.ReadFile(filepath.Join(release, "tamga_1.2.3_amd64.deb"))
	if err != nil {
		t.Fatal(err)
	}
	put("tmp/tamga_1.2.3.deb", string(first), 0o644)
	tree := filepath.Join(t.TempDir(), "tree")
	output(t, "dpkg-deb", "--raw-extract", root+"/tmp/tamga_1.2.3.deb", tree)
	control, err := os.ReadFile(tree + "/DEBIAN/control")
	if err != nil {
		t.Fatal(err)
	}
	write(t, tree+"/DEBIAN/control", strings.Replace(string(control), "Version: 1.2.3\n", "Version: 1.2.4\n", 1))
	output(t, "dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, root+"/tmp/tamga_1.2.4.deb")

	if out := inside("dpkg", "-i", "/tmp/tamga_1.2.3.deb"); !strings.Contains(out, "run: tamga init --config /etc/tamga/tamga.yaml --data /var/lib/tamga --user tamga; then: systemctl enable --now tamga") {
		t.Errorf("the installation does not say what comes next:\n%s", out)
	}
	for dir, want := range map[string]string{"/etc/tamga": "750 root tamga", "/etc/tamga/secrets": "700 root root", "/var/lib/tamga": "700 tamga tamga"} {
		if got := strings.TrimSpace(inside("stat", "-c", "%a %U %G", dir)); got != want {
			t.Errorf("%s is %s, want %s", dir, got, want)
		}
	}

	put("etc/tamga/tamga.yaml", fmt.Sprintf(`listen: %s
public_url: https://sign.example.org
database: sqlite:/var/lib/tamga/tamga.db
spool_dir: /var/lib/tamga/spool
blob_dir: /var/lib/tamga/blobs
drain_time: 0s
master_keys: {active: "1", files: {"1": /etc/tamga/secrets/master.key}}
`, freeAddress(t)), 0o644)
	put("etc/tamga/secrets/master.key", strings.Repeat("0123456789abcdef", 4)+"\n", 0o600)

	// The upgrade makes the tables, as it would bring older ones up to date.
	if out := fails("tamga-admin", "group", "list"); !strings.Contains(out, "tamga-admin migrate") {
		t.Errorf("without tables: %s", out)
	}
	inside("dpkg", "-i", "/tmp/tamga_1.2.4.deb")
	inside("tamga-admin", "group", "add", "Default")
	if got := strings.TrimSpace(inside("stat", "-c", "%a %U", "/var/lib/tamga/tamga.db")); !strings.HasSuffix(got, " tamga") {
		t.Errorf("the database is %s", got)
	}
	inside("sh", "-c", "! ls /run/tamga-admin.* 2>/dev/null")

	serves(t, root)

	// A reload gives the service what changed since its start, and nothing else.
	put("etc/tamga/secrets/tls.key", "a new key\n", 0o600)
	inside("env", "CREDENTIALS_DIRECTORY=/run/credentials", "/usr/lib/tamga/refresh-secrets")
	inside("env", "CREDENTIALS_DIRECTORY=/run/credentials", "/usr/lib/tamga/refresh-secrets")
	if got := inside("sh", "-c", "cd /run && find tamga-secrets* -printf '%p %m %u %g\\n' | sort"); got != "tamga-secrets 750 root tamga\ntamga-secrets/tls.key 440 root tamga\n" {
		t.Errorf("the service gets\n%s", got)
	}
	inside("rm", "-r", "/run/tamga-secrets", "/etc/tamga/secrets/tls.key")

	inside("dpkg", "-r", "tamga")
	for _, kept := range []string{"etc/tamga/tamga.yaml", "etc/tamga/secrets/master.key", "var/lib/tamga/tamga.db"} {
		if _, err := os.Stat(filepath.Join(root, kept)); err != nil {
			t.Errorf("after the removal: %v", err)
		}
	}
	inside("dpkg", "-i", "/tmp/tamga_1.2.4.deb")
	if groups := inside("tamga-admin", "group", "list"); !strings.Contains(groups, "Default") {
		t.Errorf("the data is gone after removal and installation: %s", groups)
	}
	// A purge without an answer keeps the master keys.
	inside("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "-P", "tamga")
	if _, err := os.Stat(filepath.Join(root, "etc/tamga/secrets/master.key")); err != nil {
		t.Errorf("after a purge without an answer: %v", err)
	}
	inside("dpkg", "-i", "/tmp/tamga_1.2.4.deb")
	// What an administrator keeps: a backup, and the configuration with its secrets elsewhere.
	inside("install", "-d", "-m", "0700", "-o", "tamga", "-g", "tamga", "/srv/backups")
	inside("tamga-admin", "backup", "/srv/backups/one")
	inside("tamga-admin", "backup", "verify", "/srv/backups/one")
	inside("cp", "-a", "/etc/tamga", "/srv/etc")
	inside("sh", "-c", "echo tamga tamga/purge boolean true | debconf-set-selections")
	inside("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "-P", "tamga")
	for _, gone := range []string{"etc/tamga", "var/lib/tamga", "usr/bin/tamga"} {
		if _, err := os.Stat(filepath.Join(root, gone)); !os.IsNotExist(err) {
			t.Errorf("after the purge: %s is there, %v", gone, err)
		}
	}
	inside("dpkg", "-i", "/tmp/tamga_1.2.4.deb")
	inside("sh", "-c", "rm -rf /etc/tamga && cp -a /srv/etc /etc/tamga")
	inside("tamga-admin", "restore", "/srv/backups/one")
	if groups := inside("tamga-admin", "group", "list"); !strings.Contains(groups, "Default") {
		t.Errorf("after purge and restore: %s", groups)
	}
}
