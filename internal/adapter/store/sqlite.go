package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// Primary result codes of SQLite (https://www.sqlite.org/rescode.html): the low
// octet of a code; the rest tells the variant.
const (
	sqliteBusy   = 5
	sqliteLocked = 6
)

// sqliteWait is how long a statement waits for a lock held by another process.
// Inside this process there is one writing connection, so nobody waits there.
const sqliteWait = "10000" // ms

// openSQLite opens one writing connection and a pool of readers. With several
// writing connections BEGIN IMMEDIATE starves some of them until they give up;
// with one, they queue in order. The defaults of drivers differ, so everything
// that durability rests on is said here.
func (db *DB) openSQLite(path string, readers int) error {
	if path == "" || path == ":memory:" {
		return errors.New(`want a file after "sqlite:", a database in memory is not durable`)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	// Created here for its mode; SQLite gives the same mode to -wal and -shm.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// The inner pages of the indexes of a million users fit into 16 MiB; the default
	// of 2 MiB has them read again and again. It is a bound, taken as it is needed.
	common := []string{"busy_timeout(" + sqliteWait + ")", "foreign_keys(1)", "cache_size(-16384)"}
	write, err := sql.Open("sqlite", sqliteName(path, "immediate",
		append(common, "journal_mode(WAL)", "synchronous(FULL)")...))
	if err != nil {
		return err
	}
	write.SetMaxOpenConns(1)
	write.SetMaxIdleConns(1)
	read, err := sql.Open("sqlite", sqliteName(path, "deferred",
		append(common, "query_only(1)")...))
	if err != nil {
		return errors.Join(err, write.Close())
	}
	readers = cmp.Or(readers, 8)
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	db.engine, db.write, db.read, db.path = sqliteEngine, write, read, path
	db.queries, db.changes = newStatements(read), newStatements(write)
	return nil
}

func sqliteName(path, lock string, pragmas ...string) string {
	q := url.Values{"_txlock": {lock}, "_pragma": pragmas}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}).String()
}

// sqliteMigrationLock lets one process migrate at a time: it holds an exclusive
// transaction on an empty database beside the real one. The lock is SQLite's
// own, so it ends with the process however that dies, and works wherever
// SQLite works. The file stays: removing a lock file lets two in at once.
func sqliteMigrationLock(ctx context.Context, path string) (unlock func() error, err error) {
	path += "-migrate"
	pool, err := sql.Open("sqlite", sqliteName(path, "exclusive", "busy_timeout(300000)"))
	if err != nil {
		return nil, err
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for another migration to finish: %w", err), pool.Close())
	}
	return func() error { return errors.Join(tx.Rollback(), pool.Close()) }, nil
}

func sqliteRetryable(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqliteBusy || e.Code()&0xff == sqliteLocked)
}
