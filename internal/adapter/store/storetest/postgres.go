// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that creates the databases
)

// Cluster is a PostgreSQL server for tests.
type Cluster struct {
	sockets string // folder of the Unix socket
	port    string // of a guarded server; the others have the default, and no TCP
	last    atomic.Int64
	input   io.Closer // of the server's shell; the server ends if this is collected
	log     *serverLog

	mu       sync.Mutex
	template bool     // the database "migrated" exists
	emptied  []string // databases of ended tests, migrated and without rows
}

// PostgreSQL returns the server that the tests of a process share. It runs until the test
// process ends. If PostgreSQL is not installed, the test is skipped, or fails with
// CI=true in the environment. In the short form only the tests of the store have a server,
// because each package starts one of its own.
func PostgreSQL(t testing.TB) *Cluster {
	t.Helper()
	if testing.Short() && filepath.Base(os.Args[0]) != "store.test" {
		t.Skip("PostgreSQL: only the tests of the store have one in the short form")
	}
	need(t)
	c, err := shared()
	must(t, err)
	return c
}

// OwnPostgreSQL starts a server for this test only and stops it at the end. Options are
// settings of the server, such as "fsync=on"; by default tests run without fsync.
func OwnPostgreSQL(t testing.TB, options ...string) *Cluster {
	t.Helper()
	c, stop, err := startPostgreSQL(need(t), options)
	must(t, err)
	t.Cleanup(stop)
	return c
}

// Guarded is a server whose clients prove who they are: on its socket by their user of the system (peer), over TCP
// with TLS by a password. Its role tamga, which creates databases, may connect on the socket as any user.
type Guarded struct {
	*Cluster
	Address   string // HOST:PORT
	Authority string // file with the certificate that TLS is verified by
}

// GuardedPostgreSQL is OwnPostgreSQL for a guarded server.
func GuardedPostgreSQL(t testing.TB, options ...string) *Guarded {
	t.Helper()
	bin := need(t)
	dir, err := os.MkdirTemp("", "tamga-pg-") // as in startPostgreSQL
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.WriteFile(filepath.Join(dir, "hba"), []byte("local all tamga trust\nlocal all all peer\nhostssl all all 127.0.0.1/32 scram-sha-256\n"), 0o644))
	authority, key := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	must(t, certify(authority, key))
	attr, err := asServer(dir)
	must(t, err)
	if c := attr.Credential; c != nil {
		must(t, os.Chown(key, int(c.Uid), int(c.Gid)))
	}
	// The port is also the name of the socket. It is free now, and taken again a moment later.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	must(t, l.Close())
	c, stop, err := startPostgreSQL(bin, append([]string{
		"hba_file=" + filepath.Join(dir, "hba"), "listen_addresses=127.0.0.1", "port=" + port,
		"ssl=on", "ssl_cert_file=" + authority, "ssl_key_file=" + key,
	}, options...))
	must(t, err)
	t.Cleanup(stop)
	c.port = port
	must(t, os.Chmod(c.sockets, 0o755)) // other users connect
	return &Guarded{c, "127.0.0.1:" + port, authority}
}

// Addresses are those of a database for its owner.
type Addresses struct {
	Socket string // without a password
	TCP    string // with the password, over TLS
}

// Owned creates a role and an empty database that belongs to it.
func (g *Guarded) Owned(t testing.TB, role, password string, options ...string) Addresses {
	t.Helper()
	g.Do(t, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, password))
	database, _, _ := strings.Cut(strings.TrimPrefix(g.Database(t, append([]string{"OWNER " + role}, options...)...), "postgres:///"), "?")
	tcp := url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Host: g.Address, Path: database,
		RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {g.Authority}}.Encode()}
	return Addresses{g.Socket(role, database), tcp.String()}
}

// Socket returns the address of a database on the socket for a role.
func (g *Guarded) Socket(role, database string) string {
	return strings.Replace(g.address(database), "user=tamga", "user="+role, 1)
}

// Do runs a statement as the role that may do all, in the database postgres.
func (c *Cluster) Do(t testing.TB, statement string) { t.Helper(); c.In(t, "postgres", statement) }

