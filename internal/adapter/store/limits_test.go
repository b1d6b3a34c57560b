// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

// openLimited opens a database that was migrated before.
func openLimited(t *testing.T, url string, o store.Options) *store.DB {
	t.Helper()
	o.URL = url
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// patience is much longer than any step of these tests. It ends a test that hangs.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func isOutage(err error) bool {
	_, is := fault.AsOutage(err)
	return is
}

func groupNames(t *testing.T, db *store.DB) string {
	t.Helper()
	list, err := store.Users{DB: db}.Groups(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range list {
		names = append(names, g.Name)
	}
	return strings.Join(names, " ")
}

// TestFrozenInTurn checks a process that is frozen in the middle of a change of a user.
// Changes of other users, audit entries and single statements do not wait for it. A change
// of the same user waits until the server ends the session of the frozen process. That
// process then notices the lost session and runs its change again.
func TestFrozenInTurn(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	setup := storetest.Open(t, url)
	if err := (store.Users{DB: setup}).AddGroup(t.Context(), user.Group{Name: "Default"}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		addUser(t, setup, fmt.Sprint("user", i))
	}
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, c := range []struct {
		name string
		idle time.Duration
		end  func() // ends the session of the frozen process
	}{
		{"ended by its limit", 500 * time.Millisecond, func() {}},
		{"ended by an administrator", 0, func() {
			if _, err := admin.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'idle in transaction'`); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			limits := store.Limits{Idle: c.idle, Lock: 30 * time.Second, Statement: 40 * time.Second, Call: 50 * time.Second}
			frozen, other := openLimited(t, url, store.Options{Limits: limits}), openLimited(t, url, store.Options{Limits: limits})
			ctx := patience(t)
			held, thaw, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			release := sync.OnceFunc(func() { close(thaw) })
			defer release()
			runs := 0
			go func() {
				users := store.Users{DB: frozen}
				done <- users.Atomic(ctx, lock.User("user0"), func(ctx context.Context) error {
					if err := users.SetDisplayName(ctx, "user0", "thawed"); err != nil {
						return err
					}
					if runs++; runs == 1 {
						close(held)
						<-thaw
					}
					return users.AddGroup(ctx, user.Group{Name: "again " + c.name})
				})
			}()
			<-held
			users := store.Users{DB: other}
			changed := make(chan error, 1)
			go func() {
				changed <- users.Atomic(ctx, lock.User("user1", "user0"), func(ctx context.Context) error {
					return users.AddGroup(ctx, user.Group{Name: "turn " + c.name})
				})
			}()
			for i := range 10 { // while the change of the same user waits
				if err := (store.Audit{DB: other}).Record(ctx, audit.Entry{Operation: "Sign"}); err != nil {
					t.Fatalf("an audit entry: %v", err)
				}
				if err := users.AddGroup(ctx, user.Group{Name: fmt.Sprint("single ", i, c.name)}); err != nil {
					t.Fatalf("a single statement: %v", err)
				}
				if i < 2 {
					continue // the waiting change has these users
				}
				id := fmt.Sprint("user", i)
				if err := users.Atomic(ctx, lock.User(id), func(ctx context.Context) error {
					return users.SetDisplayName(ctx, id, "changed")
				}); err != nil {
					t.Fatalf("a change of another user: %v", err)
				}
			}
			if c.idle == 0 {
				select {
				case err := <-changed:
					t.Fatalf("a change of the same user did not wait: %v", err)
				default:
				}
			}
			c.end()
			if err := <-changed; err != nil {
				t.Errorf("a change of the same user by another process: %v", err)
			}
			release()
			if err := <-done; err != nil || runs != 2 {
				t.Errorf("the frozen process: %v after %d runs, want success after 2", err, runs)
			}
			for _, name := range []string{"again ", "turn "} {
				if names := groupNames(t, other); !strings.Contains(names, name+c.name) {
					t.Errorf("no group %q in %q", name+c.name, names)
				}
			}
		})
	}
}

// addUser adds a user to the group "Default", which must exist.
func addUser(t testing.TB, db *store.DB, id string) {
	t.Helper()
	if err := (store.Users{DB: db}).AddUser(t.Context(), user.User{ID: id, Login: id, DisplayName: id, Group: "Default"}, id); err != nil {
		t.Fatal(err)
	}
}

// TestSilentServer checks that a silent server blocks no caller longer than Limits.Call,
// and that later calls succeed.
func TestSilentServer(t *testing.T) {
	t.Parallel() // it waits most of the time
	url := storetest.PostgreSQL(t).Migrated(t)
	storetest.Open(t, url)
	proxy := storetest.NewProxy(t, url)
	db := openLimited(t, proxy.URL, store.Options{Limits: store.Limits{Call: 200 * time.Millisecond}})
	ctx := patience(t)
	users := store.Users{DB: db}
	add := func(name string) func(ctx context.Context) error {
		return func(ctx context.Context) error { return users.AddGroup(ctx, user.Group{Name: name}) }
	}
	for name, call := range map[string]func() error{
		"a read":          func() error { _, err := users.Groups(ctx); return err },
		"a statement":     func() error { return add("statement")(ctx) },
		"a unit":          func() error { return db.Unit(ctx, add("unit")) },
		"a people change": func() error { return users.Atomic(ctx, lock.User("a"), add("people")) },
		"a transaction":   func() error { return db.Atomic(ctx, add("transaction")) },
		"an entry":        func() error { return store.Audit{DB: db}.Record(ctx, audit.Entry{}) },
		"many entries": func() error {
			return errors.Join(atOnce(20, func() error { return store.Audit{DB: db}.Record(ctx, audit.Entry{}) })...)
		},
		"a snapshot": func() error { _, err := store.Snapshots{DB: db}.Snapshot(ctx, "u", time.Now()); return err },
		"many bearers": func() error {
			return errors.Join(atOnce(20, func() error { _, _, err := store.Snapshots{DB: db}.BearerByToken(ctx, "t", time.Now()); return err })...)
		},
		"a ping": func() error { return db.Ping(ctx) },
		"many reads": func() error {
			return errors.Join(atOnce(20, func() error { _, err := users.Groups(ctx); return err })...)
		},
		"many in one batch": func() error { return errors.Join(atOnce(20, func() error { return add("batch")(ctx) })...) },
	} {
		for {
			_, err := users.Groups(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("before %s: %v", name, err)
			}
		}
		proxy.Pause()
		if err := call(); !isOutage(err) {
			t.Errorf("%s: %v, want an outage", name, err)
		}
		proxy.Resume()
	}
	// The caller leaves: that is not an outage.
	proxy.Pause()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := users.Groups(gone); err == nil || isOutage(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	proxy.Resume()
}

func atOnce(n int, do func() error) []error {
	return atOnceNumbered(n, func(int) error { return do() })
}

func atOnceNumbered(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errs
}

// TestUnknownCommit checks a commit whose answer is lost. It may have been made, so no
// caller gets an error that says it was not, and it does not run again.
func TestUnknownCommit(t *testing.T) {
	t.Parallel() // it waits most of the time
	url := storetest.PostgreSQL(t).Migrated(t)
	direct := storetest.Open(t, url)
	for name, unit := range map[string]func(db *store.DB) func(context.Context, func(context.Context) error) error{
		"atomic":    func(db *store.DB) func(context.Context, func(context.Context) error) error { return db.Atomic },
		"committer": func(db *store.DB) func(context.Context, func(context.Context) error) error { return db.Unit },
		"people": func(db *store.DB) func(context.Context, func(context.Context) error) error {
			return func(ctx context.Context, fn func(context.Context) error) error {
				return store.Users{DB: db}.Atomic(ctx, lock.User("a"), fn)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := storetest.NewProxy(t, url)
			db := openLimited(t, proxy.URL, store.Options{Limits: store.Limits{Call: 10 * time.Second}})
			muted := proxy.MuteCommit()
			runs := 0
			err := unit(db)(patience(t), func(ctx context.Context) error {
				runs++
				return store.Users{DB: db}.AddGroup(ctx, user.Group{Name: name})
			})
			<-muted
			if o, is := fault.AsOutage(err); !is || !strings.Contains(o.Message, "may or may not") || runs != 1 {
				t.Errorf("after %d runs: %v", runs, err)
			}
			if !strings.Contains(groupNames(t, direct), name) {
				t.Error("the commit did not reach the server: the test shows nothing")
			}
		})
	}
}

// TestSessionsEnded checks that calls succeed after the server has ended every session.
func TestSessionsEnded(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	db := storetest.Open(t, url)
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	users := store.Users{DB: db}
	n := 0
	for name, call := range map[string]func() error{
		"a read":      func() error { _, err := users.Groups(t.Context()); return err },
		"a snapshot":  func() error { _, err := store.Snapshots{DB: db}.Snapshot(t.Context(), "u", time.Now()); return err },
		"an entry":    func() error { return store.Audit{DB: db}.Record(t.Context(), audit.Entry{}) },
		"a statement": func() error { return users.AddGroup(t.Context(), user.Group{Name: fmt.Sprint(n)}) },
		"a people change": func() error {
			return users.Atomic(t.Context(), lock.User("a"), func(ctx context.Context) error { return users.AddGroup(ctx, user.Group{Name: fmt.Sprint(n)}) })
		},
		"a transaction": func() error {
			return db.Atomic(t.Context(), func(ctx context.Context) error { return users.AddGroup(ctx, user.Group{Name: fmt.Sprint(n)}) })
		},
	} {
		n++
		if err := call(); err != nil { // the driver trusts a connection that was used a moment ago
			t.Fatal(err)
		}
		n++
		if _, err := admin.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTooManyConnections checks that calls wait for some time for a server without a free
// connection.
func TestTooManyConnections(t *testing.T) {
	t.Parallel() // it waits most of the time
	cluster := storetest.OwnPostgreSQL(t, "max_connections=12", "superuser_reserved_connections=0")
	url := cluster.Database(t)
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	db := openLimited(t, url, store.Options{Limits: store.Limits{Call: time.Minute}})
	var short []*store.DB // a busy machine may need longer than the first until the server has refused it
	for _, call := range []time.Duration{3 * time.Second, 15 * time.Second, time.Minute} {
		short = append(short, openLimited(t, url, store.Options{Limits: store.Limits{Call: call}}))
	}
	if _, err := admin.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE application_name = 'tamga'`); err != nil { // the connections that Open made
		t.Fatal(err)
	}
	var taken []*sql.Conn
	others, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	fill := func() {
		for {
			c, err := others.Conn(t.Context())
			if err != nil {
				return
			}
			taken = append(taken, c)
		}
	}
	fill()
	told := false
	for i := 0; i < len(short) && !told; i++ {
		err := short[i].Ping(patience(t))
		if told = isOutage(err) && strings.Contains(err.Error(), "53300"); !told {
			t.Logf("at the end of the wait: %v", err)
		}
	}
	if !told {
		t.Error("no wait ends with the refusal of the server")
	}
	answered := make(chan error, 1)
	for waits, attempts := false, 0; !waits; attempts++ {
		go func() { answered <- db.Ping(patience(t)) }()
		select {
		case err := <-answered: // a measurement of the clock has ended and left a connection free
			if err != nil || attempts == 5 {
				t.Fatalf("answered %v without a connection", err)
			}
			if _, err := taken[0].ExecContext(t.Context(), "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'tamga'"); err != nil {
				t.Fatal(err)
			}
			fill()
		case <-time.After(200 * time.Millisecond): // it waits
			waits = true
		}
	}
	// The measurements of the clock may take some of them.
	for _, c := range taken {
		if err := c.Raw(func(any) error { return driver.ErrBadConn }); err == nil { // closes it
			t.Fatal("want an error")
		}
	}
	others.Close()
	if err := <-answered; err != nil {
		t.Errorf("after connections came free: %v", err)
	}
}

// TestServingLimits checks that what bounds a part of a call ends before the call.
func TestServingLimits(t *testing.T) {
	for _, call := range []time.Duration{5 * time.Second, 9 * time.Second, time.Minute} {
		l := store.ServingLimits(call)
		if l.Call != call || l.Statement >= l.Call || l.Lock > l.Statement || l.Idle >= l.Lock {
			t.Errorf("%v: %+v", call, l)
		}
	}
}

// TestLimitsOfSessions checks that the program sets the limits of its sessions, whatever
// the server is set to, and that the address overrides them. Migrations may take long, but not be idle.
func TestLimitsOfSessions(t *testing.T) {
	url := storetest.OwnPostgreSQL(t, "statement_timeout=7000", "lock_timeout=7000").Database(t)
	for _, c := range []struct {
		name, more      string
		limits          store.Limits
		idle, lock, stm string
	}{
		{"serving", "", store.ServingLimits(9 * time.Second), "2s", "5s", "8s"},
		{"commands", "", store.CommandLimits, "2s", "0", "0"},
		{"address", "&statement_timeout=90s", store.ServingLimits(9 * time.Second), "2s", "5s", "90s"},
	} {
		db := openLimited(t, url+c.more, store.Options{Limits: c.limits})
		got := store.SessionSettings(t, db, "idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
		if want := c.idle + " " + c.lock + " " + c.stm; got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
		if c.more == "" {
			if got := store.MigrationSettings(t, db, "idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout", "max_parallel_maintenance_workers"); got != "2s 0 0 0" {
				t.Errorf("%s: migrations have %s", c.name, got)
			}
		}
	}
}
