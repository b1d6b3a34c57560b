// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/testsize"
)

// Phases of TestMigrateUnderLoad.
const (
	beforeMigration = iota
	untilInterrupted
	untilLock   // again, until it waits for a lock on the table that a report has read
	untilReport // until the report ends
	untilMigrated
	afterMigration
)

var phaseNames = [...]string{"before", "until it is interrupted", "again, until a lock", "waiting for the lock", "to its end", "after"}

// phase is what callers saw during a phase.
type phase struct {
	began    time.Time
	took     time.Duration
	requests int64
	gap      time.Duration // the longest time without an answer to any caller
	longest  request
	// unstarved is the longest request without the time in which its session of the server
	// was ready to run and had no processor.
	unstarved time.Duration
}

// request is a request that was answered.
type request struct {
	took, starved time.Duration
	statement     string // the one that took longest
}

// callersOfThisRelease read and write as signatures, sign-ins and changes of this release do, until ctx
// ends.
type callersOfThisRelease struct {
	pool   *sql.DB
	users  int
	served atomic.Int64

	mu     sync.Mutex
	phases [len(phaseNames)]phase
	now    int // the phase
	last   time.Time
}

// enter ends the phase and begins another one.
func (c *callersOfThisRelease) enter(next int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.phases[c.now].took = now.Sub(c.phases[c.now].began)
	c.now, c.last, c.phases[next].began = next, now, now
}

func (c *callersOfThisRelease) answered(in int, r request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, now := &c.phases[in], time.Now()
	p.requests++
	p.unstarved = max(p.unstarved, r.took-r.starved)
	if r.took > p.longest.took {
		p.longest = r
	}
	if in == c.now { // others began in the phase before
		p.gap, c.last = max(p.gap, now.Sub(c.last)), now
	}
	c.served.Add(1)
}

func (c *callersOfThisRelease) run(ctx context.Context, n int) error {
	conn, err := c.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var pid int
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	for i := n; ctx.Err() == nil; i += 7 {
		c.mu.Lock()
		in := c.now
		c.mu.Unlock()
		starved := starvation(pid)
		r, err := c.request(ctx, conn, fmt.Sprintf("u%d", i%c.users))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("a request during the migration: %w", err)
		}
		r.starved = starvation(pid) - starved
		c.answered(in, r)
	}
	return nil
}

// starvation returns how long a process has been ready to run and had no processor. Systems
// other than Linux do not say: 0.
func starvation(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0
	}
	var ran, waited int64
	if _, err := fmt.Sscan(string(stat), &ran, &waited); err != nil {
		return 0
	}
	return time.Duration(waited)
}

func (c *callersOfThisRelease) request(ctx context.Context, conn *sql.Conn, user string) (r request, err error) {
	began := time.Now()
	mark, longest := began, time.Duration(0)
	done := func(statement string) {
		now := time.Now()
		if took := now.Sub(mark); took > longest {
			longest, r.statement = took, statement
		}
		mark = now
	}
	var group string
	if err := conn.QueryRowContext(ctx, `SELECT u.group_name FROM access_tokens t JOIN users u ON u.id = t.user_id
		LEFT JOIN certificates c ON c.user_id = u.id WHERE t.id = $1 AND NOT t.revoked AND NOT u.locked`, user).Scan(&group); err != nil {
		return r, err
	}
	done("SELECT access_tokens")
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return r, err
	}
	defer tx.Rollback()
	done("BEGIN")
	for _, s := range []struct{ name, query string }{
		{"INSERT audit", `INSERT INTO audit (at, request_id, operation, phase, outcome, object, remote, detail, user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor, correlation_id)
			VALUES (0, '', 'Sign', 'done', 'ok', '', '', '', $1, $1, 'g', FALSE, $1, '', '', 0, '', '')`},
		{"UPDATE users", `UPDATE users SET last_login_at = last_login_at + 1 WHERE id = $1`},
		{"INSERT authorization_codes", `INSERT INTO authorization_codes (hash, user_id, client_id, redirect_uri, scope, method, thumbprint, granted, login_only, second_step, nonce, challenge,
				signed_in_at, grant_id, parent_id, ends_at, expires_at, spent_at, token_id)
			VALUES (decode(md5(random()::text), 'hex'), $1, '', '', '', '', '', FALSE, FALSE, FALSE, '', '', 0, '', '', 0, 0, 0, '')`},
	} {
		if _, err := tx.ExecContext(ctx, s.query, user); err != nil {
			return r, err
		}
		done(s.name)
	}
	if err := tx.Commit(); err != nil {
		return r, err
	}
	done("COMMIT")
	r.took = time.Since(began)
	return r, nil
}

