// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// embedded returns the migrations of this program.
func embedded(t *testing.T, e engine) []migration {
	t.Helper()
	list, err := (&DB{engine: e}).migrations()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestWordsOfMigrations checks that no {{word}} is left in a statement.
func TestWordsOfMigrations(t *testing.T) {
	for engine := range migrationWords {
		for _, m := range embedded(t, engine) {
			for _, s := range m.statements {
				if strings.Contains(s.text, "{{") {
					t.Errorf("engine %d: %s has %q", engine, m.name, s.text)
				}
			}
		}
	}
}

func TestReadMigrations(t *testing.T) {
	for _, c := range []struct {
		text  string
		alone bool
		want  []string
	}{
		{"", false, nil},
		{"-- a comment + more\n", false, nil},
		{"A; B;\nC", false, []string{"A", "B", "C"}},
		{"A 'x;''y' \";\";B;", false, []string{"A 'x;''y' \";\"", "B"}},
		{"A -- ; 'comment\n B;", false, []string{"A \n B"}},
		{"A /* ; */ B;", false, []string{"A   B"}},
		{"DO $$ a; 'b; $x$; $$; SELECT $1; DO $x$ ; $$ $x$;", false, []string{"DO $$ a; 'b; $x$; $$", "SELECT $1", "DO $x$ ; $$ $x$"}},
		{"-- +no transaction\nA;\n-- +portions\nB;C;", true, []string{"A", "B*", "C"}},
		{"{{sqlite}}A;\n{{postgres}}B;\n{{postgres}}-- +no transaction", true, []string{"B"}},
	} {
		list, err := readMigrations(fstest.MapFS{"0007_x.sql": {Data: []byte(c.text)}}, postgresEngine)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		var got []string
		for _, s := range list[0].statements {
			text := s.text
			if s.portions {
				text += "*"
			}
			got = append(got, text)
		}
		if list[0].version != 7 || list[0].alone != c.alone || !slices.Equal(got, c.want) {
			t.Errorf("%q: version %d, alone %t, %q; want 7, %t, %q", c.text, list[0].version, list[0].alone, got, c.alone, c.want)
		}
	}
	for _, files := range []fs.FS{
		fstest.MapFS{"x_1.sql": {}},
		fstest.MapFS{"0000_x.sql": {}},
		fstest.MapFS{"0001_x.sql": {}, "01_y.sql": {}},
		fstest.MapFS{"0001_x.sql": {Data: []byte("A 'x;")}},
		fstest.MapFS{"0001_x.sql": {Data: []byte("A /* x;")}},
		fstest.MapFS{"0001_x.sql": {Data: []byte("-- +portions\nA;")}},
		fstest.MapFS{"0001_x.sql": {Data: []byte("-- +goose NO TRANSACTION\nA;")}},
		fstest.MapFS{"0001_x.sql": {Data: []byte("-- +no transaction\nA;\n-- +portions\n")}},
	} {
		if list, err := readMigrations(files, postgresEngine); err == nil {
			t.Errorf("%v: read as %v", files, list)
		}
	}
}

// TestPatient checks which statements wait for a lock for as long as it takes: only those that others
// pass. The manual of PostgreSQL, 13.3.1, has their locks.
func TestPatient(t *testing.T) {
	for text, want := range map[string]bool{
		"CREATE INDEX CONCURRENTLY IF NOT EXISTS a_n ON a (n)":                   true,
		"CREATE UNIQUE INDEX CONCURRENTLY a_n ON a (n)":                          true,
		"DROP INDEX CONCURRENTLY IF EXISTS a_n":                                  true,
		"ALTER TABLE a\n\tVALIDATE CONSTRAINT positive":                          true,
		"ALTER TABLE a VALIDATE CONSTRAINT positive, ADD COLUMN x TEXT":          false,
		"ALTER TABLE a ADD COLUMN x TEXT":                                        false,
		"ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY":                         false,
		"CREATE INDEX a_n ON a (n)":                                              false,
		"DROP INDEX a_n":                                                         false,
		"DO $$ BEGIN EXECUTE 'CREATE INDEX CONCURRENTLY a_n ON a (n)'; END $$":   false,
		"UPDATE a SET n = 0 WHERE id IN (SELECT id FROM a WHERE n = 1 LIMIT 10)": false,
	} {
		if got := patient.MatchString(text); got != want {
			t.Errorf("%s: patient %t, want %t", text, got, want)
		}
	}
}
