// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/domain/fault"
)

// SQLSTATE values (PostgreSQL manual, appendix A).
const (
	pgSerializationFailure = "40001"
	pgDeadlockDetected     = "40P01"
	pgUniqueViolation      = "23505"
	pgCheckViolation       = "23514" // of a constraint, or of the bounds of a partition
	pgTooManyConnections   = "53300"
	pgLockNotAvailable     = "55P03"
	pgQueryCanceled        = "57014" // by statement_timeout
	pgProtocolViolation    = "08P01"
	pgCannotConnectNow     = "57P03" // the server starts or stops
	pgDuplicateTable       = "42P07"
	pgDuplicateObject      = "42710"
	pgReadOnly             = "25006" // a server that is no longer the primary
	pgIdleInTransaction    = "25P03" // the server ended the session and rolled back
	pgTransactionTimeout   = "25P04" // the same, by a setting of the server
)

// Classes of SQLSTATE values, which are their first two characters.
const (
	pgConnectionException   = "08"
	pgInsufficientResources = "53"
	pgOperatorIntervention  = "57" // the server stops, or an administrator ended the session
)

const (
	// postgresConnections is the default size of the pool. Twelve processes fit into the
	// 100 connections that a PostgreSQL server allows by default.
	postgresConnections = 8
	// connectTime bounds an attempt to connect to one host.
	connectTime = 5 * time.Second
	// trusted is how long an idle connection is used without a ping.
	trusted = time.Second
	// refusedTime is how long a command waits while the server refuses connections.
	refusedTime = 12 * time.Second
)

// openPostgres opens one pool for everything.
func (db *DB) openPostgres(ctx context.Context, o Options) error {
	cfg, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return err // pgx leaves the password out of it
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "tamga"
	}
	// A server may be configured to answer before a commit is on disk. We promise
	// durability to clients, so the server must not decide this.
	cfg.RuntimeParams["synchronous_commit"] = "on"
	// The role, the database or the server may be set to others. Texts are UTF-8, and settings
	// are sent as literals (see quoted).
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	cfg.RuntimeParams["standard_conforming_strings"] = "on"
	// A statement of a request takes milliseconds, and its compilation hundreds. The estimated
	// cost of statements that walk until they have a page is often high enough for it.
	if _, given := cfg.RuntimeParams["jit"]; !given {
		cfg.RuntimeParams["jit"] = "off"
	}
	owner := rootsRole(cfg)
	if owner != nil {
		cfg.DialFunc = owner.dial
	}
	migrate := cfg.Copy()
	// A migration may take long, but a frozen one must not keep its locks.
	setLimits(migrate, Limits{Idle: idleTime})
	// Builds of indexes leave the processors to the requests.
	if _, given := migrate.RuntimeParams["max_parallel_maintenance_workers"]; !given {
		migrate.RuntimeParams["max_parallel_maintenance_workers"] = "0"
	}
	// The end of a context also ends the statement on the server.
	migrate.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: connectTime}
	}
	setLimits(cfg, o.Limits)
	if o.Limits.Call > 0 && (cfg.ConnectTimeout == 0 || cfg.ConnectTimeout > connectTime) {
		cfg.ConnectTimeout = connectTime
	}
	setLater(migrate)
	setLater(cfg)
	pool := stdlib.OpenDB(*cfg, stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return p.IdleDuration > trusted || stale(p.Conn.PgConn().Conn())
	}))
	connections := cmp.Or(o.Connections, postgresConnections)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	p := postgres{pool, o.Limits, migrate, o.URL, owner}
	db.engine, db.limits, db.database = postgresEngine, o.Limits, p
	return p.opened(ctx)
}

// opened checks that the server answers in sessions that belong to this process.
func (p postgres) opened(ctx context.Context) error {
	bounded, cancel := p.limits.within(ctx)
	defer cancel()
	err := outage(ctx, p.connected(bounded, func() error {
		if err := checkPooling(bounded, p.pool); err != nil {
			return err
		}
		return checkEncoding(bounded, p.pool)
	}))
	if err != nil {
		p.pool.Close()
	}
	return err
}