// In is Do in another database.
func (c *Cluster) In(t testing.TB, database, statement string) {
	t.Helper()
	admin, err := sql.Open("pgx", c.address(database))
	must(t, err)
	defer admin.Close()
	_, err = admin.ExecContext(t.Context(), statement)
	must(t, err)
}

// certify makes a certificate for 127.0.0.1 that signs itself, and its key.
func certify(file, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// need returns the folder of the server's programs, or skips or fails the test.
func need(t testing.TB) string {
	t.Helper()
	bin, ok := postgresPrograms()
	if !ok {
		if os.Getenv("CI") == "true" {
			t.Fatal("PostgreSQL is not installed, and CI=true requires its tests: install the package postgresql")
		}
		t.Skip("PostgreSQL is not installed, so its tests are skipped; install the package postgresql")
	}
	return bin
}

// shared starts the server that tests share.
var shared = sync.OnceValues(func() (*Cluster, error) {
	bin, _ := postgresPrograms()
	// The system does not fail while tests run, and no test kills this server.
	c, _, err := startPostgreSQL(bin, []string{"full_page_writes=off", "wal_level=minimal", "max_wal_senders=0"})
	return c, err
})

// startPostgreSQL creates and starts a server. stop ends it and waits for that. The
// server also ends, and deletes its files, when the test process ends.
func startPostgreSQL(bin string, options []string) (c *Cluster, stop func(), err error) {
	// Not t.TempDir: its parent is closed to the user of the server, and the path of a
	// socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "tamga-pg-")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	attr, err := asServer(dir)
	if err != nil {
		return nil, nil, err
	}
	data := filepath.Join(dir, "data")
	if err := makeData(bin, data, attr); err != nil {
		return nil, nil, err
	}
	// The input of the shell ends when the test process ends or is killed.
	args := []string{"-c", `dir=$1; shift; "$@" </dev/null & read -r _; kill -INT $!; wait $!; rm -rf "$dir"`, "sh", dir,
		filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=100"}
	for _, o := range options {
		args = append(args, "-c", o)
	}
	server := command(attr, dir, "/bin/sh", args...)
	input, err := server.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	log, err := server.StderrPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := server.Start(); err != nil {
		return nil, nil, err
	}
	var said bytes.Buffer
	lines := bufio.NewScanner(log)
	ready := false
	for !ready && lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		ready = strings.Contains(lines.Text(), "ready to accept connections")
	}
	drained := make(chan struct{})
	kept := &serverLog{}
	go func() {
		defer close(drained)
		io.Copy(kept, log)
	}()
	stop = func() {
		input.Close()
		<-drained
		server.Wait() // the status is that of an interrupted server
	}
	if !ready {
		stop()
		return nil, nil, fmt.Errorf("PostgreSQL did not start:\n%s", said.Bytes())
	}
	return &Cluster{sockets: dir, input: input, log: kept}, stop, nil
}

// makeData makes the data directory of a server. It copies one that was made once on this
// machine, since initdb takes most of the time of a start.
func makeData(bin, data string, attr *syscall.SysProcAttr) error {
	made, err := madeOnce(bin)
	if err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-R", made, data).CombinedOutput(); err != nil {
		return fmt.Errorf("copying the data directory: %w\n%s", err, out)
	}
	// The server refuses a directory that others may read.
	return filepath.WalkDir(data, func(name string, d fs.DirEntry, err error) error {
		if err != nil || attr.Credential == nil {
			return err
		}
		return os.Lchown(name, int(attr.Credential.Uid), int(attr.Credential.Gid))
	})
}

