// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
)

// Backups stores which backups run, and makes their snapshots of the database.
type Backups struct{ *DB }

// Hold keeps the bytes of documents from being removed until a time. It reports false, and
// holds nothing, while another backup runs.
func (s Backups) Hold(ctx context.Context, id string, now, until time.Time) (held bool, err error) {
	err = s.Unit(ctx, func(ctx context.Context) error {
		if _, err := s.exec(ctx, "DELETE FROM backup_holds WHERE until_at <= $1", millis(now)); err != nil {
			return err
		}
		n, err := s.exec(ctx, `INSERT INTO backup_holds (id, until_at) SELECT $1, CAST($2 AS BIGINT)
			WHERE NOT EXISTS (SELECT 1 FROM backup_holds WHERE id <> $1)
			ON CONFLICT (id) DO UPDATE SET until_at = excluded.until_at`, id, millis(until))
		held = n == 1
		return err
	})
	return held && err == nil, err
}

// Release ends a hold.
func (s Backups) Release(ctx context.Context, id string) error {
	_, err := s.exec(ctx, "DELETE FROM backup_holds WHERE id = $1", id)
	return err
}

// Held reports whether a backup runs, so that no bytes of documents may be removed.
func (s Backups) Held(ctx context.Context) (bool, error) {
	n, _, err := one(ctx, s.DB, scalar[int64], "SELECT COUNT(*) FROM backup_holds WHERE until_at > $1", millis(s.Now()))
	return n > 0, err
}

// Snapshot is the database at one moment. The caller closes it.
type Snapshot struct {
	// At is a time not after the snapshot: what was committed before it is in the snapshot.
	At       time.Time
	Versions []int64 // of migrations that were applied

	source interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	write func(ctx context.Context, w io.Writer) error
	close []func() error
}

// Engine returns the name of the kind of database: "sqlite" or "postgres". A snapshot of one
// cannot be restored to the other.
func (db *DB) Engine() string {
	if db.engine == postgresEngine {
		return "postgres"
	}
	return "sqlite"
}

// Snapshot makes a snapshot while others write. On SQLite it is a copy of the file next to
// the database, for as long as the snapshot is open. On PostgreSQL it is an open transaction.
func (s Backups) Snapshot(ctx context.Context) (snapshot *Snapshot, err error) {
	snapshot = &Snapshot{At: s.Now()}
	defer func() {
		if err != nil {
			err = fmt.Errorf("store: making a snapshot of the database: %w", errors.Join(err, snapshot.Close()))
		}
	}()
	switch d := s.database.(type) {
	case *sqliteFile:
		err = snapshot.ofSQLite(ctx, d.path)
	case postgres:
		err = snapshot.ofPostgres(ctx, d)
	}
	if err != nil {
		return snapshot, err
	}
	err = snapshot.each(ctx, "SELECT version FROM "+versionTable+" ORDER BY version", func(r *sql.Rows) error {
		var version int64
		err := r.Scan(&version)
		snapshot.Versions = append(snapshot.Versions, version)
		return err
	})
	return snapshot, err
}

// Close removes what the snapshot needs.
func (s *Snapshot) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.close) {
		errs = append(errs, c())
	}
	s.close = nil
	return errors.Join(errs...)
}

// WriteTo writes the snapshot in the form that Restore reads.
func (s *Snapshot) Write(ctx context.Context, w io.Writer) error {
	if err := s.write(ctx, w); err != nil {
		return fmt.Errorf("store: writing the snapshot of the database: %w", err)
	}
	return nil
}

// Blobs calls each with the name of every stored object that the snapshot refers to:
// documents, and results and answers that are kept for clients. Objects of unfinished
// operations are not among them.
func (s *Snapshot) Blobs(ctx context.Context, each func(name string) error) error {
	err := s.each(ctx, fmt.Sprintf(`SELECT blob FROM documents WHERE state = 1 AND NOT `+inRow+` AND (expires_at = 0 OR expires_at > %d)
		UNION ALL SELECT results FROM operations WHERE results <> '' AND keep_until > %[1]d AND (is_async OR callback <> '' OR complete_before > %[1]d)
		UNION ALL SELECT blob FROM answers WHERE blob <> '' AND done_at <> 0 AND expires_at > %[1]d`, s.At.UnixMilli()),
		func(r *sql.Rows) error {
			var name string
			if err := r.Scan(&name); err != nil {
				return err
			}
			return each(name)
		})
	if err != nil {
		return fmt.Errorf("store: reading which documents there are: %w", err)
	}
	return nil
}