// EncodingError means that a PostgreSQL database cannot store every text.
type EncodingError struct{ Database, Owner, Encoding string }

// Error implements error.
func (e *EncodingError) Error() string {
	return fmt.Sprintf("the database %s has the encoding %s, which cannot hold every text: want UTF8. An encoding cannot be changed; make another database with: %s",
		e.Database, e.Encoding, e.Command())
}

// Command is the command that makes a right database beside the wrong one.
func (e *EncodingError) Command() string {
	words := []string{"createdb", "--template=template0", "--encoding=UTF8", "--lc-collate=C", "--lc-ctype=C.UTF-8", "--owner=" + e.Owner, e.Database + "_utf8"}
	for i, w := range words {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=.") != "" {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" // for a shell
		}
	}
	return strings.Join(words, " ")
}

// checkEncoding returns an *EncodingError if the database is not in UTF-8.
func checkEncoding(ctx context.Context, pool *sql.DB) error {
	var e EncodingError
	err := pool.QueryRowContext(ctx, "SELECT datname, pg_get_userbyid(datdba), pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()").
		Scan(&e.Database, &e.Owner, &e.Encoding)
	if err == nil && e.Encoding != "UTF8" {
		return &e
	}
	return err
}

// stale reports whether an idle connection has something to read. That is its end, or the
// message of a server that ends it: the statement that is sent next would be lost, and its
// outcome unknown.
func stale(c net.Conn) bool {
	if over, is := c.(interface{ NetConn() net.Conn }); is { // TLS
		c = over.NetConn()
	}
	socket, is := c.(syscall.Conn)
	if !is {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	return readable(raw)
}

// setLimits sets the limits of future sessions. Values in the address have priority.
func setLimits(cfg *pgx.ConnConfig, l Limits) {
	for name, value := range l.parameters() {
		if _, given := cfg.RuntimeParams[name]; !given {
			cfg.RuntimeParams[name] = strconv.FormatInt(value.Milliseconds(), 10)
		}
	}
}

// postgres is the database of a PostgreSQL server: one pool for everything. The driver
// keeps statements prepared.
type postgres struct {
	pool    *sql.DB
	limits  Limits
	migrate *pgx.ConnConfig // of sessions that migrate
	address string          // with the password
	owner   *peer           // nil unless root connects as another user
}

// query reads. It runs again if the connection was lost before the first row: it changes
// nothing.
func (p postgres) query(ctx context.Context, _ lite.Keeping, query string, args []any, each func(row) error) error {
	bounded, cancel := p.limits.within(ctx)
	defer cancel()
	for n := 1; ; n++ {
		seen := false
		err := p.connected(bounded, func() error {
			rows, err := p.pool.QueryContext(bounded, query, args...)
			return readRows(rows, err, func(r row) error { seen = true; return each(r) })
		})
		if err = outage(ctx, err); err == nil || seen || n == lostAttempts || !lost(err) || bounded.Err() != nil {
			return err
		}
	}
}

// connected calls f again while the server refuses new connections, because all are taken
// or the server is starting. f may also find a free connection in the pool. If the time ends
// within an attempt to connect, the error is that of the attempt before, which names the reason.
func (p postgres) connected(ctx context.Context, f func() error) error {
	wait, cancel := context.WithTimeout(ctx, cmp.Or(p.limits.Call, refusedTime))
	defer cancel()
	var refusal error
	for {
		err := f()
		if code := postgresCode(err); code != pgTooManyConnections && code != pgCannotConnectNow {
			var failed *pgconn.ConnectError
			if refusal != nil && errors.Is(err, context.DeadlineExceeded) && errors.As(err, &failed) {
				return refusal
			}
			return err
		}
		refusal = err
		pause := time.NewTimer(50*time.Millisecond + rand.N(100*time.Millisecond))
		select {
		case <-pause.C:
		case <-wait.Done():
			pause.Stop()
			return err
		}
	}
}

func readRows(rows *sql.Rows, err error, each func(row) error) error {
	if err != nil {
		return err
	}
	for err == nil && rows.Next() {
		err = each(rows)
	}
	return errors.Join(err, rows.Close(), rows.Err())
}

// begin always sets the isolation level, whatever the server is configured to. The
// transaction ends when ctx ends.
func (p postgres) begin(ctx context.Context, level sql.IsolationLevel) (work, error) {
	var tx *sql.Tx
	err := p.connected(ctx, func() (err error) {
		tx, err = p.pool.BeginTx(ctx, &sql.TxOptions{Isolation: level})
		return err
	})
	if err != nil {
		return nil, outage(ctx, err)
	}
	return &postgresWork{tx: tx, ctx: ctx}, nil
}

// statement takes a connection for one statement, which commits by itself.
func (p postgres) statement(ctx context.Context) (work, error) {
	var conn *sql.Conn
	err := p.connected(ctx, func() (err error) {
		conn, err = p.pool.Conn(ctx)
		return err
	})
	if err != nil {
		return nil, outage(ctx, err)
	}
	return postgresStatement{conn, ctx}, nil
}

// migrating uses its own sessions, whose statements may take long.
func (p postgres) migrating(ctx context.Context) (*migrating, error) {
	pool := stdlib.OpenDB(*p.migrate)
	l, held, end, err := takeLease(ctx, pool)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &migrating{
		engine: postgresEngine, pool: pool, held: held, keep: l.keep,
		end: func() error { return errors.Join(end(), pool.Close()) },
	}, nil
}

func (p postgres) ping(ctx context.Context) error {
	bounded, cancel := p.limits.within(ctx)
	defer cancel()
	// A ping of the driver does not check a connection that was used a moment ago.
	return outage(ctx, p.connected(bounded, func() error {
		_, err := p.pool.ExecContext(bounded, "SELECT 1")
		return err
	}))
}

func (p postgres) close() error { return p.pool.Close() }

type postgresWork struct {
	tx   *sql.Tx
	ctx  context.Context // its end is the end of the transaction
	gone error           // of a statement that lost the connection, and the transaction with it
}

// bounded ends a statement with its transaction, whatever the context of the caller is.
func (w *postgresWork) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ends := w.ctx.Deadline()
	if own, has := ctx.Deadline(); !ends || has && !own.After(end) {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end)
}

