// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
)

// units runs changes that are not joined to a transaction of ctx. The engine decides how:
// SQLite has one writer, and its Committer shares a flush among many units. On PostgreSQL
// each unit runs alone.
type units interface {
	// unit runs the statements of fn in one transaction.
	unit(ctx context.Context, fn func(ctx context.Context) error) error
	// single runs the one statement of fn.
	single(ctx context.Context, fn func(ctx context.Context) error) error
}

// Unit runs fn as one unit and returns when its changes are durable. The rules for the
// error of fn, and for running it again, are those of Atomic. Inside a transaction, Unit
// joins it, and the changes become durable with it.
//
// On PostgreSQL units run under READ COMMITTED, so a unit must decide by the condition of
// a single statement, or by what it read under a lock, and never by anything else that it
// read before.
//
// If ctx ends before the unit begins, nothing was done. After that the unit is completed,
// so an error of ctx always means that nothing was written. On PostgreSQL a unit takes at
// most Limits.Call. Then the error is a *fault.Outage.
func (db *DB) Unit(ctx context.Context, fn func(ctx context.Context) error) error {
	if t := db.transaction(ctx); t != nil {
		return t.join(ctx, fn)
	}
	return db.units.unit(ctx, fn)
}

// single is Unit for one statement.
func (db *DB) single(ctx context.Context, fn func(ctx context.Context) error) error {
	if t := db.transaction(ctx); t != nil {
		return t.join(ctx, fn)
	}
	return db.units.single(ctx, fn)
}

// alone runs every unit on a connection of its own, so that no unit waits for the locks of
// another one that it has nothing to do with. PostgreSQL shares a flush among commits that
// arrive at the same time.
type alone struct {
	db     *DB
	server postgres
}

func (a alone) unit(ctx context.Context, fn func(ctx context.Context) error) error {
	return a.run(ctx, fn, func(ctx context.Context) (work, error) {
		return a.server.begin(ctx, sql.LevelReadCommitted)
	})
}

// single commits by itself, which saves two round trips.
func (a alone) single(ctx context.Context, fn func(ctx context.Context) error) error {
	return a.run(ctx, fn, a.server.statement)
}

func (a alone) run(ctx context.Context, fn func(ctx context.Context) error, open func(ctx context.Context) (work, error)) error {
	bounded, cancel := a.db.limits.within(ctx)
	defer cancel()
	return a.db.retry(bounded, func() error {
		// A driver that is interrupted drops the connection, and the outcome of a commit
		// would be unknown. So ctx only ends the wait for a connection.
		whole, end := context.WithCancel(context.WithoutCancel(bounded))
		defer end()
		if deadline, has := bounded.Deadline(); has {
			whole, end = context.WithDeadline(whole, deadline)
			defer end()
		}
		stop := context.AfterFunc(bounded, end)
		w, err := open(whole)
		if !stop() {
			if err == nil {
				w.rollback()
			}
			err = context.Cause(bounded)
		}
		if err != nil {
			return fmt.Errorf("store: beginning a unit: %w", outage(ctx, err))
		}
		return a.db.complete(whole, &transaction{work: w}, fn)
	})
}