// InRows returns how many documents the snapshot itself has, and their bytes.
func (s *Snapshot) InRows(ctx context.Context) (documents, bytes int64, err error) {
	err = s.each(ctx, fmt.Sprintf(`SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM documents
		WHERE state = 1 AND `+inRow+` AND (expires_at = 0 OR expires_at > %d)`, s.At.UnixMilli()),
		func(r *sql.Rows) error { return r.Scan(&documents, &bytes) })
	if err != nil {
		return 0, 0, fmt.Errorf("store: counting the documents in the database: %w", err)
	}
	return documents, bytes, nil
}

func (s *Snapshot) each(ctx context.Context, query string, each func(*sql.Rows) error) error {
	rows, err := s.source.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// snapshotFile is the end of the name of the copy of an SQLite file. Only one backup runs at a
// time, so a file of this name was left by a process that was killed.
const snapshotFile = "-snapshot"

func (s *Snapshot) ofSQLite(ctx context.Context, path string) error {
	copied := path + snapshotFile
	if err := os.Remove(copied); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// SQLite keeps the mode of an empty file. The default is the umask.
	f, err := os.OpenFile(copied, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	s.close = append(s.close, func() error { return os.Remove(copied) })
	source, err := sql.Open("sqlite", sqliteName(path, "deferred", fmt.Sprintf("busy_timeout(%d)", sqliteWait.Milliseconds())))
	if err != nil {
		return err
	}
	_, err = source.ExecContext(ctx, "VACUUM INTO $1", copied)
	if err = errors.Join(err, source.Close()); err != nil {
		return err
	}
	pool, err := sql.Open("sqlite", sqliteName(copied, "deferred", "query_only(1)"))
	if err != nil {
		return err
	}
	s.source = pool
	s.close = append(s.close, pool.Close)
	s.write = func(_ context.Context, w io.Writer) error {
		f, err := os.Open(copied)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	}
	return nil
}

func (s *Snapshot) ofPostgres(ctx context.Context, p postgres) error {
	dump, err := programOf("pg_dump")
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*p.migrate)
	s.close = append(s.close, pool.Close)
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	s.source = tx
	s.close = append(s.close, tx.Rollback)
	// The transaction waits for pg_dump, and for the documents.
	if _, err := tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return err
	}
	var name string
	if err := tx.QueryRowContext(ctx, "SELECT pg_export_snapshot()").Scan(&name); err != nil {
		return err
	}
	s.write = func(ctx context.Context, w io.Writer) error {
		// Without the versions nothing starts over a database that was restored in part.
		return p.run(ctx, dump, nil, w, "--format=custom", "--snapshot="+name, "--exclude-table-data="+versionTable)
	}
	return nil
}

// programOf returns the path of a program of PostgreSQL.
func programOf(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is missing: install the client programs of PostgreSQL, of the version of the server or later (Debian: postgresql-client): %w", name, err)
	}
	return path, nil
}

// libpq lists the parameters of an address that are passed to programs of PostgreSQL. The
// others are settings of our sessions.
var libpq = []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslpassword", "host", "port", "user", "dbname", "target_session_attrs", "connect_timeout", "channel_binding", "gssencmode", "krbsrvname", "passfile", "service"}

// mostSaid bounds the text of a program in an error.
const mostSaid = 2 << 10

// run runs a program of PostgreSQL for the database of p. The password is not among its
// arguments, which other users can see.
func (p postgres) run(ctx context.Context, program string, in io.Reader, out io.Writer, args ...string) error {
	address, err := url.Parse(p.address)
	if err != nil {
		return errors.New("the address of the database is not a URL")
	}
	environment := append(os.Environ(), "PGAPPNAME=tamga")
	if password, given := address.User.Password(); given {
		address.User = url.User(address.User.Username())
		environment = append(environment, "PGPASSWORD="+password)
	}
	query := address.Query()
	for name, values := range query {
		switch {
		case name == "password":
			environment = append(environment, "PGPASSWORD="+values[0])
			fallthrough
		case !slices.Contains(libpq, name):
			query.Del(name)
		}
	}
	address.RawQuery = query.Encode()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append(args, "--dbname="+address.String())...)
	if home := homeOf(p.owner); home != "" {
		environment = append(environment, "HOME="+home)
	}
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environment, in, out, &said
	if p.owner != nil {
		p.owner.as(cmd)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(legibleText(string(said.Bytes()[:min(said.Len(), mostSaid)]))))
	}
	return nil
}

// Note records a backup that is whole, and forgets those of more than a year ago.
func (s Backups) Note(ctx context.Context, id string, taken, finished time.Time, documents, bytes int64) error {
	return s.Unit(ctx, func(ctx context.Context) error {
		if _, err := s.exec(ctx, "DELETE FROM backups WHERE taken_at < $1", millis(taken.AddDate(-1, 0, 0))); err != nil {
			return err
		}
		_, err := s.exec(ctx, "INSERT INTO backups (id, taken_at, finished_at, documents, bytes) VALUES ($1, $2, $3, $4, $5)", id, millis(taken), millis(finished), documents, bytes)
		return err
	})
}
