// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"strings"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/user"
)

// TestEncodingOfSessions checks that the program chooses how its sessions read texts, whatever the
// database and the address say.
func TestEncodingOfSessions(t *testing.T) {
	cluster := storetest.PostgreSQL(t)
	url := cluster.Database(t)
	pool := server(t, url)
	for _, setting := range []string{"client_encoding = 'KOI8R'", "standard_conforming_strings = off"} {
		exec(t, pool, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+strings.ReplaceAll(setting, "'", "''")+`', current_database()); END $$`)
	}
	for _, more := range []string{"", "&client_encoding=LATIN1&standard_conforming_strings=off"} {
		db := storetest.Open(t, url+more)
		for what, read := range map[string]string{
			"sessions":   store.SessionSettings(t, db, "client_encoding", "standard_conforming_strings"),
			"migrations": store.MigrationSettings(t, db, "client_encoding", "standard_conforming_strings"),
		} {
			if read != "UTF8 on" {
				t.Errorf("%q: %s have %s, want UTF8 on", more, what, read)
			}
		}
		name := `\😀` + more
		if err := (store.Users{DB: db}).AddGroup(t.Context(), user.Group{Name: name}); err != nil {
			t.Error(err)
		}
		if got := groupNames(t, db); !strings.Contains(got, name) {
			t.Errorf("the group %q is stored as %q", name, got)
		}
	}
}

// TestEncodingOfDatabase checks that a database that cannot hold every text is refused, with the
// command that makes another one.
func TestEncodingOfDatabase(t *testing.T) {
	for _, encoding := range []string{"SQL_ASCII", "LATIN5", "KOI8R"} {
		url := storetest.PostgreSQL(t).Database(t, "ENCODING '"+encoding+"' LOCALE 'C' TEMPLATE template0")
		db, err := store.Open(t.Context(), store.Options{URL: url})
		if err == nil {
			db.Close()
		}
		var wrong *store.EncodingError
		if !errors.As(err, &wrong) || wrong.Encoding != encoding || !strings.Contains(err.Error(), "createdb --template=template0 --encoding=UTF8 --lc-collate=C --lc-ctype=C.UTF-8 --owner=tamga "+wrong.Database+"_utf8") {
			t.Errorf("%s: %v", encoding, err)
		}
	}
	odd := store.EncodingError{Database: "it's", Owner: "a b", Encoding: "LATIN1"}
	if got := odd.Command(); !strings.HasSuffix(got, `'--owner=a b' 'it'\''s_utf8'`) {
		t.Errorf("the command for odd names is %s", got)
	}
}
