// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Pooled starts PgBouncer in front of the database url of this cluster and returns the
// address behind it. mode is session, transaction or statement.
func (c *Cluster) Pooled(t testing.TB, url, mode string) (pooled string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // Debian's folder, which is not in every PATH
	}
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("PgBouncer is not installed, and CI=true requires its tests: install the package pgbouncer")
		}
		t.Skip("PgBouncer is not installed, so its tests are skipped; install the package pgbouncer")
	}
	dir, err := os.MkdirTemp("", "tamga-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "bouncer.ini")
	// The folder of the socket is the only access control, as for the cluster.
	config := fmt.Sprintf("[databases]\n* = host=%s user=tamga\n[pgbouncer]\npool_mode=%s\nunix_socket_dir=%s\nlisten_port=6432\nauth_type=any\ndefault_pool_size=10\n",
		c.sockets, mode, dir)
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	attr, err := asServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	// The input of the shell ends when the test process ends or is killed.
	server := command(attr, dir, "/bin/sh", "-c", `"$@" </dev/null & read -r _; kill -TERM $!; wait $!`, "sh", program, file)
	input, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(log)
	ready := false
	for !ready && lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		ready = strings.Contains(lines.Text(), "process up")
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, log)
	}()
	t.Cleanup(func() {
		input.Close()
		<-drained
		server.Wait() // the status is that of an interrupted program
	})
	if !ready {
		t.Fatalf("PgBouncer did not start:\n%s", &said)
	}
	return strings.Replace(url, "host="+c.sockets, "host="+dir, 1) + "&port=6432"
}
