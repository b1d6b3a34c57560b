// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
)

// TestRestoreVoids restores a snapshot with something of everything that ends with a restore.
func TestRestoreVoids(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			for _, statement := range []string{
				"INSERT INTO user_groups (name, title, created_at) VALUES ('g', '', 0)",
				"INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at) VALUES ('u', 'u', 'u', 'u', 'g', TRUE, FALSE, 0, FALSE, 0)",
				"INSERT INTO access_tokens (id, user_id, client_id, method, scope, actor_id, grant_id, confirmation, second_step, signed_in_at, created_at, expires_at, revoked) VALUES ('t', 'u', '', '', '', '', '', '', FALSE, 0, 0, 9999999999999, FALSE)",
				"INSERT INTO grants (handle, id, secret, user_id, client_id, scope, method, login_only, second_step, signed_in_at, refreshed_at, expires_at) VALUES ('h', 'g', 's', 'u', '', '', '', FALSE, FALSE, 0, 0, 9999999999999)",
				"INSERT INTO authorization_codes (hash, user_id, client_id, redirect_uri, scope, method, thumbprint, granted, login_only, second_step, nonce, challenge, signed_in_at, grant_id, parent_id, ends_at, expires_at, spent_at, token_id) VALUES ('h', 'u', '', '', '', '', '', FALSE, FALSE, FALSE, '', '', 0, '', '', 0, 9999999999999, 0, '')",
				"INSERT INTO devices (kid, user_id, number, not_after, created_at, sealed) VALUES ('k', 'u', 1, 9999999999999, 0, 's')",
				"INSERT INTO device_nonces (kid, hash, expires_at, sealed) VALUES ('k', 'h', 9999999999999, 's')",
				"INSERT INTO processes (id, host, version, active, ids, seen_at) VALUES ('p', '', '', '', '', 9999999999999)",
				"INSERT INTO outbox (message_id, channel, lane, recipient, subject, user_id, actor, sealed, state, attempts, error, lease, leased_until, created_at, due_at, expires_at, done_at) VALUES ('m', '', '', '', '', 'u', '', 's', 'pending', 0, '', 'x', 9999999999999, 0, 0, 9999999999999, 0)",
				"INSERT INTO external_visits (handle, ticket, returns_to, ended, expires_at) VALUES ('h', '', '', FALSE, 9999999999999)",
				"INSERT INTO one_time_codes (user_id, purpose, type, normal, sealed_key, mac, attempts, issued_at, expires_at) VALUES ('u', 'p', 't', 'n', 'k', 'm', 0, 0, 9999999999999)",
				"INSERT INTO confirmation_answers (id, sealed, expires_at) VALUES ('c', 's', 9999999999999)",
				"INSERT INTO device_kinits (user_id, kid, expires_at, sealed) VALUES ('u', 'k', 9999999999999, 's')",
				"INSERT INTO passkey_registrations (user_id, session, name, challenge, expires_at) VALUES ('u', 's', 'n', 'c', 9999999999999)",
				"INSERT INTO oath_tokens (serial_key, serial, type, app, watermark, behind, sealed, failures, locked_until, created_at, assigned_at) VALUES ('H', 'H', 'HOTP', FALSE, 5, FALSE, 's', 0, 0, 0, 0)",
				"INSERT INTO oath_tokens (serial_key, serial, type, app, watermark, behind, sealed, failures, locked_until, created_at, assigned_at) VALUES ('T', 'T', 'TOtp', FALSE, 5, FALSE, 's', 0, 0, 0, 0)",
				"INSERT INTO authorities (name, holder, suite, sealed, certificate, crl, crl_number, crl_at, created_at) VALUES ('a', 'software', '', 's', 'c', 'l', 7, 8, 0)",
				"INSERT INTO answers (caller, name, request, lease, leased_until, head, body, blob, bytes, done_at, expires_at) VALUES ('c', 'begun', 'r', 'x', 0, 'h', 'b', '', 0, 0, 9999999999999), ('c', 'done', 'r', '', 0, 'h', 'b', '9-A.blob', 0, 1, 9999999999999)",
				"INSERT INTO prepared (id, caller, type, job, document, original, bytes, created_at, expires_at, failures, lease, leased_until, spent_at) VALUES ('p', 'c', 't', 'j', 'd', '', 1, 0, 9999999999999, 0, 'x', 9999999999999, 0)",
				"INSERT INTO operations (id, kind, form, purpose, client_id, start_after, confirm_before, answer, user_id, owner, action, state, is_async, parameters, description, documents, plan, secret, contents, bytes, results, callback, code, message, attempts, due_at, lease, leased_until, created_at, updated_at, confirmed_at, completed_at, complete_before, keep_until) VALUES ('o', 'sign', 'operation', 'operation', '', -1, 0, '', 'u', 'w', 'a', 'Confirmed', TRUE, '', '', 'd', 'p', 'p', 'c', 1, '', '', '', '', 0, 5, 'x', 9999999999999, 0, 0, 0, 0, 9999999999999, 0)",
				`INSERT INTO operations (id, kind, form, purpose, client_id, start_after, confirm_before, answer, user_id, owner, action, state, is_async, parameters, description, documents, plan, secret, contents, bytes, results, callback, code, message, attempts, due_at, lease, leased_until, created_at, updated_at, confirmed_at, completed_at, complete_before, keep_until) VALUES
					('later', 'sign', 'operation', 'operation', '', -1, 0, '', 'u', 'w', 'a', 'Completed', TRUE, '', '', 'd', '', '', '', 1, '9-B.blob', '', '', '', 0, 0, '', 0, 0, 0, 0, 5, 5, 9999999999999),
					('repeatable', 'sign', 'operation', 'operation', '', -1, 0, '', 'u', 'w', 'a', 'Completed', FALSE, '', '', 'd', '', '', '', 0, '9-C.blob', '', '', '', 0, 0, '', 0, 0, 0, 0, 5, 9999999999999, 9999999999999),
					('past repeating', 'sign', 'operation', 'operation', '', -1, 0, '', 'u', 'w', 'a', 'Completed', FALSE, '', '', 'd', '', '', '', 0, '5-D.blob', '', '', '', 0, 0, '', 0, 0, 0, 0, 5, 5, 9999999999999)`,
				"INSERT INTO approval_requests (id, operation, object, requester, login, group_names, state, approval, decided_by, created_at, delayed_from, not_before, confirmed_at, expires_at, ended_at, leased_until, digest, sealed) VALUES ('h', 'o', '', 'u', 'u', '[]', 'Approved', TRUE, '', 0, 0, 0, 0, 9999999999999, 0, 0, 'd', 's')",
				"INSERT INTO confirmations (id, ref_id, user_id, client_id, operator, sign_in, purpose, action, documents, what, bytes, state, method, address, label, number, round, sent_at, answer_before, attempts, resends, declined, code, message, created_at, updated_at, confirm_before, confirmed_at, complete_before, due_at, ended_at, origin) VALUES ('c', 'r', 'u', '', '', '', '', '', 0, 'w', 0, 'Confirmed', '', '', '', '', 0, 0, 0, 0, 0, '', '', '', 0, 0, 0, 0, 0, 9999999999999, 0, '')",
				"INSERT INTO documents (id, user_id, state, leased_until, blob, bytes, name, type, parent, linked, extra, size, hash, hash_name, uploaded_at, accessed_at, expires_at) VALUES ('d', 'u', 1, 0, 'documents/d', 1, '', '', '', '', '', 1, 'h', '', 0, 0, 0), ('e', 'u', 1, 0, 'documents/e', 1, '', '', '', '', '', 1, 'h', '', 0, 0, 5), ('f', 'u', 0, 9999999999999, 'documents/f', 1, '', '', '', '', '', 1, 'h', '', 0, 0, 0)",
			} {
				engine.exec(t, url, statement)
			}
			db := open(t, url)
			backups := store.Backups{DB: db}
			now := db.Now()
			hold := func(id string, now time.Time, want bool) {
				t.Helper()
				if held, err := backups.Hold(t.Context(), id, now, now.Add(time.Minute)); err != nil || held != want {
					t.Errorf("hold of %s: %t, %v", id, held, err)
				}
			}
			hold("one", now, true)
			hold("one", now, true)
			hold("two", now, false)
			if held, err := backups.Held(t.Context()); err != nil || !held {
				t.Errorf("held: %t, %v", held, err)
			}
			snapshot, err := backups.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if engine.name == "PostgreSQL" {
				if limit := snapshot.Setting(t, "idle_in_transaction_session_timeout"); limit != "0" {
					t.Errorf("a snapshot ends after %s without a statement, which pg_dump may take", limit)
				}
			}
			var names []string
			if err := snapshot.Blobs(t.Context(), func(name string) error { names = append(names, name); return nil }); err != nil {
				t.Fatal(err)
			}
			if slices.Sort(names); !slices.Equal(names, []string{"9-A.blob", "9-B.blob", "9-C.blob", "documents/d"}) {
				t.Errorf("objects %q", names)
			}
			var dump bytes.Buffer
			if err := errors.Join(snapshot.Write(t.Context(), &dump), snapshot.Close()); err != nil {
				t.Fatal(err)
			}
			hold("two", now.Add(time.Hour), true) // the first one was killed
			if err := backups.Release(t.Context(), "two"); err != nil {
				t.Error(err)
			}
			if held, err := backups.Held(t.Context()); err != nil || held {
				t.Errorf("held after the release: %t, %v", held, err)
			}

			to := engine.empty(t)
			restoring := store.Restoring{Options: store.Options{URL: to}, At: snapshot.At, Versions: snapshot.Versions}
			older := restoring
			older.Versions = older.Versions[:len(older.Versions)-1]
			if err := older.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "restore with the release") {
				t.Errorf("another schema: %v", err)
			}
			if err := restoring.Restore(t.Context(), bytes.NewReader(dump.Bytes()[:dump.Len()-500])); err == nil {
				t.Fatal("a cut snapshot was restored")
			}
			if engine.name == "PostgreSQL" {
				to = engine.empty(t) // pg_restore may have noticed the end late
				restoring.Options.URL = to
			}
			if err := restoring.Restore(t.Context(), &dump); err != nil {
				t.Fatal(err)
			}
			if err := restoring.Check(t.Context()); !errors.Is(err, store.ErrNotEmpty) {
				t.Errorf("a second restore: %v", err)
			}
			restored := open(t, to)
			if err := restored.Migrated(t.Context()); err != nil {
				t.Error(err)
			}
			pool, err := sql.Open(engine.driver, engine.source(to))
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			claims := []string{
				"SELECT COUNT(*) = 0 FROM grants",
				"SELECT COUNT(*) = 0 FROM authorization_codes",
				"SELECT COUNT(*) = 0 FROM device_nonces",
				"SELECT COUNT(*) = 0 FROM processes",
				"SELECT state = 'pending' AND lease = '' AND leased_until = 0 FROM outbox",
				"SELECT released_at = 0 FROM restores",
				"SELECT revoked FROM access_tokens",
				"SELECT COUNT(*) = 0 FROM external_visits",
				"SELECT COUNT(*) = 0 FROM one_time_codes",
				"SELECT COUNT(*) = 0 FROM confirmation_answers",
				"SELECT COUNT(*) = 0 FROM device_kinits",
				"SELECT COUNT(*) = 0 FROM passkey_registrations",
				"SELECT COUNT(*) = 0 FROM backup_holds",
				"SELECT behind FROM oath_tokens WHERE serial_key = 'H'",
				"SELECT NOT behind FROM oath_tokens WHERE serial_key = 'T'",
				"SELECT crl_number = 7 + 1048576 AND crl_at = 0 FROM authorities",
				"SELECT COUNT(*) = 1 FROM answers",
				"SELECT expires_at < 9999999999999 AND leased_until = 0 FROM prepared",
				"SELECT complete_before < 9999999999999 AND due_at = 0 AND lease = '' AND leased_until = 0 FROM operations WHERE id = 'o'",
				"SELECT COUNT(*) = 4 FROM operations",
				"SELECT state = 'Expired' AND ended_at <> 0 FROM approval_requests",
				"SELECT due_at < 9999999999999 FROM confirmations",
				"SELECT COUNT(*) = 1 FROM documents WHERE state = 0 AND leased_until = 0",
				"SELECT COUNT(*) = 1 FROM users",
			}
			for _, claim := range claims {
				var is bool
				if err := pool.QueryRowContext(t.Context(), claim).Scan(&is); err != nil || !is {
					t.Errorf("%s: %t, %v", claim, is, err)
				}
			}
			said := kept
			for _, claim := range claims {
				_, from, _ := strings.Cut(claim, " FROM ")
				said += " " + strings.Fields(from)[0]
			}
			for _, table := range engine.tables(t, to) {
				if !slices.Contains(strings.Fields(said), table) {
					t.Errorf("table %s: say what a restore does to it, or that it is as at the time of the backup", table)
				}
			}
			restores := store.Restores{DB: restored}
			x, closed, err := restores.Closed(t.Context())
			if err != nil || !closed || !x.At.Equal(snapshot.At.UTC().Truncate(time.Millisecond)) {
				t.Errorf("closed: %t, %+v, %v", closed, x, err)
			}
			for _, raised := range []int64{5, 7 + 1<<20 + 9} {
				if err := restores.RaiseCRLNumber(t.Context(), "a", raised); err != nil {
					t.Error(err)
				}
			}
			if states, err := (store.Authority{DB: restored}).States(t.Context()); err != nil || len(states) != 1 || states[0].CRLNumber != 7+1<<20+9 {
				t.Errorf("%+v, %v", states, err)
			}
			operators, err := restores.Operators(t.Context())
			if err != nil || len(operators) != 1 || operators[0].Login != "u" {
				t.Errorf("%+v, %v", operators, err)
			}
			if list, err := restored.Counts(t.Context()); err != nil || list[0] != (store.Count{Name: "users", Count: 1}) {
				t.Errorf("%+v, %v", list, err)
			}
			if err := restores.Open(t.Context()); err != nil {
				t.Error(err)
			}
			if _, closed, err := restores.Closed(t.Context()); err != nil || closed {
				t.Errorf("after the release: %t, %v", closed, err)
			}
		})
	}
}

