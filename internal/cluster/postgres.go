// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// slowLock is how long a session waits for a lock before the server logs it.
const slowLock = 50 * time.Millisecond

// postgres is a PostgreSQL server with its data directory.
type postgres struct {
	*process
	cluster *Cluster
	name    string // "primary", "standby" and so on, also of its log
	bin     string // directory of the programs
	data    string
	port    int
	attr    syscall.SysProcAttr // the server refuses to run as root
}

// newPostgres names a server that does not exist yet. Its data directory is below dir.
func (c *Cluster) newPostgres(name, dir string, port int) (*postgres, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	s := &postgres{cluster: c, name: name, bin: bin, data: filepath.Join(dir, name), port: port}
	if os.Getuid() != 0 {
		return s, nil
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
	s.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return s, os.Chown(dir, uid, gid)
}

// postgresPrograms returns the directory of the newest PostgreSQL. Debian installs the
// programs outside of the PATH, and there all of them.
func postgresPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	if path, err := exec.LookPath("pg_basebackup"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", errors.New("PostgreSQL is not installed (Debian: postgresql)")
}

// command is one of the programs of PostgreSQL, run as the user of the server.
func (s *postgres) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = filepath.Dir(s.data)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=" + cmd.Dir}
	attr := s.attr
	cmd.SysProcAttr = &attr
	return cmd
}

func (s *postgres) do(program string, args ...string) error {
	if out, err := s.command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// initialize makes an empty data directory.
func (s *postgres) initialize() error {
	args := []string{"--pgdata=" + s.data, "--username=tamga", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"}
	if s.cluster.Standby {
		args = append(args, "--data-checksums") // pg_rewind needs them
	}
	if err := s.do("initdb", args...); err != nil || !s.cluster.Standby {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("wal_keep_size = 1GB\n") // pg_rewind starts the server, too, and reads what it has changed
	return errors.Join(err, f.Close())
}

// up starts the server, or a standby, and waits until it answers.
func (s *postgres) up(ctx context.Context) (err error) {
	settings := []string{
		"listen_addresses=" + s.cluster.host, "unix_socket_directories=", "max_connections=200", "shared_buffers=256MB",
		"max_wal_size=4GB", "wal_level=replica", "max_wal_senders=4", "hot_standby=on", "primary_conninfo=" + s.cluster.upstream(s),
		"log_lock_waits=on", fmt.Sprintf("deadlock_timeout=%dms", slowLock.Milliseconds()), "log_line_prefix=%m [%p] %a ",
		"wal_receiver_status_interval=1s", "restart_after_crash=on", "jit=off",
	}
	args := []string{"-D", s.data, "-p", strconv.Itoa(s.port)}
	for _, option := range settings {
		args = append(args, "-c", option)
	}
	if s.process, err = s.cluster.start(s.name, s.command("postgres", args...)); err != nil {
		return err
	}
	db, err := sql.Open("pgx", "postgres://tamga@"+s.address()+"/postgres?sslmode=disable&connect_timeout=5&application_name=checks")
	if err != nil {
		return err
	}
	defer db.Close()
	return s.until(ctx, func() bool { return db.PingContext(ctx) == nil })
}

// freeze stops the server with all its sessions. thaw lets it go on.
func (s *postgres) freeze() { s.all(syscall.SIGSTOP) }
func (s *postgres) thaw()   { s.all(syscall.SIGCONT) }

// all signals the server first, so that it starts no further sessions.
func (s *postgres) all(sig syscall.Signal) {
	s.signal(sig)
	for _, pid := range family(s.pid()) {
		syscall.Kill(pid, sig)
	}
}

// crash kills the server with all its sessions at once.
func (s *postgres) crash() {
	s.all(syscall.SIGKILL)
	<-s.done
}

// address is the host and port of the server.
func (s *postgres) address() string { return fmt.Sprintf("%s:%d", s.cluster.host, s.port) }

// addStandby makes a synchronous standby of the primary: a commit is answered when both
// have it on disk.
func (c *Cluster) addStandby(ctx context.Context) error {
	c.generation++
	port := c.primary.port ^ 1 // the two servers take turns at two ports
	s, err := c.newPostgres(fmt.Sprintf("standby%d", c.generation), c.dir, port)
	if err != nil {
		return err
	}
	if c.former != "" {
		err = c.rewind(ctx, s)
	} else {
		err = s.do("pg_basebackup", "--pgdata="+s.data, "--host="+c.host, "--port="+strconv.Itoa(c.primary.port), "--username=tamga",
			"--checkpoint=fast", "--wal-method=stream", "--no-sync")
	}
	if err != nil {
		return err
	}
	signal := filepath.Join(s.data, "standby.signal")
	if err := os.WriteFile(signal, nil, 0o644); err != nil {
		return err
	}
	if cred := s.attr.Credential; cred != nil {
		if err := os.Chown(signal, int(cred.Uid), int(cred.Gid)); err != nil {
			return err
		}
	}
	c.standby = s
	if err := s.up(ctx); err != nil {
		return err
	}
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()"} {
		if err := c.exec(ctx, statement); err != nil {
			return err
		}
	}
	return s.until(ctx, func() bool {
		n, err := c.count(ctx, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
		return err == nil && n == 1
	})
}

// rewind makes the former primary a standby. It copies only the changes since the failover, so that a round does
// not take longer as the database grows.
func (c *Cluster) rewind(ctx context.Context, s *postgres) error {
	if err := os.Rename(c.former, s.data); err != nil {
		return err
	}
	c.former = ""
	if err := c.exec(ctx, "CHECKPOINT"); err != nil { // after it the primary knows its new timeline
		return err
	}
	return s.do("pg_rewind", "--target-pgdata="+s.data, fmt.Sprintf("--source-server=host=%s port=%d user=tamga dbname=postgres", c.host, c.primary.port), "--no-sync")
}

// upstream is the connection of a standby to the primary.
func (c *Cluster) upstream(s *postgres) string {
	return fmt.Sprintf("host=%s port=%d user=tamga application_name=standby connect_timeout=5", c.host, s.port^1)
}

// failOver kills the primary and promotes the standby, which is the primary from then on.
func (c *Cluster) failOver(ctx context.Context) error {
	if c.standby == nil {
		return errors.New("the cluster has no standby")
	}
	c.primary.crash()
	c.former = c.primary.data
	promoted := c.standby
	// The new primary has no standby yet, so it must not wait for one.
	if err := promoted.do("pg_ctl", "promote", "--pgdata="+promoted.data, "--wait", "--timeout=60"); err != nil {
		return err
	}
	c.servers = append(c.servers, promoted)
	c.primary, c.standby = promoted, nil
	return c.connect()
}