func (w *postgresWork) query(ctx context.Context, _ lite.Keeping, query string, args []any, each func(row) error) error {
	bounded, cancel := w.bounded(ctx)
	defer cancel()
	rows, err := w.tx.QueryContext(bounded, query, args...)
	return w.outage(ctx, readRows(rows, err, each))
}

func (w *postgresWork) exec(ctx context.Context, query string, args []any) (int64, error) {
	bounded, cancel := w.bounded(ctx)
	defer cancel()
	res, err := w.tx.ExecContext(bounded, query, args...)
	if err != nil {
		return 0, w.outage(ctx, err)
	}
	return res.RowsAffected()
}

// outage also adds why a transaction ended before its commit.
func (w *postgresWork) outage(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		err = errors.Join(err, w.ctx.Err())
	}
	if w.gone == nil && lost(err) {
		w.gone = err
	}
	return outage(ctx, err)
}

func (w *postgresWork) commit() error {
	// No commit is sent in these two cases, so nothing is kept.
	if err := w.ctx.Err(); err != nil {
		return outage(w.ctx, err)
	}
	if w.gone != nil {
		return outage(w.ctx, w.gone)
	}
	err := w.tx.Commit()
	if err == nil || undone(err) {
		return w.outage(w.ctx, err)
	}
	return unknown(err)
}

func (w *postgresWork) rollback() { w.tx.Rollback() } // errors were reported before