// kept are tables that a restore leaves as they were at the time of the backup. A table with what begins
// and ends, or with a counter that must not go back, is among the claims of TestRestoreVoids instead.
const kept = `access_policies audit audit_other authority_delegates backups browsers captured_messages certificate_requests
	certificates confirmation_contents confirmation_failures confirmation_pushes confirmation_usage contacts
	cross_certificates default_certificates deleted_keys device_service_keys devices directory_syncs
	directory_unlinked directory_users distinguished_names document_shares exports external_logins former_device_service_keys
	group_policies issued_certificates key_parameters keys lock_stripes login_failures master_keys message_budgets
	migration_lock name_components operator_groups passkeys passwords prepared_shares reports retained schema_versions
	sign_in_certificates signing_keys trust_lists trusted_login_failures trusted_user_failures tsp_services user_failures
	user_groups user_methods user_policies user_texts user_words webhooks`

// tables returns the names of all tables. Partitions are not among them.
func (e engine) tables(t *testing.T, url string) (names []string) {
	t.Helper()
	pool, err := sql.Open(e.driver, e.source(url))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	query := "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	if e.name == "PostgreSQL" {
		query = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
	}
	rows, err := pool.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil || len(names) < 50 {
		t.Fatalf("%q, %v", names, err)
	}
	return names
}

