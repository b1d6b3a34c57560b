// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"database/sql"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// TestResealKilled kills tamga key reseal in the middle of the records of a database, and runs it again.
// What the killed one did stays, the next one does the rest, and the old key is needed no more.
func TestResealKilled(t *testing.T) {
	t.Parallel()
	database := storetest.PostgreSQL(t).Database(t)
	i := initialize(t, "--database", database)
	tamgatest.WriteFile(t, filepath.Join(i.dir, "etc", "secrets", "master-2.key"), strings.Repeat("5a", 32)+"\n")
	one := "  active: \"1\"\n  files:\n    \"1\": \"secrets/master-1.key\"\n"
	text := read(t, i.config)
	if !strings.Contains(text, one) {
		t.Fatalf("the configuration has other lines:\n%s", text)
	}
	tamgatest.WriteFile(t, i.config, strings.Replace(text, one, "  active: \"2\"\n  files:\n    \"1\": \"secrets/master-1.key\"\n    \"2\": \"secrets/master-2.key\"\n", 1))

	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	held, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback()
	// The records of these come after those of the authorities.
	if _, err := held.Exec("SELECT id FROM keys FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	reseal := launch(t, tamgatest.ProcessOf(t, "key", "reseal", "--config", i.config))
	// Other tests use the server too, so only who waits for this transaction counts.
	var holder int
	if err := held.QueryRow("SELECT pg_backend_pid()").Scan(&holder); err != nil {
		t.Fatal(err)
	}
	for waits := 0; waits == 0; runtime.Gosched() {
		select {
		case <-reseal.ended:
			t.Fatalf("it ended: %s", reseal.said.String())
		default:
		}
		if err := db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))", holder).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	reseal.kill()
	under := func(id string) int64 {
		t.Helper()
		s := i.keyStatus()
		if s.Active != "2" {
			t.Errorf("the active key is %s", s.Active)
		}
		for _, k := range s.Keys {
			if k.ID == id {
				return k.Records
			}
		}
		return 0
	}
	if old, moved := under("1"), under("2"); old == 0 || moved == 0 {
		t.Fatalf("%d records are under the old key, %d under the new one: it was not in the middle", old, moved)
	}
	// Both keys open what they have, and new records are under the new one.
	i.run("ca", "list")
	i.issue()
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	i.run("key", "reseal")
	if old := under("1"); old != 0 {
		t.Errorf("%d records are left under the old key", old)
	}
	if again := i.run("key", "reseal"); !strings.Contains(again, "0 ") {
		t.Errorf("with nothing to do it says %s", again)
	}

	tamgatest.WriteFile(t, i.config, strings.ReplaceAll(read(t, i.config), "    \"1\": \"secrets/master-1.key\"\n", ""))
	server := i.serve()
	token, err := i.token(server)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{signingBody(t, i.plain, ""), signingBody(t, i.withPIN, "805173")} {
		if _, err := sign(server, token, body); err != nil {
			t.Errorf("without the old key: %v", err)
		}
	}
}