// postgresStatement is a transaction of one statement. The end of the statement is its
// commit.
type postgresStatement struct {
	conn *sql.Conn
	ctx  context.Context
}

func (w postgresStatement) query(_ context.Context, _ lite.Keeping, query string, args []any, each func(row) error) error {
	rows, err := w.conn.QueryContext(w.ctx, query, args...)
	return w.ended(readRows(rows, err, each))
}

func (w postgresStatement) exec(_ context.Context, query string, args []any) (int64, error) {
	res, err := w.conn.ExecContext(w.ctx, query, args...)
	if err != nil {
		return 0, w.ended(err)
	}
	return res.RowsAffected()
}

// ended returns the error of a statement that may have been committed.
func (w postgresStatement) ended(err error) error {
	if err == nil || undone(err) || !lost(err) && !errors.Is(err, context.DeadlineExceeded) && !w.closed() {
		return outage(w.ctx, err)
	}
	return unknown(err)
}

// closed reports whether the driver has given up the connection, for example because it did
// not understand the answer of the server. A value that was not understood closes nothing.
func (w postgresStatement) closed() bool {
	closed := false
	err := w.conn.Raw(func(c any) error {
		closed = c.(*stdlib.Conn).Conn().IsClosed()
		return nil
	})
	return closed || err != nil
}

func (w postgresStatement) commit() error { return nil }

func (w postgresStatement) rollback() { w.conn.Close() } // gives it back to the pool

// unknown is the error of a commit that was not answered.
func unknown(err error) error {
	return &fault.Outage{
		Message: "the database did not confirm the change, so it may or may not have been made: look before you repeat it; " +
			"a request with an Idempotency-Key may be repeated with the same key",
		Err: errors.Join(errUnknown, err),
	}
}

// errUnknown marks a commit whose outcome is unknown.
var errUnknown = errors.New("the outcome of the commit is unknown")

// undone reports whether an error of a commit means that nothing was kept: the server
// refused the commit, ended the session before it, or never received it. Whatever else
// happens to a commit leaves its outcome unknown: a unit that ran again then could be kept
// twice.
func undone(err error) bool {
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	// The driver promises that nothing of the message was sent. But if the connection breaks
	// while the driver waits for the answer to a commit, its error is "conn closed", with the
	// same promise: MultiResultReader.NextResult drops the error of the reading and finds the
	// connection closed the next moment.
	if pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed) {
		return true
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	// If an administrator ends a session, it may have committed a moment before. A
	// session that ends for being idle was waiting for the commit.
	return e.SeverityUnlocalized == "ERROR" || e.Code == pgIdleInTransaction
}

// outage turns an error of the connection, or of a server without resources or time, into
// a *fault.Outage. An error caused by a cancelled context stays as it is.
func outage(ctx context.Context, err error) error {
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if _, is := fault.AsOutage(err); is || retryable(err) || !lost(err) && !overloaded(err) {
		return err
	}
	return &fault.Outage{Message: "the database is not available now: try again later", Err: err}
}

// lost reports whether the connection was lost, and with it all changes of its
// transaction. It is false for a commit whose outcome is unknown.
func lost(err error) bool {
	if errors.Is(err, errUnknown) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	switch code := postgresCode(err); {
	case code == pgQueryCanceled:
		return false
	case code != "":
		return code == pgIdleInTransaction || code == pgTransactionTimeout ||
			strings.HasPrefix(code, pgConnectionException) || strings.HasPrefix(code, pgOperatorIntervention)
	}
	var network net.Error
	var refused *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &refused) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, pgconn.ErrConnClosed)
}

// overloaded reports whether an error means a lack of time or resources.
func overloaded(err error) bool {
	code := postgresCode(err)
	return code == pgLockNotAvailable || code == pgQueryCanceled || code == pgReadOnly || strings.HasPrefix(code, pgInsufficientResources) ||
		errors.Is(err, context.DeadlineExceeded)
}

func postgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
