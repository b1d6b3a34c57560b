// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the checks
)

// Options say what a cluster is made of. PostgreSQL and the processes are always there.
type Options struct {
	Processes  int
	Programs   *Programs
	Older      bool          // begin with the older program and its schema; see olderCommit
	Processors int           // GOMAXPROCS of each process, 0 for the default
	Delay      time.Duration // round trip to the database
	Standby    bool          // a synchronous standby
	Bucket     bool          // documents are in a bucket, otherwise in a directory that the processes share
	Balancer   bool          // HAProxy in front, and processes that drain
	SmallDisk  bool          // the database is on a file system of smallDisk, which needs root
	Signers    int           // users with a key, in addition to demo
	Guarded    int           // further users with a key, whose rights change
	Confirmers int           // further users with a key, who confirm operations
	Settings   []string      // further settings of the program, NAME=VALUE
}

// smallDisk is the size of the file system of SmallDisk.
const smallDisk = "1g"

// Cluster is a running service of several processes.
type Cluster struct {
	Options

	host    string // a loopback address of its own
	dir     string // removed at the end
	data    string // directory of the installation
	disk    string // file system of the database, "" without SmallDisk
	primary *postgres
	standby *postgres   // nil without
	former  string      // data directory of the primary before; "": none
	servers []*postgres // all that were primaries, for their logs
	delays  []*delay
	bucket  *process
	// balancer is HAProxy, nil without.
	balancer *process
	nodes    []*node
	db       *sql.DB // the checks' own connections, without delay
	people   *accounts
	dev      *description

	generation int // of standbys
	sessions   int
}

// Start starts a cluster. Close ends it.
func Start(ctx context.Context, o Options) (c *Cluster, err error) {
	c = &Cluster{Options: o}
	// Every address of 127.0.0.0/8 is this machine's. One of its own needs no search for
	// free ports, and no outgoing connection takes a port of it.
	c.host = fmt.Sprintf("127.%d.%d.%d", 1+rand.N(250), rand.N(250), 1+rand.N(250))
	if c.dir, err = os.MkdirTemp("", "tamga-cluster-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w%s", err, c.tails())
			c.Close()
			c = nil
		}
	}()
	if err := os.Chmod(c.dir, 0o755); err != nil { // the server of the database has another user
		return c, err
	}
	c.data = filepath.Join(c.dir, "data")
	for _, dir := range []string{c.data, filepath.Join(c.dir, "logs"), filepath.Join(c.dir, "postgres")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return c, err
		}
	}
	if err := c.startDatabase(ctx); err != nil {
		return c, err
	}
	if o.Bucket {
		if err := c.startBucket(ctx); err != nil {
			return c, err
		}
	}
	program := o.Programs.Current
	if o.Older {
		program = o.Programs.Older
	}
	for i := range o.Processes {
		n := &node{cluster: c, number: i, program: program}
		c.nodes = append(c.nodes, n)
		if err := n.up(ctx); err != nil {
			return c, err
		}
		if i == 0 { // it makes the installation
			if c.dev, err = describe(filepath.Join(c.data, "dev.json")); err != nil {
				return c, err
			}
		}
	}
	if o.Balancer {
		if err := c.startBalancer(ctx); err != nil {
			return c, err
		}
	}
	return c, c.makeAccounts(ctx)
}

// description is what the cluster needs of dev.json.
type description struct {
	Resource     string   `json:"resource"`
	ClientID     string   `json:"client_id"`
	CAPEM        string   `json:"ca_pem"`
	Operator     password `json:"operator"`
	User         password `json:"user"`
	Certificates []struct {
		ID  int64  `json:"id"`
		PIN string `json:"pin"`
	} `json:"certificates"`
}

type password struct {
	Login    string `json:"login"`
	Password string `json:"password"`
}

func describe(name string) (*description, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	d := &description{}
	return d, json.Unmarshal(text, d)
}

// startDatabase starts PostgreSQL, its standby and the delay in front of them.
func (c *Cluster) startDatabase(ctx context.Context) (err error) {
	dir := filepath.Join(c.dir, "postgres")
	if c.SmallDisk {
		if err := syscall.Mount("tamga-cluster", dir, "tmpfs", 0, "size="+smallDisk); err != nil {
			return fmt.Errorf("mounting a small file system, which needs root: %w", err)
		}
		c.disk = dir
	}
	if c.primary, err = c.newPostgres("primary", dir, 5432); err != nil {
		return err
	}
	c.servers = append(c.servers, c.primary)
	if err := c.primary.initialize(); err != nil {
		return err
	}
	if err := c.primary.up(ctx); err != nil {
		return err
	}
	admin, err := sql.Open("pgx", "postgres://tamga@"+c.primary.address()+"/postgres?sslmode=disable")
	if err != nil {
		return err
	}
	defer admin.Close()
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE tamga TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C'"); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if c.Standby {
		if err := os.Chmod(c.dir, 0o777); err != nil { // the standby's data directory is made here
			return err
		}
		if err := c.addStandby(ctx); err != nil {
			return err
		}
	}
	if c.Delay == 0 {
		return nil
	}
	for _, port := range c.databasePorts() {
		d, err := newDelay(fmt.Sprintf("%s:%d", c.host, port+1000), fmt.Sprintf("%s:%d", c.host, port), c.Delay)
		if err != nil {
			return err
		}
		c.delays = append(c.delays, d)
	}
	return nil
}

func (c *Cluster) databasePorts() []int {
	if c.Standby {
		return []int{5432, 5433}
	}
	return []int{5432}
}

