// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// The lease of the process that migrates a PostgreSQL database.
const (
	leaseTable = "migration_lock"
	// leaseTime is how long the others wait for a process that was killed.
	leaseTime = 15 * time.Second
	leaseLook = 250 * time.Millisecond
)

// databaseMillis is the clock of the server, so that the clocks of the processes do not matter.
const databaseMillis = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"

// errLeaseLost ends a migration that another process has taken over.
var errLeaseLost = errors.New("another process took over the migration, because this one did not extend its lease in time: migrate again")

// migrationLease is a row that one process has at a time. It is an ordinary row: a lock of the server
// would end with a session, and not every PostgreSQL-compatible server has advisory locks.
type migrationLease struct {
	pool *sql.DB
	name string
}

// takeLease waits until no other process migrates. held ends with ctx, or when the lease is
// lost. end gives the lease back.
func takeLease(ctx context.Context, pool *sql.DB) (l migrationLease, held context.Context, end func() error, err error) {
	l = migrationLease{pool, rand.Text()}
	for {
		taken, err := l.take(ctx)
		if err != nil {
			return l, nil, nil, errors.Join(context.Cause(ctx), err)
		}
		if taken {
			break
		}
		timer := time.NewTimer(leaseLook)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return l, nil, nil, fmt.Errorf("waiting for another migration to finish: %w", context.Cause(ctx))
		}
	}
	held, cancel := context.WithCancelCause(ctx)
	extending := make(chan struct{})
	go func() {
		defer close(extending)
		l.extend(held, cancel)
	}()
	return l, held, func() error {
		cancel(nil)
		<-extending
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime)
		defer cancel()
		_, err := l.pool.ExecContext(bounded, "DELETE FROM "+leaseTable+" WHERE lease = $1", l.name)
		return err
	}, nil
}

// take makes the table if it is missing, and takes the lease if it is free.
func (l migrationLease) take(ctx context.Context) (bool, error) {
	var present bool
	if err := l.pool.QueryRowContext(ctx, "SELECT to_regclass('"+leaseTable+"') IS NOT NULL").Scan(&present); err != nil {
		return false, err
	}
	if !present {
		_, err := l.pool.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+leaseTable+` (
			id            BIGINT NOT NULL PRIMARY KEY,
			lease         TEXT   NOT NULL,
			leased_until  BIGINT NOT NULL
		)`)
		switch postgresCode(err) {
		case pgUniqueViolation, pgDuplicateTable, pgDuplicateObject: // another process makes it now
		default:
			if err != nil {
				return false, err
			}
		}
	}
	return l.changes(ctx, "INSERT INTO "+leaseTable+" AS have (id, lease, leased_until) VALUES (1, $1, "+databaseMillis+" + $2) "+
		"ON CONFLICT (id) DO UPDATE SET lease = EXCLUDED.lease, leased_until = EXCLUDED.leased_until WHERE have.leased_until < "+databaseMillis,
		l.name, leaseTime.Milliseconds())
}

// extend extends the lease until ctx ends. It ends ctx when the lease is lost.
func (l migrationLease) extend(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(leaseTime / 5)
	defer ticker.Stop()
	extended := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		began := time.Now()
		bounded, done := context.WithTimeout(ctx, leaseTime/3)
		ours, err := l.changes(bounded, "UPDATE "+leaseTable+" SET leased_until = "+databaseMillis+" + $2 WHERE lease = $1", l.name, leaseTime.Milliseconds())
		done()
		switch {
		case err == nil && ours:
			extended = began
		case err == nil, time.Since(extended) > leaseTime*2/3:
			cancel(errors.Join(errLeaseLost, err))
			return
		}
	}
}

// keep locks the row of the lease until the end of tx, so that no process takes it over before
// the commit.
func (l migrationLease) keep(ctx context.Context, tx *sql.Tx) error {
	var id int64
	err := tx.QueryRowContext(ctx, "SELECT id FROM "+leaseTable+" WHERE lease = $1 FOR UPDATE", l.name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return errLeaseLost
	}
	return err
}

// changes runs a statement and reports whether it changed a row.
func (l migrationLease) changes(ctx context.Context, query string, args ...any) (bool, error) {
	result, err := l.pool.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
