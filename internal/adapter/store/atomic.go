package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"tamga/internal/domain/fault"
)

// attempts bounds how often a unit runs when the database asks to try again.
const attempts = 12

// transaction is what a context carries between Atomic and the statements in it.
type transaction struct {
	tx      *sql.Tx
	changes *statements // of the pool of tx; nil where the driver keeps its own
	spoiled error       // a nested unit wanted a rollback, so the whole rolls back
}

// begin opens a transaction on the pool of writers.
func (db *DB) begin(ctx context.Context, level sql.IsolationLevel) (*transaction, error) {
	if db.changes != nil {
		db.changes.prepareWanted(ctx)
	}
	tx, err := db.write.BeginTx(ctx, db.isolation(level))
	if err != nil {
		return nil, fmt.Errorf("store: beginning a transaction: %w", err)
	}
	return &transaction{tx: tx, changes: db.changes}, nil
}

// ExecContext runs a statement that changes something.
func (t *transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if t.changes != nil {
		if s := t.changes.in(ctx, t.tx, query); s != nil {
			return s.ExecContext(ctx, args...)
		}
	}
	return t.tx.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that returns rows.
func (t *transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if t.changes != nil {
		if s := t.changes.in(ctx, t.tx, query); s != nil {
			return s.QueryContext(ctx, args...)
		}
	}
	return t.tx.QueryContext(ctx, query, args...)
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
//   - fn may run again, after a serialization failure or a deadlock on
//     PostgreSQL or when another process holds SQLite too long: it must have
//     no effects outside the database and assign its results anew.
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
	db.endGlance(ctx)
	return retry(ctx, func() error { return db.atomicOnce(ctx, fn) })
}

func (db *DB) atomicOnce(ctx context.Context, fn func(ctx context.Context) error) error {
	t, err := db.begin(ctx, sql.LevelSerializable)
	if err != nil {
		return err
	}
	defer t.tx.Rollback() // after a commit it does nothing; the answer to give is known before it
	err = fn(db.within(ctx, t))
	switch {
	case t.spoiled != nil:
		if err == nil {
			err = fmt.Errorf("store: rolled back by a nested unit: %w", t.spoiled)
		}
		return err
	case !fault.Commits(err) || retryable(err):
		return err
	}
	if cerr := t.tx.Commit(); cerr != nil {
		return fmt.Errorf("store: committing: %w", cerr)
	}
	return err
}

// isolation asks PostgreSQL for a level, whatever its configuration makes the
// default. SQLite has one level, which is serial, and its driver takes no other.
func (db *DB) isolation(level sql.IsolationLevel) *sql.TxOptions {
	if db.engine == sqliteEngine {
		level = sql.LevelDefault
	}
	return &sql.TxOptions{Isolation: level}
}

// retry runs once until it ends in something else than a conflict of
// transactions. Waiting is random: units that collided should not meet again.
func retry(ctx context.Context, once func() error) error {
	for n := 1; ; n++ {
		err := once()
		if err == nil || !retryable(err) {
			return err
		}
		if n == attempts {
			return fault.New(fault.Unavailable, "the database is busy, try again later").With(err)
		}
		pause := time.NewTimer(rand.N(time.Millisecond << min(n, 7)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("store: %w, after: %w", context.Cause(ctx), err)
		}
	}
}

// retryable reports that the database refused because of other transactions
// and that nothing of this one was kept.
func retryable(err error) bool {
	switch postgresCode(err) {
	case pgSerializationFailure, pgDeadlockDetected:
		return true
	}
	return sqliteRetryable(err)
}
