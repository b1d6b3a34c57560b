// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

const (
	// attempts bounds how often a unit runs when the database reports a conflict.
	attempts = 12
	// lostAttempts bounds how often a unit runs when the connection was lost, or when a
	// constraint refused a row. The first attempt may have used a connection from before a
	// restart of the server.
	lostAttempts = 3
)

// transaction is the value in the context that Atomic passes to its function.
type transaction struct {
	work
	locks   lock.Set // of locked
	later   *later   // of Together; otherwise nil
	spoiled error    // set when a nested unit wanted a rollback, so the whole transaction rolls back
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

// Atomic runs fn in one transaction: all its changes are kept or none. The transaction is
// in the context given to fn. Statements with another context are outside of it, and on
// SQLite they would wait for it forever.
//
//   - If fn returns nil or a *fault.Error, Atomic commits (a refusal that must persist
//     persists). Any other error, a fault marked by fault.Rollback and a panic roll back.
//   - A nested Atomic joins the outer one. If the inner unit wants a rollback, the whole
//     transaction rolls back, even if the outer function drops the error.
//   - fn may run again: after a serialization failure, a deadlock or a lost connection on
//     PostgreSQL, or when another process holds SQLite too long. So fn must have no effects
//     outside the database and must assign its results anew each time.
//   - On PostgreSQL the whole call, with all repetitions, ends within Limits.Call. A
//     *fault.Outage means that nothing was kept, or that this is unknown.
//
// Transactions are serial: BEGIN IMMEDIATE on SQLite, SERIALIZABLE on PostgreSQL. If the
// last attempt fails too, the error is the fault temporarily_unavailable.
func (db *DB) Atomic(ctx context.Context, fn func(ctx context.Context) error) error {
	if t := db.transaction(ctx); t != nil {
		return t.join(ctx, fn)
	}
	ctx, cancel := db.limits.within(ctx)
	defer cancel()
	return db.retry(ctx, func() error {
		t, err := db.begin(ctx, sql.LevelSerializable)
		if err != nil {
			return err
		}
		return db.complete(ctx, t, fn)
	})
}

// join runs the function of a nested unit.
func (t *transaction) join(ctx context.Context, fn func(ctx context.Context) error) error {
	err := fn(ctx)
	if !fault.Commits(err) && t.spoiled == nil {
		t.spoiled = err
	}
	return err
}

// complete runs fn in a transaction and ends the transaction.
func (db *DB) complete(ctx context.Context, t *transaction, fn func(ctx context.Context) error) error {
	defer t.rollback()
	err := fn(db.within(ctx, t))
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

// retry runs once until it ends without a conflict of transactions or a lost connection.
// The pause is random, so that colliding units do not collide again.
func (db *DB) retry(ctx context.Context, once func() error) error {
	for n := 1; ; n++ {
		err := once()
		if err == nil {
			return nil
		}
		db.log.DebugContext(ctx, "an attempt at a unit ended", "attempt", n, "conflict", retryable(err), "lost", db.lost(err),
			"unknown", errors.Is(err, errUnknown), "error", err)
		if !retryable(err) && !(n < lostAttempts && (db.lost(err) || duplicate(err))) {
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

// duplicate reports whether a constraint refused a row because another unit added an equal
// one a moment ago. The unit checked first, so it runs again and finds that row.
func duplicate(err error) bool { return postgresCode(err) == pgUniqueViolation }

// retryable reports whether the database refused because of other transactions and kept
// nothing of this one.
func retryable(err error) bool {
	if errors.Is(err, errOldCRL) {
		return true
	}
	switch postgresCode(err) {
	case pgSerializationFailure, pgDeadlockDetected:
		return true
	}
	return sqliteRetryable(err)
}
