// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
)

func openTest(t *testing.T) *DB {
	t.Helper()
	db, err := Open(t.Context(), Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "tamga.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// hold keeps the committer busy with one unit until release is called.
func hold(t *testing.T, c *Committer) (release func()) {
	t.Helper()
	started, gate, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- c.unit(context.Background(), func(context.Context) error {
			close(started)
			<-gate
			return nil
		})
	}()
	<-started
	return func() {
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// queued waits until n units are in the queue.
func queued(c *Committer, n int) {
	for len(c.queue) != n {
		runtime.Gosched()
	}
}

// TestCommitterGathers checks that units that wait while a batch commits share one
// transaction, and that a unit whose caller has gone does not run.
func TestCommitterGathers(t *testing.T) {
	db := openTest(t)
	c := db.committer
	release := hold(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		gone <- c.unit(ctx, func(context.Context) error { t.Error("ran after its caller had gone"); return nil })
	}()
	queued(c, 1)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	const n = 20
	seen := make(chan int64, n)
	done := make(chan error, n)
	for range n {
		go func() {
			done <- c.unit(t.Context(), func(ctx context.Context) error {
				if _, err := db.exec(ctx, "INSERT INTO audit ("+auditColumns+") VALUES (0,'','','','','','','','','','',FALSE,'','','',0,'','')"); err != nil {
					return err
				}
				// One connection counts the changes of its one transaction.
				rows, _, err := one(ctx, db, scalar[int64], "SELECT COUNT(*) FROM audit")
				seen <- rows
				return err
			})
		}()
	}
	queued(c, n+1) // the abandoned one is still in the queue
	release()
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for want := int64(1); want <= n; want++ {
		if got := <-seen; got != want {
			t.Errorf("unit saw %d rows, want %d: the units did not share a transaction", got, want)
		}
	}
}

// TestCommitterQueueIsBounded checks that callers wait when the queue is full, and return
// when their context ends.
func TestCommitterQueueIsBounded(t *testing.T) {
	c := openTest(t).committer
	release := hold(t, c)
	nothing := func(context.Context) error { return nil }
	done := make(chan error, queueLength)
	for range queueLength {
		go func() { done <- c.unit(context.Background(), nothing) }()
	}
	queued(c, queueLength)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.unit(ctx, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	release()
	for range queueLength {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommitterClose checks that Close finishes the accepted units and refuses the rest.
func TestCommitterClose(t *testing.T) {
	db := openTest(t)
	c := db.committer
	release := hold(t, c)
	accepted := make(chan error, 1)
	go func() {
		accepted <- Users{db}.AddGroup(context.Background(), user.Group{Name: "accepted"})
	}()
	queued(c, 1)
	closed := make(chan struct{})
	go func() {
		c.Close()
		close(closed)
	}()
	release()
	<-closed
	if err := <-accepted; err != nil {
		t.Errorf("accepted unit: %v", err)
	}
	if err := c.unit(t.Context(), func(context.Context) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, ErrClosed)
	}
	list, err := Users{db}.Groups(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("%d groups, %v; want the accepted one", len(list), err)
	}
	c.Close() // a second call does no harm
}

// TestCommitterFallsBackToSingleUnits checks that a unit that breaks the shared
// transaction does not take the others of its batch with it, and that they do not run
// twice if that would be visible.
func TestCommitterFallsBackToSingleUnits(t *testing.T) {
	db := openTest(t)
	c := db.committer
	release := hold(t, c)
	done := make(chan error, 3)
	add := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { return Users{db}.AddGroup(ctx, user.Group{Name: name}) }
	}
	go func() { done <- c.unit(t.Context(), add("a")) }()
	queued(c, 1)
	broken := make(chan error, 1)
	go func() {
		broken <- c.unit(t.Context(), func(ctx context.Context) error {
			db.transaction(ctx).rollback() // ends the shared transaction
			return nil
		})
	}()
	queued(c, 2)
	go func() { done <- c.unit(t.Context(), add("b")) }()
	queued(c, 3)
	release()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := <-broken; err == nil {
		t.Error("the unit that broke the transaction got no error")
	}
	list, err := Users{db}.Groups(t.Context())
	if err != nil || len(list) != 2 {
		t.Errorf("groups %v, %v; want a and b", list, err)
	}
}

// conflict is the error of PostgreSQL when units met in an unlucky order.
var conflict = &pgconn.PgError{Code: pgSerializationFailure}

func TestConflictsRunAgain(t *testing.T) {
	db := openTest(t)
	for name, unit := range map[string]func(context.Context, func(context.Context) error) error{
		"Atomic": db.Atomic, "Unit": db.Unit,
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			err := unit(t.Context(), func(ctx context.Context) error {
				runs++
				if err := (Users{db}).AddGroup(ctx, user.Group{Name: name}); err != nil {
					return err // the row of the first run is gone, so this is not a duplicate
				}
				if runs < 3 {
					return fault.New(fault.InvalidPIN, "a fault does not hide a conflict").With(conflict)
				}
				return nil
			})
			if err != nil || runs != 3 {
				t.Errorf("%d runs, error %v; want success in the third", runs, err)
			}
			runs = 0
			err = unit(t.Context(), func(context.Context) error { runs++; return conflict })
			if runs != attempts || !fault.Is(err, fault.Unavailable) {
				t.Errorf("%d runs, error %v; want %d and %s", runs, err, attempts, fault.Unavailable)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Atomic(ctx, func(context.Context) error { cancel(); return conflict })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v, want context.Canceled", err)
	}
}

// TestSQLiteSettings checks every setting that durability depends on, because defaults of
// drivers differ.
func TestSQLiteSettings(t *testing.T) {
	file := openTest(t).database.(*sqliteFile)
	value := func(from *connections, query string) (text string) {
		c, err := from.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer from.give(c)
		if err := c.Query(t.Context(), lite.Once, query, nil, func(r lite.Row) error { return r.Scan(&text) }); err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, c := range []struct{ pragma, write, read string }{
		{"journal_mode", "wal", "wal"},
		{"synchronous", "2", ""}, // FULL; readers do not write
		{"foreign_keys", "1", "1"},
		{"busy_timeout", "10000", "10000"},
		{"query_only", "0", "1"},
	} {
		write := value(file.writer, "PRAGMA "+c.pragma)
		read := value(file.readers, "PRAGMA "+c.pragma)
		if write != c.write || c.read != "" && read != c.read {
			t.Errorf("%s: %s and %s, want %s and %s", c.pragma, write, read, c.write, c.read)
		}
	}
	if n := cap(file.writer.slots); n != 1 {
		t.Errorf("%d writing connections, want 1", n)
	}
}
