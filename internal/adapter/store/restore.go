// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/files"
)

// Restoring is a snapshot that Restore writes into an empty database.
type Restoring struct {
	Options  Options
	At       time.Time // Snapshot.At
	Versions []int64   // Snapshot.Versions
	Program  string    // version of the program that made the snapshot, for errors
}

// ErrNotEmpty is wrapped by the error of a restore over a database that has something in it.
var ErrNotEmpty = errors.New("the database is not empty: restore into a new one")

// Check reports why the snapshot cannot be restored, before anything is written.
func (r Restoring) Check(ctx context.Context) error {
	if path, is := strings.CutPrefix(r.Options.URL, "sqlite:"); is {
		if empty, err := r.noTables(ctx, path); err != nil {
			return fmt.Errorf("store: %w", err)
		} else if !empty {
			return fmt.Errorf("store: %s: %w", path, ErrNotEmpty)
		}
		return r.known(sqliteEngine)
	}
	if err := r.known(postgresEngine); err != nil {
		return err
	}
	if _, err := programOf("pg_restore"); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	db, err := Open(ctx, r.Options)
	if err != nil {
		return err
	}
	n, _, err := one(ctx, db, scalar[int64], "SELECT COUNT(*) FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace")
	if err = errors.Join(err, db.Close()); err == nil && n > 0 {
		err = fmt.Errorf("store: %w", ErrNotEmpty)
	}
	return err
}

// noTables reports whether there is no file of the database, or one without tables. Each command makes
// such a file.
func (r Restoring) noTables(ctx context.Context, path string) (bool, error) {
	for _, end := range []string{"-wal", ""} {
		info, err := os.Stat(path + end)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			continue
		}
		if err != nil || end != "" { // a process has the file open, or was killed with it
			return false, err
		}
		db, err := Open(ctx, r.Options)
		if err != nil {
			return false, nil // a file of another program
		}
		n, _, err := one(ctx, db, scalar[int64], "SELECT COUNT(*) FROM sqlite_master")
		return n == 0, errors.Join(err, db.Close())
	}
	return true, nil
}

// known returns an error unless the snapshot has the schema of this program.
func (r Restoring) known(e engine) error {
	list, err := (&DB{engine: e}).migrations()
	if err != nil {
		return err
	}
	want := make([]int64, len(list))
	for i, m := range list {
		want[i] = m.version
	}
	if !slices.Equal(r.Versions, want) {
		have := slices.Max(append([]int64{0}, r.Versions...))
		return fmt.Errorf("store: the backup has schema version %d, this program has %d: restore with the release that made the backup (%s), then update", have, want[len(want)-1], cmp.Or(r.Program, "unknown"))
	}
	return nil
}

// Restore writes the snapshot into an empty database and closes the service (see Restores). A
// restore that fails leaves a database that no process starts with.
func (r Restoring) Restore(ctx context.Context, snapshot io.Reader) error {
	if err := r.Check(ctx); err != nil {
		return err
	}
	var err error
	if path, is := strings.CutPrefix(r.Options.URL, "sqlite:"); is {
		err = r.sqlite(ctx, path, snapshot)
	} else {
		err = r.postgres(ctx, snapshot)
	}
	if err != nil {
		return fmt.Errorf("store: restoring the database: %w", err)
	}
	return nil
}

