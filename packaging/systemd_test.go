// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bootScript makes a Debian in the directory $1 the root of new namespaces, and starts systemd there. A container has a shared root
// because systemd mounts credentials of services from another namespace.
const bootScript = `set -e
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for dir in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$root/$dir"; done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for n in null zero full random urandom tty; do touch "$root/dev/$n"; mount --bind "/dev/$n" "$root/dev/$n"; done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/.host"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
hostname tamga-test
cd "$root"
pivot_root . .host
umount -l /.host
mount --make-rshared /
exec env -i container=unshare PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
`

// booted starts systemd in a Debian, in namespaces of its own with the network of this machine. It returns what runs a command
// inside. It skips the test on a machine that does not let systemd run.
func booted(t *testing.T, root string) (inside func(args ...string) (string, error)) {
	t.Helper()
	groups := t.TempDir()
	if err := syscall.Mount("none", groups, "cgroup2", 0, ""); err != nil {
		t.Skipf("this machine has no cgroup2: %v", err)
	}
	own := filepath.Join(groups, fmt.Sprint("tamga-test-", os.Getpid()))
	t.Cleanup(func() {
		// The processes are gone when their group can be removed.
		for range 100 {
			if err := os.Remove(own); err == nil || os.IsNotExist(err) {
				break
			}
			filepath.WalkDir(own, func(path string, e os.DirEntry, _ error) error {
				if e != nil && e.IsDir() && path != own {
					defer os.Remove(path)
				}
				return nil
			})
			time.Sleep(50 * time.Millisecond)
		}
		syscall.Unmount(groups, syscall.MNT_DETACH)
	})
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Skipf("this machine lets no group of processes be made: %v", err)
	}
	group, err := os.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	var log bytes.Buffer
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup", "--propagation", "private", "sh", "-c", bootScript, "sh", root)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	if err := cmd.Start(); err != nil {
		t.Skipf("this machine makes no namespaces: %v", err)
	}
	t.Cleanup(func() {
		os.WriteFile(filepath.Join(own, "cgroup.kill"), []byte("1"), 0)
		cmd.Process.Kill()
		cmd.Wait()
	})
	inside = func(args ...string) (string, error) {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err != nil {
			return "", err
		}
		first := strings.TrimSpace(string(children))
		out, err := exec.Command("nsenter", append([]string{"-t", first, "-m", "-p", "-u", "-i", "-C", "--"}, args...)...).CombinedOutput()
		return string(out), err
	}
	state := ""
	for range 600 {
		out, _ := inside("systemctl", "is-system-running")
		if state = strings.TrimSpace(out); state == "running" || state == "degraded" {
			return inside
		}
		time.Sleep(100 * time.Millisecond)
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("systemd says %q:\n%s", state, log.String())
	}
	t.Skipf("systemd does not run on this machine, it says %q:\n%s", state, log.String())
	return nil
}

// trySystemd installs a package in a clean Debian that systemd has started, and lets systemd run its units.
func trySystemd(t *testing.T, deb string) {
	mmdebstrap := installed(t, "mmdebstrap")
	if os.Getuid() != 0 {
		t.Skip("a clean Debian needs root")
	}
	root := filepath.Join(t.TempDir(), "root")
	output(t, mmdebstrap, "--quiet", "--variant=minbase", "--include=adduser,debconf,systemd,systemd-sysv,dbus", "bookworm", root)
	output(t, "cp", deb, root+"/root/tamga.deb")
	run := booted(t, root)
	inside := func(args ...string) string {
		t.Helper()
		out, err := run(args...)
		if err != nil {
			log, _ := run("journalctl", "--no-pager", "-n", "50", "-o", "cat")
			t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, out, log)
		}
		return strings.TrimSpace(out)
	}
	inside("dpkg", "-i", "/root/tamga.deb")
	inside("tamga", "init", "--yes", "--public-url", "https://sign.example.org", "--listen", freeAddress(t), "--config", "/etc/tamga/tamga.yaml", "--data", "/var/lib/tamga", "--user", "tamga")
	inside("systemctl", "enable", "--now", "tamga") // Type=notify: it is ready
	inside("tamga", "ready", "--config", "/etc/tamga/tamga.yaml")
	pid := func() string { return inside("systemctl", "show", "-p", "MainPID", "--value", "tamga") }
	first := pid()
	inside("sh", "-c", "echo a new secret > /etc/tamga/secrets/new && chmod 600 /etc/tamga/secrets/new")
	inside("systemctl", "reload", "tamga")
	if got := inside("stat", "-c", "%a %U %G", "/run/tamga-secrets/new"); got != "440 root tamga" {
		t.Errorf("after a reload the secret is %s", got)
	}
	if got := pid(); got != first {
		t.Errorf("a reload has started the service again: %s, then %s", first, got)
	}
	inside("systemctl", "enable", "--now", "tamga-backup.timer")
	inside("systemctl", "start", "tamga-backup.service")
	inside("sh", "-c", "tamga-admin backup verify /var/backups/tamga/*")
	inside("sh", "-c", "kill -9 "+first)
	again := first
	for range 300 { // systemd starts it after RestartSec
		if out, err := run("tamga", "ready", "--config", "/etc/tamga/tamga.yaml"); err == nil && out == "ready\n" {
			if again = pid(); again != first && again != "0" {
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	if again == first || again == "0" {
		t.Errorf("the service does not start again: %s", again)
	}
	inside("dpkg", "-i", "/root/tamga.deb") // as an upgrade
	inside("tamga", "ready", "--config", "/etc/tamga/tamga.yaml")
	if failed := inside("systemctl", "--failed", "--no-legend", "--plain"); strings.Contains(failed, "tamga") {
		t.Errorf("failed units: %s", failed)
	}
	inside("dpkg", "-r", "tamga")
	if out, _ := run("systemctl", "is-active", "tamga"); strings.TrimSpace(out) == "active" {
		t.Error("the service runs after its package was removed")
	}
}
