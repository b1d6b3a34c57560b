// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver for migrations

	"tamga/internal/adapter/store/lite"
)

// sqliteWait is how long a statement waits for a lock of another process. Inside this
// process there is one writing connection, so no lock is waited for.
const sqliteWait = 10 * time.Second

// openSQLite opens one writing connection and a pool of readers. With several writing
// connections BEGIN IMMEDIATE starves some of them until they give up. With one, they
// queue in order. The defaults of drivers differ, so every setting that durability
// depends on is set here.
func (db *DB) openSQLite(path string, o Options) error {
	if path == "" || path == ":memory:" {
		return errors.New(`want a file after "sqlite:"; a database in memory is not durable`)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	// Created here to set its mode. SQLite gives the same mode to -wal and -shm.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// The inner pages of the indexes of a million users fit into 16 MiB. With the default
	// of 2 MiB SQLite reads them again and again. It is an upper bound: memory is
	// allocated as needed.
	pragmas := slices.Clip([]string{"foreign_keys(1)", "cache_size(-16384)"})
	// What a statement undoes if it fails is kept in memory, not in a file, and changed pages reach the
	// database file when the WAL has 16 MiB: then most were changed several times.
	db.engine = sqliteEngine
	file := &sqliteFile{path: path, log: o.Log}
	file.pools.Store(2)
	file.writer = newConnections(1, file.poolOver, func() (*lite.Conn, error) {
		return lite.Open(path, sqliteWait, append(pragmas, "journal_mode(WAL)", "synchronous(FULL)", "temp_store(MEMORY)", "wal_autocheckpoint(4000)")...)
	})
	file.readers = newConnections(cmp.Or(o.Connections, 8), file.poolOver, func() (*lite.Conn, error) {
		return lite.Open(path, sqliteWait, append(pragmas, "query_only(1)")...)
	})
	db.database = file
	return nil
}

// sqliteFile is the database in a file.
type sqliteFile struct {
	path            string
	log             *slog.Logger
	writer, readers *connections
	pools           atomic.Int32 // that have open connections

	watching sync.RWMutex
	watched  bool        // the watch has begun, or all connections are closed
	watch    *lite.Watch // nil before and after
}

// state returns what identifies the committed content of the file. ok is false if it is not known.
// The first call begins to watch commits, which takes a connection: most commands never ask.
func (f *sqliteFile) state() (s lite.State, ok bool) {
	f.watching.RLock()
	defer f.watching.RUnlock()
	if !f.watched {
		f.watching.RUnlock()
		f.startWatch()
		f.watching.RLock()
	}
	if f.watch == nil {
		return s, false
	}
	return f.watch.State()
}

// startWatch begins to watch commits. Where that is not possible, every read asks the database.
func (f *sqliteFile) startWatch() {
	f.watching.Lock()
	defer f.watching.Unlock()
	if f.watched {
		return
	}
	f.watched = true
	var err error
	if f.watch, err = lite.OpenWatch(f.path, sqliteWait); err != nil {
		f.log.Warn("commits to the database are not watched, so each read asks it", "error", err)
	}
}

// poolOver ends the watch after the last connection of both pools was closed.
func (f *sqliteFile) poolOver() {
	if f.pools.Add(-1) > 0 {
		return
	}
	f.watching.Lock()
	defer f.watching.Unlock()
	f.watched = true
	if f.watch != nil {
		if err := f.watch.Close(); err != nil { // what was committed is in the log
			f.log.Warn("ending to watch commits to the database", "error", err)
		}
		f.watch = nil
	}
}

func (f *sqliteFile) query(ctx context.Context, keep lite.Keeping, query string, args []any, each func(row) error) error {
	c, err := f.readers.take(ctx)
	if err != nil {
		return err
	}
	defer f.readers.give(c)
	return liteQuery(ctx, c, keep, query, args, each)
}

// reading opens a transaction that only reads, so that its statements load each page once.
// After end it must not be used.
func (f *sqliteFile) reading(ctx context.Context) (from reader, end func(), err error) {
	c, err := f.readers.take(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	if _, err := c.Exec(ctx, "BEGIN", nil); err != nil {
		f.readers.give(c)
		return nil, func() {}, err
	}
	w := &sqliteWork{ctx: ctx, conn: c, from: f.readers}
	return w, w.rollback, nil
}

func liteQuery(ctx context.Context, c *lite.Conn, keep lite.Keeping, query string, args []any, each func(row) error) error {
	return c.Query(ctx, keep, query, args, func(r lite.Row) error { return each(r) })
}

// begin ignores the level: SQLite has only one, which is serial.
func (f *sqliteFile) begin(ctx context.Context, _ sql.IsolationLevel) (work, error) {
	c, err := f.writer.take(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, "BEGIN IMMEDIATE", nil); err != nil {
		f.writer.give(c)
		return nil, err
	}
	return &sqliteWork{ctx: ctx, conn: c, from: f.writer}, nil
}

func (f *sqliteFile) ping(ctx context.Context) error {
	for _, pool := range []*connections{f.writer, f.readers} { // the writer first: it switches the file to write-ahead logging
		c, err := pool.take(ctx)
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, "SELECT 1", nil)
		pool.give(c)
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *sqliteFile) close() error { return errors.Join(f.readers.close(), f.writer.close()) }

// sqliteWork is a transaction on the writing connection.
type sqliteWork struct {
	ctx  context.Context // its end is the end of the transaction
	conn *lite.Conn      // nil after the end
	from *connections
}

func (w *sqliteWork) query(ctx context.Context, keep lite.Keeping, query string, args []any, each func(row) error) error {
	if err := w.going(); err != nil {
		return err
	}
	return liteQuery(ctx, w.conn, keep, query, args, each)
}

func (w *sqliteWork) exec(ctx context.Context, query string, args []any) (int64, error) {
	if err := errors.Join(w.going(), context.Cause(ctx)); err != nil {
		return 0, err
	}
	// A change of a few rows ends before an interruption could be arranged.
	return w.conn.Exec(context.Background(), query, args)
}

func (w *sqliteWork) going() error {
	switch {
	case w.conn == nil:
		return sql.ErrTxDone
	case w.ctx.Err() != nil:
		return context.Cause(w.ctx)
	}
	return nil
}

func (w *sqliteWork) commit() error {
	if err := w.going(); err != nil {
		return err
	}
	// A commit is not interrupted, because its outcome would be unknown.
	_, err := w.conn.Exec(context.Background(), "COMMIT", nil)
	if err != nil {
		return err
	}
	w.over()
	return nil
}

func (w *sqliteWork) rollback() {
	if w.conn == nil {
		return
	}
	if !w.conn.Clean() { // an error may have ended the transaction
		w.conn.Exec(context.Background(), "ROLLBACK", nil) // give checks whether it worked
	}
	w.over()
}

func (w *sqliteWork) over() {
	w.from.give(w.conn)
	w.conn = nil
}

// migrating opens the file with the driver of database/sql, which migrations need.
func (f *sqliteFile) migrating(ctx context.Context) (*migrating, error) {
	unlock, err := sqliteMigrationLock(ctx, f.path)
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", sqliteName(f.path, "immediate", fmt.Sprintf("busy_timeout(%d)", sqliteWait.Milliseconds()), "foreign_keys(1)", "journal_mode(WAL)", "synchronous(FULL)"))
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	pool.SetMaxOpenConns(1)
	return &migrating{
		engine: sqliteEngine, pool: pool, held: ctx,
		keep: func(context.Context, *sql.Tx) error { return nil }, // the file is locked
		end:  func() error { return errors.Join(pool.Close(), unlock()) },
	}, nil
}

func sqliteName(path, lock string, pragmas ...string) string {
	q := url.Values{"_txlock": {lock}, "_pragma": pragmas}
	name := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		name = "/" + name // file:///C:/tamga.db; without the slash the drive would be a host
	}
	return (&url.URL{Scheme: "file", Path: name, RawQuery: q.Encode()}).String()
}

// sqliteMigrationLock lets one process migrate at a time: it holds an exclusive
// transaction on an empty database next to the real one. The lock is SQLite's own, so it
// ends with the process however the process dies, and works wherever SQLite works. The
// file stays: removing a lock file would let two processes in.
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
	return lite.Conflict(err)
}
