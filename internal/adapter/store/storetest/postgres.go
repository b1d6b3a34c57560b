package storetest

import (
	"bufio"
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that makes the databases
)

// Cluster is a PostgreSQL server that belongs to one test.
type Cluster struct {
	sockets string // folder of the Unix socket; there is no TCP port
	last    atomic.Int64
}

// PostgreSQL starts a server of its own for the test and stops it at the end.
// Options are settings of the server, such as "fsync=on", which tests do without.
// Without PostgreSQL on the machine the test is skipped, or fails where the
// environment says CI=true.
func PostgreSQL(t testing.TB, options ...string) *Cluster {
	t.Helper()
	bin, ok := postgresPrograms()
	if !ok {
		if os.Getenv("CI") == "true" {
			t.Fatal("PostgreSQL is not installed, and CI=true wants its tests: install the package postgresql")
		}
		t.Skip("PostgreSQL is not installed: its half of the tests does not run; install the package postgresql")
	}
	// Not t.TempDir: its parent is closed to the user that the server runs as,
	// and the path of a socket has at most 107 octets.
	dir, err := os.MkdirTemp("", "tamga-pg-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // the server refuses to run as root
		account, err := user.Lookup("postgres")
		must(t, err)
		uid, err := strconv.Atoi(account.Uid)
		must(t, err)
		gid, err := strconv.Atoi(account.Gid)
		must(t, err)
		must(t, os.Chown(dir, uid, gid))
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	data := filepath.Join(dir, "data")
	initdb := command(attr, dir, filepath.Join(bin, "initdb"), "--pgdata="+data, "--username=tamga",
		"--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	// The shell stops the server when its input ends: at the end of the test,
	// and also when the test process is killed.
	args := []string{"-c", `"$@" </dev/null & read -r _; kill -INT $!; wait $!`, "sh",
		filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60"}
	for _, o := range options {
		args = append(args, "-c", o)
	}
	server := command(attr, dir, "/bin/sh", args...)
	stop, err := server.StdinPipe()
	must(t, err)
	log, err := server.StderrPipe()
	must(t, err)
	must(t, server.Start())
	var said bytes.Buffer
	lines := bufio.NewScanner(log)
	ready := false
	for !ready && lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		ready = strings.Contains(lines.Text(), "ready to accept connections")
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, log)
	}()
	t.Cleanup(func() {
		stop.Close()
		<-drained
		server.Wait() // the status is that of a server that was interrupted
	})
	if !ready {
		t.Fatalf("PostgreSQL did not start:\n%s", said.Bytes())
	}
	return &Cluster{sockets: dir}
}

// Database makes an empty database and returns its address. Options are those of CREATE
// DATABASE.
func (c *Cluster) Database(t testing.TB, options ...string) string {
	t.Helper()
	admin, err := sql.Open("pgx", c.address("postgres"))
	must(t, err)
	defer admin.Close()
	name := fmt.Sprintf("test%d", c.last.Add(1))
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name+" "+strings.Join(options, " "))
	must(t, err)
	return c.address(name)
}

func (c *Cluster) address(database string) string {
	return "postgres:///" + database + "?user=tamga&host=" + c.sockets
}

func command(attr *syscall.SysProcAttr, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = attr
	return cmd
}

// postgresPrograms finds the folder of the server's programs: Debian keeps them
// out of the PATH, one folder a version.
func postgresPrograms() (string, bool) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), true
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	if len(found) == 0 {
		return "", false
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), true
}
