package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"tamga/internal/adapter/store/lite"
)

// SQLSTATE values (PostgreSQL manual, appendix A).
const (
	pgSerializationFailure = "40001"
	pgDeadlockDetected     = "40P01"
)

// openPostgres opens one pool for everything.
func (db *DB) openPostgres(address string, connections int) error {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return err // pgx leaves the password out of it
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "tamga"
	}
	// A server may be set to answer before the commit is on disk; what we
	// promise to a client is durable, so the choice is not the server's.
	cfg.RuntimeParams["synchronous_commit"] = "on"
	pool := stdlib.OpenDB(*cfg)
	connections = cmp.Or(connections, 16)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	db.engine, db.database = postgresEngine, postgres{pool}
	return nil
}

// postgres is the database of a PostgreSQL server: one pool for everything. Its driver
// keeps statements prepared by itself.
type postgres struct{ pool *sql.DB }

func (p postgres) query(ctx context.Context, _ lite.Keeping, query string, args []any, each func(row) error) error {
	rows, err := p.pool.QueryContext(ctx, query, args...)
	return readRows(rows, err, each)
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

// begin asks for a level of its own, whatever the server is configured to.
func (p postgres) begin(ctx context.Context, level sql.IsolationLevel) (work, error) {
	tx, err := p.pool.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return nil, err
	}
	return postgresWork{tx}, nil
}

func (p postgres) migrating(context.Context) (*migrating, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // every second for five minutes
	if err != nil {
		return nil, err
	}
	return &migrating{
		dialect: goose.DialectPostgres, pool: p.pool, options: []goose.ProviderOption{goose.WithSessionLocker(locker)},
		end: func() error { return nil },
	}, nil
}

func (p postgres) ping(ctx context.Context) error { return p.pool.PingContext(ctx) }
func (p postgres) close() error                   { return p.pool.Close() }

type postgresWork struct{ tx *sql.Tx }

func (w postgresWork) query(ctx context.Context, _ lite.Keeping, query string, args []any, each func(row) error) error {
	rows, err := w.tx.QueryContext(ctx, query, args...)
	return readRows(rows, err, each)
}

func (w postgresWork) exec(ctx context.Context, query string, args []any) (int64, error) {
	res, err := w.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (w postgresWork) commit() error { return w.tx.Commit() }
func (w postgresWork) rollback()     { w.tx.Rollback() } // what there is to say was said before

func postgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
