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

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
)

// fullFaults in the environment runs the long form of tests.
const fullFaults = "TAMGA_TEST_FULL_FAULTS"

// callersOfRelease18 read and write as signatures, sign-ins and changes of the release with
// schema 18 do, until ctx ends.
type callersOfRelease18 struct {
	pool    *sql.DB
	users   int
	served  atomic.Int64
	longest atomic.Int64 // nanoseconds
}

func (c *callersOfRelease18) run(ctx context.Context, n int) error {
	for i := n; ctx.Err() == nil; i += 7 {
		began := time.Now()
		user := fmt.Sprintf("u%d", i%c.users)
		if err := c.request(ctx, user); err != nil && ctx.Err() == nil {
			return fmt.Errorf("a request during the migration: %w", err)
		}
		took := time.Since(began)
		for last := c.longest.Load(); int64(took) > last && !c.longest.CompareAndSwap(last, int64(took)); last = c.longest.Load() {
		}
		c.served.Add(1)
	}
	return nil
}

func (c *callersOfRelease18) request(ctx context.Context, user string) error {
	var group string
	if err := c.pool.QueryRowContext(ctx, `SELECT u.group_name FROM access_tokens t JOIN users u ON u.id = t.user_id
		LEFT JOIN certificates c ON c.user_id = u.id WHERE t.id = $1 AND NOT t.revoked AND NOT u.locked`, user).Scan(&group); err != nil {
		return err
	}
	tx, err := c.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, query := range []string{
		`INSERT INTO audit (at, request_id, operation, phase, outcome, object, remote, detail, user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor)
			VALUES (0, '', 'Sign', 'done', 'ok', '', '', '', $1, $1, 'g', FALSE, $1, '', '', 0, '')`,
		`UPDATE users SET last_login_at = last_login_at + 1 WHERE id = $1`,
		`INSERT INTO authorization_codes (hash, user_id, client_id, redirect_uri, scope, method, thumbprint, expires_at, spent_at, token_id)
			VALUES (decode(md5(random()::text), 'hex'), $1, '', '', '', '', '', 0, 0, '')`,
	} {
		if _, err := tx.ExecContext(ctx, query, user); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// TestMigrateUnderLoad migrates a database of the release with schema 18 while its
// processes serve. A session holds a long transaction at the beginning, and the migration is
// interrupted once. The server must log no wait of 200 ms for a lock by a caller.
func TestMigrateUnderLoad(t *testing.T) {
	users := 50_000
	if os.Getenv(fullFaults) != "" {
		users = 1_000_000
	}
	cluster := storetest.OwnPostgreSQL(t, "log_line_prefix=%a: ", "log_lock_waits=on", "deadlock_timeout=200ms")
	url := cluster.Database(t)
	pool, db := server(t, url), open(t, url)
	if err := store.MigrateTo(t.Context(), db, 18); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "INSERT INTO user_groups (name, title, created_at) VALUES ('g', '', 0)")
	exec(t, pool, `INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, created_at)
		SELECT 'u' || n, 'u' || n, 'u' || n, '', 'g', FALSE, FALSE, 0 FROM generate_series(0, $1::int - 1) n`, users)
	exec(t, pool, `INSERT INTO access_tokens (id, user_id, client_id, method, created_at, expires_at, revoked) SELECT id, id, '', 'password', 0, 0, FALSE FROM users`)
	exec(t, pool, "ANALYZE")

	serving, stop := context.WithCancel(t.Context())
	defer stop()
	callers := callersOfRelease18{pool: server(t, url+"&application_name=caller"), users: users}
	ended := make(chan error, 4)
	var running sync.WaitGroup
	for n := range cap(ended) {
		running.Go(func() { ended <- callers.run(serving, n) })
	}
	serve := func(requests int64) { // waits for so many more
		t.Helper()
		for until := callers.served.Load() + requests; callers.served.Load() < until; time.Sleep(time.Millisecond) {
			if len(ended) > 0 {
				t.Fatal(<-ended)
			}
		}
	}
	serve(20)

	// A report reads all day. 0020 needs a lock on the table that it has read.
	report, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer report.Rollback()
	exec(t, report, "LOCK TABLE access_tokens IN ACCESS SHARE MODE")
	migrate := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() { done <- db.Migrate(ctx) }()
		return done
	}
	first, interrupt := context.WithCancel(t.Context())
	done := migrate(first)
	await(t, pool, "SELECT to_regclass('users_in_group_next') IS NOT NULL")
	serve(20)
	interrupt()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupted migration: %v", err)
	}
	done = migrate(t.Context())
	const waits = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'access_tokens'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted)"
	for range 3 {
		await(t, pool, waits)
		serve(20)
	}
	if err := report.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	serve(20) // the old release goes on
	stop()
	running.Wait()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := db.Migrated(t.Context()); err != nil {
		t.Error(err)
	}
	await(t, pool, "SELECT NOT EXISTS (SELECT 1 FROM pg_index WHERE NOT indisvalid)")
	t.Logf("%d users: %d requests, the longest %v", users, callers.served.Load(), time.Duration(callers.longest.Load()))

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