// sqlite finishes the file under another name, so that the database is there when it is
// closed.
func (r Restoring) sqlite(ctx context.Context, path string, snapshot io.Reader) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	part := path + "-restoring"
	// A restore that was killed may have left a write-ahead log, which SQLite would apply to the new file.
	clean := func() (err error) {
		for _, end := range []string{"", "-wal", "-shm"} {
			if removed := os.Remove(part + end); !errors.Is(removed, fs.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
		return err
	}
	if err := clean(); err != nil {
		return err
	}
	defer clean() // nothing is left after a success
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, snapshot)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := checkLength(part); err != nil {
		return err
	}
	o := r.Options
	o.URL = "sqlite:" + part
	db, err := Open(ctx, o)
	if err != nil {
		return err
	}
	err = db.checkFile(ctx)
	if err == nil {
		err = db.Migrated(ctx)
	}
	if err == nil {
		err = db.Atomic(ctx, func(ctx context.Context) error { return r.close(ctx, db) })
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if info, err := os.Stat(part + "-wal"); err == nil && info.Size() > 0 {
		return errors.New("the restored file has an unfinished write-ahead log: another process has it open")
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(path))
}

// checkLength returns an error if a file is shorter than its header says: SQLite reads zeros
// there. The fields are in section 1.3 of the file format.
func checkLength(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var head [32]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || string(head[:16]) != "SQLite format 3\x00" {
		return errors.New("not a database of SQLite")
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	if want := page * int64(binary.BigEndian.Uint32(head[28:])); info.Size() != want {
		return fmt.Errorf("the file has %d bytes, want %d", info.Size(), want)
	}
	return nil
}

// checkFile returns an error if the file of the database is damaged.
func (db *DB) checkFile(ctx context.Context) error {
	text, _, err := one(ctx, db, scalar[string], "PRAGMA quick_check(1)")
	if err == nil && text != "ok" {
		err = fmt.Errorf("the file is damaged: %s", text)
	}
	return err
}

// postgres restores all but the versions in one transaction. The versions are written in the
// transaction that closes the service, so no process starts before.
func (r Restoring) postgres(ctx context.Context, snapshot io.Reader) error {
	program, err := programOf("pg_restore")
	if err != nil {
		return err
	}
	db, err := Open(ctx, r.Options)
	if err != nil {
		return err
	}
	err = db.database.(postgres).run(ctx, program, snapshot, io.Discard, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
	if err == nil {
		err = db.Atomic(ctx, func(ctx context.Context) error {
			for _, version := range r.Versions {
				if _, err := db.exec(ctx, "INSERT INTO "+versionTable+" (version, applied_at) VALUES ($1, $2)", version, millis(db.Now())); err != nil {
					return err
				}
			}
			return r.close(ctx, db)
		})
		if err != nil {
			err = fmt.Errorf("drop the database, create it again and repeat: %w", err)
		}
	}
	return errors.Join(err, db.Close())
}

// numberGap is how far a restore moves the numbers of revocation lists. No authority makes so
// many lists between a backup and its restore.
const numberGap = 1 << 20

// closing are the changes of a restore. $1 is the present time.
var closing = []string{
	"DELETE FROM backup_holds",
	"DELETE FROM processes", // none of them runs here
	// What signs a user in.
	"UPDATE access_tokens SET revoked = TRUE WHERE NOT revoked",
	"DELETE FROM grants",
	"DELETE FROM authorization_codes",
	"DELETE FROM external_visits",
	"DELETE FROM one_time_codes",
	"DELETE FROM confirmation_answers",
	"DELETE FROM device_kinits",
	"DELETE FROM device_nonces",
	"DELETE FROM passkey_registrations",
	// What was begun. Sweeps end these records as they end others whose time is over.
	"UPDATE confirmations SET due_at = CASE WHEN due_at > $1 THEN $1 ELSE due_at END WHERE ended_at = 0",
	"UPDATE operations SET complete_before = CASE WHEN complete_before > $1 THEN $1 ELSE complete_before END, due_at = 0, " + freed + " WHERE keep_until = 0",
	"UPDATE prepared SET expires_at = CASE WHEN expires_at > $1 THEN $1 ELSE expires_at END, " + freed + " WHERE spent_at = 0",
	"UPDATE documents SET leased_until = 0 WHERE state = 0",
	"UPDATE approval_requests SET state = 'Expired', ended_at = $1, leased_until = 0 WHERE ended_at = 0",
	"DELETE FROM answers WHERE done_at = 0",
	// Leases of processes of before.
	"UPDATE outbox SET " + freed + " WHERE lease <> ''",
	// Counters that have gone back. A list of time 0 is made anew.
	"UPDATE oath_tokens SET behind = TRUE WHERE type = 'HOTP'",
	fmt.Sprintf("UPDATE authorities SET crl_number = crl_number + %d, crl_at = 0", numberGap),
}

// Adopt is the end of a restore that the database did by its own means.
func (r Restoring) Adopt(ctx context.Context, db *DB) error {
	return db.Atomic(ctx, func(ctx context.Context) error { return r.close(ctx, db) })
}

// VerifySnapshot checks the form of a snapshot without a database: for SQLite that the file is whole, sound and has
// the tables, for PostgreSQL that pg_restore reads all of it.
func VerifySnapshot(ctx context.Context, engine string, versions []int64, snapshot io.Reader) error {
	dir, err := os.MkdirTemp("", "tamga-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if engine == "sqlite" {
		path := filepath.Join(dir, "database")
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, snapshot)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if err := checkLength(path); err != nil {
			return err
		}
		db, err := Open(ctx, Options{URL: "sqlite:" + path, Limits: CommandLimits})
		if err != nil {
			return err
		}
		err = db.checkFile(ctx)
		if err == nil {
			var have []int64
			have, err = db.applied(ctx)
			slices.Sort(have)
			if err == nil && !slices.Equal(have, versions) {
				err = fmt.Errorf("it has the migrations %v, the manifest names %v", have, versions)
			}
		}
		return errors.Join(err, db.Close())
	}
	program, err := programOf("pg_restore")
	if err != nil {
		return err
	}
	// All of the archive is read: it becomes the text of a script.
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--file=-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = snapshot, io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(legibleText(string(said.Bytes()[:min(said.Len(), mostSaid)]))))
	}
	return nil
}

