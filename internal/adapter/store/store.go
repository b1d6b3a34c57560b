// SPDX-License-Identifier: Apache-2.0

// Package store stores the data of the domain in SQLite or PostgreSQL. It implements
// every Store interface of internal/domain, with one type and one file for each domain
// package.
//
// Begin with Open, then Migrate or Migrated. The types are made of the DB, for example
// Users{DB: db}. The package has no rules of the domain: it stores what the domain
// decided.
//
// There is one SQL text for both engines: $1 parameters, BOOLEAN and BIGINT columns,
// INSERT ... ON CONFLICT DO NOTHING where a duplicate is an expected result (a violated
// constraint would end a PostgreSQL transaction). The differences (opening, error codes,
// a few words of the migrations) are in sqlite.go, postgres.go and migrate.go.
//
// Conventions of every table:
//   - a time is a BIGINT, milliseconds since 1970 in UTC; 0 is the zero time. Nanoseconds
//     would end in 2262, and certificates may be valid until 9999;
//   - an identifier is a lower-case GUID as TEXT;
//   - a text is UTF-8 without NUL, whatever a caller passed: see legible;
//   - secrets arrive sealed or hashed, so the store holds opaque bytes.
//
// How writes become durable: a change outside a transaction is a unit of its own, and
// changes that belong together go through Unit or Atomic. On SQLite the group committer
// puts the units of many requests into one transaction.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
)

// engine is the kind of database behind a DB.
type engine int

const (
	sqliteEngine engine = iota + 1
	postgresEngine
)

// Options configure the database to open.
type Options struct {
	// URL is "sqlite:PATH" (created with mode 0600 if missing) or "postgres://...", as
	// libpq reads it.
	URL string
	// Now replaces the clock of the database. nil means the server's clock on PostgreSQL
	// and Wall on SQLite; see DB.Now.
	Now func() time.Time
	// Wall is the clock of this machine, with a monotonic reading. nil means time.Now.
	Wall func() time.Time
	// Connections bounds the pool: readers on SQLite (in addition to the one writer), all
	// connections on PostgreSQL. 0 means 8.
	Connections int
	// Limits bound waiting on PostgreSQL. The zero value sets no limits.
	Limits Limits
	// Log gets what makes the database slower, not wrong, and at the level debug each attempt at
	// a unit that did not succeed. nil: nothing does.
	Log *slog.Logger
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine    engine
	database  database
	limits    Limits // the zero value on SQLite
	log       *slog.Logger
	now       func() time.Time
	clock     *clock // nil if now does not follow a server
	stopClock func()
	units     units
	prepared  *tally
	documents *tally
	committer *Committer
	entries   *changes // on PostgreSQL; nil on SQLite
	bearers   *lookups[token.Bearer]
	signers   *lookups[bearerSnapshot]
	snapshots *lookups[*signing.Snapshot]

	authorityStates *lookups[states]
	preparedObjects *lookups[*signing.PreparedRecord]

	// Of prepared objects, on PostgreSQL; nil on SQLite.
	additions, spendings         *changes
	addedPrepared, spentPrepared string

	hadUsers atomic.Int64 // so many users there were, at least; see Users.MoreUsers
}

// database is an open database of an engine.
type database interface {
	reader
	// begin opens a transaction that may write.
	begin(ctx context.Context, level sql.IsolationLevel) (work, error)
	// migrating opens the database for the migrations and keeps other processes from
	// migrating at the same time.
	migrating(ctx context.Context) (*migrating, error)
	ping(ctx context.Context) error
	close() error
}

// reader runs queries.
type reader interface {
	// query runs a statement and calls each with every row. An error of each ends the
	// reading. Statements with lite.Keep stay prepared.
	query(ctx context.Context, keep lite.Keeping, query string, args []any, each func(row) error) error
}

// work is a transaction of an engine.
type work interface {
	reader
	// exec runs a statement that changes something and returns the number of rows it
	// changed.
	exec(ctx context.Context, query string, args []any) (int64, error)
	commit() error
	rollback() // does nothing after a commit
}

// Open connects and checks that the database answers. It changes no table; see Migrate
// and Migrated. It refuses a database of a build before the first release: ErrEarlyBuild.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	db := &DB{
		log:       o.Log,
		now:       o.Now,
		stopClock: func() {},
	}
	var err error
	switch scheme, rest, _ := strings.Cut(o.URL, ":"); scheme {
	case "sqlite":
		err = db.openSQLite(rest, o)
	case "postgres", "postgresql":
		err = db.openPostgres(ctx, o)
	default:
		// The address may carry a password, so it is not quoted.
		return nil, errors.New(`store: unknown kind of database address, want "sqlite:PATH" or "postgres://..."`)
	}
	if err != nil {
		return nil, fmt.Errorf("store: opening the database: %w", err)
	}
	db.prepared = newTally(db, "prepared_shares", "caller", nil)
	db.documents = newTally(db, "document_shares", "user_id",
		&beside{"confirmation_usage", "records", "bytes", "b.purpose = 'operation'"})
	if err := db.begun(ctx, o); err != nil {
		db.database.close()
		return nil, fmt.Errorf("store: opening the database: %w", err)
	}
	if server, is := db.database.(postgres); is {
		db.units = alone{db, server}
		db.entries = newChanges(db.limits, changeGathering(mostEntries, 3), Audit{db}.addGathered)
		db.addedPrepared, db.spentPrepared = addedPrepared(db.prepared), spentPrepared(db.prepared)
		db.additions = newChanges(db.limits, changeGathering(mostPrepared, 1), Prepared{db}.addRows) // one at a time, so that they see each other's quotas
		db.spendings = newChanges(db.limits, changeGathering(mostPrepared, 3), Prepared{db}.spendRows)
	} else {
		db.committer = newCommitter(db)
		db.units = db.committer
	}
	db.bearers = newLookups(db, bearerQuery, scanBearer)
	db.signers = newLookups(db, bearerSnapshotQuery, scanBearerSnapshot)
	db.snapshots = newLookups(db, snapshotQuery, scanSnapshot)
	db.authorityStates = newLookups(db, statesQuery, scanStates)
	db.preparedObjects = newLookups(db, preparedQuery, scanPrepared)
	if db.engine == sqliteEngine {
		db.bearers.joint.lasts = bearerLasts
		db.signers.joint.lasts = func(b bearerSnapshot) bool { return bearerLasts(b.bearer) }
		db.snapshots.joint.lasts = always[*signing.Snapshot]
		db.authorityStates.joint.lasts = always[states]
	}
	return db, nil
}

// begun checks that the database answers and may be used, and chooses the clock.
func (db *DB) begun(ctx context.Context, o Options) error {
	if err := db.database.ping(ctx); err != nil {
		return err
	}
	if _, err := db.versioned(ctx); err != nil {
		return err
	}
	switch {
	case db.now != nil:
	case db.engine == postgresEngine:
		return db.startClock(ctx, o.Wall)
	default:
		db.now = o.Wall
	}
	return nil
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.database.ping(ctx); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Close finishes what was accepted, such as audit entries, and closes the connections.
func (db *DB) Close() error {
	db.stopClock()
	for _, c := range []*changes{db.entries, db.additions, db.spendings} {
		if c != nil {
			c.close()
		}
	}
	if db.committer != nil {
		db.committer.Close()
	}
	db.bearers.close()
	db.signers.close()
	db.snapshots.close()
	db.authorityStates.close()
	db.preparedObjects.close()
	return db.database.close()
}