// madeOnce returns a data directory that no server has used. Its name has the version of
// initdb and the flags.
func madeOnce(bin string) (string, error) {
	flags := []string{"--username=tamga", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"}
	version, err := exec.Command(filepath.Join(bin, "initdb"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("initdb: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(version, strings.Join(flags, " ")...))
	kept := filepath.Join(cache, "tamga-judges", fmt.Sprintf("postgresql-%x", sum[:8]))
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	// Tests of several packages may do this at once: each renames its own, and the first wins.
	dir, err := os.MkdirTemp("", "tamga-initdb-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	attr, err := asServer(dir)
	if err != nil {
		return "", err
	}
	data := filepath.Join(dir, "data")
	initdb := command(attr, dir, filepath.Join(bin, "initdb"), append(flags, "--pgdata="+data)...)
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return "", err
	}
	// The cache can be on another file system, where a rename is not possible.
	own, err := os.MkdirTemp(filepath.Dir(kept), "postgresql-new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(own)
	if out, err := exec.Command("cp", "-R", data, filepath.Join(own, "data")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("keeping the data directory: %w\n%s", err, out)
	}
	if err := os.Rename(filepath.Join(own, "data"), kept); err != nil {
		if _, there := os.Stat(kept); there != nil {
			return "", err
		}
	}
	return kept, nil
}

// serverLog keeps what a server logs after its start.
type serverLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Log returns what the server has logged since it started. The server writes a moment
// after the event.
func (c *Cluster) Log() string {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return c.log.text.String()
}

// Database creates an empty database and returns its address. Options are those of CREATE
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

// Migrated creates a database with an empty schema of this release and returns its
// address. It copies a database that was migrated once: a copy takes a third of the time.
func (c *Cluster) Migrated(t testing.TB) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.template {
		admin, err := sql.Open("pgx", c.address("postgres"))
		must(t, err)
		defer admin.Close()
		_, err = admin.ExecContext(t.Context(), "CREATE DATABASE migrated")
		must(t, err)
		must(t, migrate(t.Context(), c.address("migrated")))
		must(t, vacant(t.Context(), c.address("migrated")))
		c.template = true
	}
	return c.Database(t, "TEMPLATE migrated")
}

// Emptied returns the address of a database like that of Migrated, for a test that does not
// change the schema. Its rows are deleted after the test, and another test gets it. That takes
// a fraction of the time of a copy.
func (c *Cluster) Emptied(t testing.TB) string {
	t.Helper()
	url := c.kept()
	if url == "" {
		url = c.Migrated(t)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // its rows could show why
		}
		// The context of the test has ended.
		if err := empty(context.Background(), url); err != nil {
			t.Errorf("emptying the database: %v", err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.emptied = append(c.emptied, url)
	})
	return url
}

// kept takes an emptied database, "" if there is none.
func (c *Cluster) kept() (url string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.emptied); n > 0 {
		url, c.emptied = c.emptied[n-1], c.emptied[:n-1]
	}
	return url
}

// empty deletes all rows and restarts the numbers of identity columns. The rows of
// migrations stay. It ends the sessions of others first: they could still write.
func empty(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, `DO $$
		DECLARE item record;
		BEGIN
			PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid();
			SET LOCAL session_replication_role = replica; -- no order of tables because of foreign keys
			FOR item IN SELECT oid::regclass AS name FROM pg_class
				WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT IN ('schema_versions', 'lock_stripes') LOOP
				EXECUTE format('DELETE FROM %s', item.name);
			END LOOP;
			FOR item IN SELECT oid::regclass AS name FROM pg_class
				WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace LOOP
				EXECUTE format('ALTER SEQUENCE %s RESTART', item.name);
			END LOOP;
		END $$`)
	return err
}

// vacant returns an error if a migrated database has rows: empty would delete them.
func vacant(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, `DO $$
		DECLARE item record; found boolean;
		BEGIN
			FOR item IN SELECT oid::regclass AS name FROM pg_class
				WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT IN ('schema_versions', 'lock_stripes') LOOP
				EXECUTE format('SELECT EXISTS (SELECT FROM %s)', item.name) INTO found;
				IF found THEN
					RAISE EXCEPTION 'the migrations add rows to %: Cluster.Emptied must keep them', item.name;
				END IF;
			END LOOP;
		END $$`)
	return err
}

func (c *Cluster) address(database string) string {
	address := "postgres:///" + database + "?user=tamga&host=" + c.sockets
	if c.port != "" {
		address += "&port=" + c.port
	}
	return address
}

// asServer returns the attributes of a program that refuses to run as root, and gives it
// the folder dir.
func asServer(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{}
	if os.Getuid() != 0 {
		return attr, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, uid, gid)
}

func command(attr *syscall.SysProcAttr, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = attr
	return cmd
}

// postgresPrograms returns the folder of the server's programs: Debian installs them
// outside of the PATH, one folder for each version.
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
