// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// startup are the parameters that poolers accept in the first message of a connection.
// Some of them cannot be set later.
var startup = []string{"application_name", "client_encoding", "datestyle", "options", "replication", "standard_conforming_strings", "timezone"}

// setLater moves the other parameters of a configuration from the first message to
// statements after it, because a pooler such as PgBouncer refuses a first message with a
// parameter that it does not know.
func setLater(cfg *pgx.ConnConfig) {
	var settings strings.Builder
	for _, name := range slices.Sorted(maps.Keys(cfg.RuntimeParams)) {
		if slices.Contains(startup, strings.ToLower(name)) {
			continue
		}
		fmt.Fprintf(&settings, "SELECT set_config(%s, %s, false);", quoted(name), quoted(cfg.RuntimeParams[name]))
		delete(cfg.RuntimeParams, name)
	}
	cfg.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		return c.Exec(ctx, settings.String()).Close()
	}
}

// quoted returns a text as an SQL literal. PostgreSQL reads a backslash in it as itself,
// since standard_conforming_strings is on in our sessions.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// errPooled is the error for a pooler that gives each transaction another session.
var errPooled = errors.New("the address leads to a connection pooler that gives each transaction another session, so settings such as synchronous_commit would be lost: " +
	"set pool_mode = session in PgBouncer, or connect to the PostgreSQL server itself")

// checkPooling returns errPooled if a pooler does not keep a session for a connection.
//
// A pooler makes up the number of the server process that it names at the beginning of a
// connection. If the number is right, there is no pooler. Otherwise one connection marks
// its session, and another one holds a session meanwhile. The mark must then be visible to
// the first connection alone.
func checkPooling(ctx context.Context, pool *sql.DB) error {
	first, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer first.Close()
	var named uint32
	if err := first.Raw(func(c any) error { named = c.(*stdlib.Conn).Conn().PgConn().PID(); return nil }); err != nil {
		return err
	}
	var pid uint32
	if err := plain(ctx, first, "SELECT pg_backend_pid()").Scan(&pid); err != nil || pid == named {
		return err
	}
	second, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer second.Close()
	for range 3 { // a pooler that chooses among free sessions may choose the right one by chance
		if err := checkSession(ctx, first, second); err != nil {
			return err
		}
	}
	return nil
}

// checkSession returns errPooled if first loses its session while second has a
// transaction, or if second gets it.
func checkSession(ctx context.Context, first, second *sql.Conn) error {
	const read = "SELECT coalesce(current_setting('tamga.session', true), '')"
	mark := rand.Text()
	var firstSees, secondSees string
	if err := plain(ctx, first, "SELECT set_config('tamga.session', "+quoted(mark)+", false)").Scan(&firstSees); err != nil {
		return err
	}
	tx, err := second.BeginTx(ctx, nil)
	if postgresCode(err) == pgProtocolViolation { // PgBouncer in statement mode
		return fmt.Errorf("%w: %w", errPooled, err)
	}
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := plain(ctx, tx, read).Scan(&secondSees); err != nil {
		return err
	}
	if err := plain(ctx, first, read).Scan(&firstSees); err != nil {
		return err
	}
	if firstSees != mark || secondSees == mark {
		return errPooled
	}
	return nil
}

// plain runs a query without preparing it.
func plain(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, query string) *sql.Row {
	return q.QueryRowContext(ctx, query, pgx.QueryExecModeSimpleProtocol)
}