// TestRestoreAfterLeftovers restores where a restore was killed with a write-ahead log, and over a
// database without tables, which a command left. A database with a table stays.
func TestRestoreAfterLeftovers(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "from.db")
	from, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if err := from.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	snapshot, err := store.Backups{DB: from}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := errors.Join(snapshot.Write(t.Context(), &dump), snapshot.Close()); err != nil {
		t.Fatal(err)
	}

	to := filepath.Join(dir, "to.db")
	restoring := store.Restoring{Options: store.Options{URL: "sqlite:" + to}, At: snapshot.At, Versions: snapshot.Versions}
	// The log of a process that was killed is whole. The salts in it are those of its own header.
	other, err := sql.Open("sqlite", filepath.Join(dir, "other.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	for _, statement := range []string{"PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "CREATE TABLE leftover (x)"} {
		if _, err := other.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	wal, err := os.ReadFile(filepath.Join(dir, "other.db-wal"))
	if err != nil || len(wal) == 0 {
		t.Fatalf("%d bytes, %v", len(wal), err)
	}
	for name, text := range map[string][]byte{"to.db-restoring": []byte("half"), "to.db-restoring-wal": wal} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty, err := store.Open(t.Context(), restoring.Options) // makes the file
	if err != nil {
		t.Fatal(err)
	}
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Size() == 0 {
		t.Fatalf("no file without tables: %v", err)
	}
	if err := restoring.Restore(t.Context(), bytes.NewReader(dump.Bytes())); err != nil {
		t.Fatal(err)
	}
	if err := open(t, restoring.Options.URL).Migrated(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(to + "-restoring*"); err != nil || len(left) > 0 {
		t.Errorf("%q was left, %v", left, err)
	}
	if err := restoring.Check(t.Context()); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("a second restore: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("a file of another program"), 0o600); err != nil {
		t.Fatal(err)
	}
	restoring.Options.URL = "sqlite:" + filepath.Join(dir, "text")
	if err := restoring.Check(t.Context()); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("over a file of another program: %v", err)
	}
}
