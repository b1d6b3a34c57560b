// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"
	"testing"
)

// SessionSettings returns settings of a session of the pool.
func SessionSettings(t testing.TB, db *DB, names ...string) string {
	t.Helper()
	var values []string
	for _, name := range names {
		v, _, err := one(t.Context(), db, scalar[string], "SELECT current_setting($1)", name)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return strings.Join(values, " ")
}

// MigrationSettings returns settings of a session that migrates.
func MigrationSettings(t testing.TB, db *DB, names ...string) string {
	t.Helper()
	m, err := db.database.migrating(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.end()
	var values []string
	for _, name := range names {
		var v string
		if err := m.pool.QueryRowContext(t.Context(), "SELECT current_setting($1)", name).Scan(&v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return strings.Join(values, " ")
}