// close voids what must not outlive a restore, and closes the service.
func (r Restoring) close(ctx context.Context, db *DB) error {
	now := millis(db.Now())
	for _, query := range closing {
		var args []any
		if strings.Contains(query, "$1") {
			args = []any{now}
			query = strings.ReplaceAll(query, "$1", "CAST($1 AS BIGINT)")
		}
		if _, err := db.exec(ctx, query, args...); err != nil {
			return err
		}
	}
	_, err := db.exec(ctx, "INSERT INTO restores (id, taken_at, restored_at, released_at) VALUES ($1, $2, $3, 0)", uuid.NewString(), millis(r.At), now)
	return err
}

// Restores stores the restores of the database from backups.
type Restores struct{ *DB }

// Restored is a restore that waits for its release. Until then the service is closed.
type Restored struct {
	ID string    `json:"id"`
	At time.Time `json:"taken_at"`    // of the snapshot: what was done later is unknown
	By time.Time `json:"restored_at"` // of the restore
}

// Closed returns the restore that closes the service. It reports false if the service is open.
func (s Restores) Closed(ctx context.Context) (Restored, bool, error) {
	return one(ctx, s.DB, func(r row) (x Restored, err error) {
		err = r.Scan(&x.ID, (*timeField)(&x.At), (*timeField)(&x.By))
		return x, err
	}, "SELECT id, taken_at, restored_at FROM restores WHERE released_at = 0 ORDER BY restored_at DESC LIMIT 1")
}

// Open opens the service: it releases all restores.
func (s Restores) Open(ctx context.Context) error {
	_, err := s.exec(ctx, "UPDATE restores SET released_at = $1 WHERE released_at = 0", millis(s.Now()))
	return err
}

// RaiseCRLNumber makes the next revocation list of an authority have a greater number than
// published.
func (s Restores) RaiseCRLNumber(ctx context.Context, authority string, published int64) error {
	_, err := s.exec(ctx, "UPDATE authorities SET crl_number = $2, crl_at = 0 WHERE name = $1 AND crl_number < $2", authority, published)
	return err
}

// Count is a number of records whose changes after a snapshot are unknown.
type Count struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// counted are the queries of Counts, in the order of a report.
var counted = []struct{ name, query string }{
	{"users", "SELECT COUNT(*) FROM users"},
	{"locked users", "SELECT COUNT(*) FROM users WHERE locked"},
	{"operators", "SELECT COUNT(*) FROM users WHERE operator"},
	{"passwords", "SELECT COUNT(*) FROM passwords"},
	{"sign-in certificates", "SELECT COUNT(*) FROM sign_in_certificates"},
	{"external logins", "SELECT COUNT(*) FROM external_logins"},
	{"contacts", "SELECT COUNT(*) FROM contacts"},
	{"mobile devices", "SELECT COUNT(*) FROM devices WHERE user_id IS NOT NULL"},
	{"one-time password tokens", "SELECT COUNT(*) FROM oath_tokens WHERE user_id IS NOT NULL"},
	{"tokens to synchronize", "SELECT COUNT(*) FROM oath_tokens WHERE user_id IS NOT NULL AND behind"},
	{"keys with a PIN", "SELECT COUNT(*) FROM keys WHERE has_pin"},
	{"certificates", "SELECT COUNT(*) FROM certificates"},
	{"revoked certificates", "SELECT COUNT(*) FROM issued_certificates WHERE revoked_at <> 0"},
	{"certificate requests that wait", "SELECT COUNT(*) FROM certificate_requests WHERE status = 2"},
	{"documents", "SELECT COUNT(*) FROM documents WHERE state = 1"},
	{"webhooks", "SELECT COUNT(*) FROM webhooks"},
	{"messages that are held", "SELECT COUNT(*) FROM outbox WHERE state = 'pending'"},
	{"callbacks that are held", "SELECT COUNT(*) FROM outbox WHERE state = 'pending' AND channel = 'Callback'"},
}

// Counts counts the records of the installation.
func (db *DB) Counts(ctx context.Context) ([]Count, error) {
	list := make([]Count, 0, len(counted))
	for _, c := range counted {
		n, _, err := one(ctx, db, scalar[int64], c.query)
		if err != nil {
			return nil, err
		}
		list = append(list, Count{c.name, n})
	}
	return list, nil
}

// Operator is an operator in a report.
type Operator struct {
	Login  string `json:"login"`
	Locked bool   `json:"locked"`
	Groups string `json:"groups"`
}

// Operators returns all operators, by login.
func (s Restores) Operators(ctx context.Context) ([]Operator, error) {
	return all(ctx, s.DB, func(r row) (o Operator, err error) {
		err = r.Scan(&o.Login, &o.Locked, &o.Groups)
		return o, err
	}, `SELECT u.login, u.locked, COALESCE((SELECT STRING_AGG(g.group_name, ', ') FROM operator_groups g WHERE g.user_id = u.id), '')
		FROM users u WHERE u.operator ORDER BY u.login_folded`)
}
