package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tamga/internal/domain/fault"
)

const (
	// attempts bounds how often a unit runs when the database asks to try again.
	attempts = 12
	// lostAttempts bounds how often it runs when the connection was lost. The first attempt
	// may have had a connection of before a restart of the server.
	lostAttempts = 3
)

// transaction is what a context carries between Atomic and the statements in it.
type transaction struct {
	work
	spoiled error // a nested unit wanted a rollback, so the whole rolls back
}

// begin opens a transaction that may write.
func (db *DB) begin(ctx context.Context, level sql.IsolationLevel) (*transaction, error) {
	w, err := db.database.begin(ctx, level)
	if err != nil {
		return nil, fmt.Errorf("store: beginning a transaction: %w", err)
	}
	return &transaction{work: w}, nil
}

type transactionKey struct{ db *DB }

func (db *DB) transaction(ctx context.Context) *transaction {
	t, _ := ctx.Value(transactionKey{db}).(*transaction)
	return t
}

func (db *DB) within(ctx context.Context, t *transaction) context.Context {
	return context.WithValue(ctx, transactionKey{db}, t)
}

// Atomic runs fn in one transaction: all its changes are kept or none. The
// transaction travels in the context given to fn; statements under another
// context are outside of it, and on SQLite would wait for it forever.
//
//   - fn returning nil or a *fault.Error commits (a refusal that must persist
//     persists); any other error, a fault marked by fault.Rollback and a panic
//     roll back.
//   - A nested Atomic joins the outer one. If the inner unit wants a rollback,
//     the whole rolls back, even when the outer function drops its error.
//   - fn may run again, after a serialization failure, a deadlock or a lost
//     connection on PostgreSQL or when another process holds SQLite too long: it
//     must have no effects outside the database and assign its results anew.
//   - On PostgreSQL all of it, with what is run again, ends within Limits.Call. A
//     *fault.Outage says that nothing was kept, or that this is unknown.
//
// Transactions see each other one after the other: BEGIN IMMEDIATE on SQLite,
// SERIALIZABLE on PostgreSQL. After the last attempt the answer is the fault
// temporarily_unavailable.
func (db *DB) Atomic(ctx context.Context, fn func(ctx context.Context) error) error {
	if t := db.transaction(ctx); t != nil {
		err := fn(ctx)
		if !fault.Commits(err) && t.spoiled == nil {
			t.spoiled = err
		}
		return err
	}
	ctx, cancel := db.limits.within(ctx)
	defer cancel()
	return db.retry(ctx, func() error { return db.atomicOnce(ctx, fn) })
}

func (db *DB) atomicOnce(ctx context.Context, fn func(ctx context.Context) error) error {
	t, err := db.begin(ctx, sql.LevelSerializable)
	if err != nil {
		return err
	}
	defer t.rollback()
	err = fn(db.within(ctx, t))
	switch {
	case t.spoiled != nil:
		if err == nil {
			err = fmt.Errorf("store: rolled back by a nested unit: %w", t.spoiled)
		}
		return err
	case !fault.Commits(err) || retryable(err) || db.lost(err):
		return err
	}
	if cerr := t.commit(); cerr != nil {
		return fmt.Errorf("store: committing: %w", cerr)
	}
	return err
}

// retry runs once until it ends in something else than a conflict of
// transactions or a lost connection. Waiting is random: units that collided should not
// meet again.
func (db *DB) retry(ctx context.Context, once func() error) error {
	for n := 1; ; n++ {
		err := once()
		if err == nil || !retryable(err) && !(n < lostAttempts && db.lost(err)) {
			return err
		}
		if n == attempts || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fault.New(fault.Unavailable, "the database is busy, try again later").With(err)
		}
		pause := time.NewTimer(rand.N(time.Millisecond << min(n, 7)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("store: %w, after: %w", context.Cause(ctx), err)
			}
		}
	}
}

// lost reports whether the connection to a server was lost and nothing of the transaction
// was kept.
func (db *DB) lost(err error) bool { return db.engine == postgresEngine && err != nil && lost(err) }

// retryable reports that the database refused because of other transactions
// and that nothing of this one was kept.
func retryable(err error) bool {
	switch postgresCode(err) {
	case pgSerializationFailure, pgDeadlockDetected:
		return true
	}
	return sqliteRetryable(err)
}
