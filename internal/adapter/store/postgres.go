package store

import (
	"cmp"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
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
	db.engine, db.write, db.read, db.queries = postgresEngine, pool, pool, pool
	return nil
}

func postgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
