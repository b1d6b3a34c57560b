// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tamga/internal/tamgatest"
)

// TestServiceManager checks what systemd is told: that the service is ready, that it stops, and by the exit code that
// another start with the same configuration is of no use.
func TestServiceManager(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	said := func() string {
		if err := manager.SetReadDeadline(time.Now().Add(tamgatest.Patience)); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 100)
		n, err := manager.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	words := append([]string{"NOTIFY_SOCKET=" + socket, tamgatest.Program(t), "serve", "--dev", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--set", "log.format=text"}, tamgatest.DefaultCost()...)
	p := tamgatest.StartCommand(t, exec.Command("env", words...))
	if got := said(); got != "READY=1" {
		t.Errorf("at the start: %q", got)
	}
	if err := p.Process().Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := said(); got != "STOPPING=1" {
		t.Errorf("at the end: %q", got)
	}
	p.Wait()

	file := tamgatest.WriteFile(t, filepath.Join(dir, "tamga.yaml"), "lisen: 127.0.0.1:8080\n")
	err = tamgatest.ProcessOf(t, "serve", "--config", file).Run()
	if code, is := err.(*exec.ExitError); !is || code.ExitCode() != 78 {
		t.Errorf("an invalid configuration: %v", err)
	}
}

// TestPerson checks that the audit log names the person who ran a command by sudo.
func TestPerson(t *testing.T) {
	t.Parallel()
	i := initializeEmpty(t)
	cmd := tamgatest.ProcessOf(t, "group", "add", "Later", "--config", i.config)
	cmd.Env = append(cmd.Environ(), "SUDO_USER=ivan")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out := i.run("audit", "--operation", "AddGroup", "--json")
	if !strings.Contains(out, `"login":"administrator"`) || !strings.Contains(out, `SUDO_USER ivan"`) {
		t.Errorf("the audit log has\n%s", out)
	}
}