// TestMigrateUnderLoad migrates a database to the next release while processes of this one serve. A session holds a long transaction at the beginning, and the migration is
// interrupted once. The server must log no wait of 2 s for a lock by a caller: a session that has a
// lock may wait for a processor.
//
// The long form has a million users and signatures, and allows 200 ms. It also compares the longest request with
// those of an equal time without a migration. The time without a processor does not count:
// it is that of other programs on the machine.
func TestMigrateUnderLoad(t *testing.T) {
	most, users, full := 2*time.Second, 50_000, testsize.Of() == testsize.Full
	if full {
		most, users = 200*time.Millisecond, 1_000_000
	}
	cluster := storetest.OwnPostgreSQL(t, "log_line_prefix=%a: ", "log_lock_waits=on", fmt.Sprintf("deadlock_timeout=%dms", most.Milliseconds()))
	url := cluster.Database(t)
	pool, db := server(t, url), open(t, url)
	next := next(t)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "INSERT INTO user_groups (name, title, created_at) VALUES ('g', '', 0)")
	exec(t, pool, `INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at)
		SELECT 'u' || n, 'u' || n, 'u' || n, '', 'g', FALSE, FALSE, 0, FALSE, 0 FROM generate_series(0, $1::int - 1) n`, users)
	exec(t, pool, `INSERT INTO access_tokens (id, user_id, client_id, method, scope, actor_id, grant_id, confirmation, second_step, signed_in_at, created_at, expires_at, revoked)
		SELECT id, id, '', 'password', '', '', '', '', FALSE, 0, 0, 0, FALSE FROM users`)
	if full {
		exec(t, pool, `INSERT INTO audit (at, request_id, operation, phase, outcome, object, remote, detail, user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor, correlation_id)
			SELECT 0, '', 'Sign', 'done', 'ok', '', '', '', id, id, 'g', FALSE, id, '', '', 0, '', '' FROM users`)
		exec(t, pool, "VACUUM")
	}
	exec(t, pool, "ANALYZE")
	exec(t, pool, "CHECKPOINT") // or callers write what filled the tables

	serving, stop := context.WithCancel(t.Context())
	defer stop()
	callers := &callersOfThisRelease{pool: server(t, url+"&application_name=caller"), users: users}
	callers.enter(beforeMigration)
	ended := make(chan error, 4)
	var running sync.WaitGroup
	for n := range cap(ended) {
		running.Go(func() { ended <- callers.run(serving, n) })
	}
	until := func(is func() bool) {
		t.Helper()
		for ; !is(); time.Sleep(time.Millisecond) {
			if len(ended) > 0 {
				t.Fatal(<-ended)
			}
		}
	}
	serve := func(requests int64) { // waits for so many more
		t.Helper()
		last := callers.served.Load() + requests
		until(func() bool { return callers.served.Load() >= last })
	}
	serve(20)
	if full {
		serve(5000)
	}

	// A report reads all day. The migration needs a lock on the table that it has read.
	report, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer report.Rollback()
	exec(t, report, "LOCK TABLE access_tokens IN ACCESS SHARE MODE")
	migrate := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() { done <- next.Migrate(ctx, db) }()
		return done
	}
	began := time.Now()
	callers.enter(untilInterrupted)
	first, interrupt := context.WithCancel(t.Context())
	done := migrate(first)
	await(t, pool, "SELECT to_regclass('users_in_group_next') IS NOT NULL")
	serve(20)
	interrupt()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupted migration: %v", err)
	}
	callers.enter(untilLock)
	done = migrate(t.Context())
	const waits = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'access_tokens'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted)"
	await(t, pool, waits)
	callers.enter(untilReport)
	for range 3 {
		await(t, pool, waits)
		serve(20)
	}
	callers.enter(untilMigrated)
	if err := report.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	callers.enter(afterMigration) // this release goes on
	serve(20)
	if full { // for an equal time
		end := time.Now().Add(time.Since(began))
		until(func() bool { return time.Now().After(end) })
	}
	stop()
	running.Wait()
	callers.enter(afterMigration)
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := next.Migrated(t.Context(), db); err != nil {
		t.Error(err)
	}
	await(t, pool, "SELECT NOT EXISTS (SELECT 1 FROM pg_index WHERE NOT indisvalid)")
	t.Logf("%d users", users)
	usual := max(callers.phases[beforeMigration].longest.took, callers.phases[afterMigration].longest.took)
	for i, p := range callers.phases {
		t.Logf("%-23s  %6d ms, %6d requests, longest gap %3d ms, longest request %4d ms (%s; %d ms without a processor), longest without a processor %3d ms",
			phaseNames[i], p.took.Milliseconds(), p.requests, p.gap.Milliseconds(), p.longest.took.Milliseconds(), p.longest.statement,
			p.longest.starved.Milliseconds(), p.unstarved.Milliseconds())
		if full && p.unstarved > max(most, usual) {
			t.Errorf("%s: a request waited %v for something other than a processor, want at most %v, or %v as without a migration", phaseNames[i], p.unstarved, most, usual)
		}
	}

	// The log must work, or it proves nothing: a caller waits for one lock here.
	blocker, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Rollback()
	exec(t, blocker, "LOCK TABLE webhooks")
	waited := make(chan error, 1)
	go func() {
		_, err := callers.pool.ExecContext(t.Context(), "SELECT 1 FROM webhooks /* proof */")
		waited <- err
	}()
	var said []string
	for len(said) == 0 {
		said = callerWaits.FindAllString(cluster.Log(), -1)
		time.Sleep(10 * time.Millisecond)
	}
	if err := errors.Join(blocker.Rollback(), <-waited); err != nil {
		t.Error(err)
	}
	if said = callerWaits.FindAllString(cluster.Log(), -1); len(said) != 1 {
		t.Errorf("callers waited for locks:\n%s\nwant only the last of these waits", strings.Join(said, "\n"))
	}
}

var callerWaits = regexp.MustCompile(`(?m)^caller: LOG:  process \d+ still waiting for .*$`)