// databaseURL is the address of the database for a process, or for a command, which needs no
// delay.
func (c *Cluster) databaseURL(application string, delayed bool) string {
	var hosts []string
	for _, port := range c.databasePorts() {
		if delayed && c.Delay > 0 {
			port += 1000
		}
		hosts = append(hosts, fmt.Sprintf("%s:%d", c.host, port))
	}
	url := "postgres://tamga@" + strings.Join(hosts, ",") + "/tamga?sslmode=disable&application_name=" + application
	if len(hosts) > 1 {
		url += "&target_session_attrs=read-write"
	}
	return url
}

// connect opens the connections of the checks to the primary.
func (c *Cluster) connect() (err error) {
	if c.db != nil {
		c.db.Close()
	}
	c.db, err = sql.Open("pgx", "postgres://tamga@"+c.primary.address()+"/tamga?sslmode=disable&application_name=checks")
	return err
}

// exec runs a statement of the harness.
func (c *Cluster) exec(ctx context.Context, statement string, args ...any) error {
	_, err := c.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// count runs a query that returns a number.
func (c *Cluster) count(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err = c.db.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		err = fmt.Errorf("%s: %w", query, err)
	}
	return n, err
}

// Close ends all processes and removes all files.
func (c *Cluster) Close() {
	if c.balancer != nil {
		c.balancer.kill()
	}
	for _, n := range c.nodes {
		if n.process != nil {
			n.kill()
		}
	}
	if c.db != nil {
		c.db.Close()
	}
	for _, d := range c.delays {
		d.close()
	}
	for _, s := range append(c.servers, c.standby) {
		if s != nil && s.process.running() {
			s.crash()
		}
	}
	if c.bucket != nil {
		c.bucket.kill()
	}
	if c.disk != "" {
		syscall.Unmount(c.disk, syscall.MNT_DETACH)
	}
	os.RemoveAll(c.dir)
}

// complaint finds the lines of logs that say why something failed.
var complaint = regexp.MustCompile(`level=(ERROR|WARN)|status=50|ERROR:|FATAL:|PANIC:|panic`)

// unexpected finds the lines of logs that say of which error the program knows nothing.
var unexpected = regexp.MustCompile(`msg="internal error"|panic`)

// tails returns the last complaints of all logs, for an error.
func (c *Cluster) tails() string { return c.lines(complaint, 8) }

// lines returns the last lines of each log that match.
func (c *Cluster) lines(of *regexp.Regexp, most int) string {
	var b strings.Builder
	logs, _ := filepath.Glob(c.log("*")) // the pattern is well formed
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			if of.MatchString(line) {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n--- %s, the last of %d lines\n%s", filepath.Base(name), len(lines), strings.Join(lines[max(0, len(lines)-most):], ""))
		}
	}
	return b.String()
}

// node is a process of the program.
type node struct {
	*process
	cluster *Cluster
	number  int
	program string
	offset  time.Duration // of its clock, for the program that reads clockOffset
}

func (c *Cluster) nodeAddress(i int) string { return fmt.Sprintf("%s:%d", c.host, 8081+i) }

// url is the address of the process itself.
func (n *node) url() string { return "http://" + n.cluster.nodeAddress(n.number) }

// settings are the flags of a command of the program.
func (n *node) settings(database string) (flags []string) {
	c := n.cluster
	list := []string{
		"database=" + database, "public_url=http://" + c.front(),
		"tokens.access_life=24h", "two_step.anonymous=false", "repetitions.lease=10s",
		"documents.user_objects=1000000", "users.checks_per_second=100000", "argon2.memory=8MiB", "argon2.passes=1",
		"messages.budgets.sms.prefix=0", "messages.budgets.email.caller=0", "messages.budgets.sms.caller=0", // one operator asks for all of them
		// Clients sign in again after each change of a right.
		"passwords.address_per_second=1000", "passwords.address_at_once=10000", "passwords.login_per_minute=60000", "passwords.login_at_once=10000",
	}
	if c.Balancer {
		list = append(list, "drain_time=2s", "trusted_proxies=["+c.host+", 127.0.0.1]")
	}
	if c.Bucket {
		list = append(list, c.bucketSettings()...)
	}
	for _, s := range append(list, c.Settings...) {
		flags = append(flags, "--set", s)
	}
	return append(flags, "--data", c.data)
}

// up starts the process and waits until it is ready. A clock that is off makes it not
// ready, so then up waits until it listens.
func (n *node) up(ctx context.Context) (err error) {
	c := n.cluster
	args := append([]string{"serve", "--dev", "--listen", c.nodeAddress(n.number)}, n.settings(c.databaseURL(fmt.Sprintf("tamga%d", n.number), true))...)
	cmd := programCommand(n.program, args...)
	if c.Processors > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", c.Processors))
	}
	if n.offset != 0 {
		cmd.Env = append(cmd.Env, clockOffset+"="+fmt.Sprint(int64(n.offset/time.Second)))
	}
	if n.process, err = c.start(fmt.Sprintf("tamga%d", n.number), cmd); err != nil {
		return err
	}
	return n.until(ctx, func() bool {
		status, _ := probe(ctx, n.url()+"/readyz")
		return status == 200 || status == 503 && n.offset != 0
	})
}

// run runs a command of the program over the installation and returns its output.
func (n *node) run(ctx context.Context, args ...string) (string, error) {
	cmd := programCommand(n.program, append(args, n.settings(n.cluster.databaseURL("command", false))...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tamga %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), ctx.Err()
}
