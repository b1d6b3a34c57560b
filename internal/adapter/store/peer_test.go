// SPDX-License-Identifier: Apache-2.0

//go:build linux

package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
)

// TestPeer checks that root connects to a socket as the user of the system that has the name of the role, and so
// do the programs of PostgreSQL that make a backup.
func TestPeer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root connects as another user")
	}
	const role = "daemon"
	g := storetest.GuardedPostgreSQL(t)
	address := g.Owned(t, role, "a password")
	for _, c := range []struct{ name, address string }{{"socket", address.Socket}, {"TLS", address.TCP}} {
		db, err := store.Open(t.Context(), store.Options{URL: c.address, Limits: store.CommandLimits})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		defer db.Close()
		if err := db.Migrate(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		dump(t, db)
	}
	if _, err := store.Open(t.Context(), store.Options{URL: g.Socket("games", ""), Limits: store.CommandLimits}); err == nil {
		t.Error("a user of the system without a role connects")
	}
}

func dump(t *testing.T, db *store.DB) {
	t.Helper()
	s, err := store.Backups{DB: db}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.Write(t.Context(), &out); err != nil || !bytes.HasPrefix(out.Bytes(), []byte("PGDMP")) {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestBackupHome checks that pg_dump finds nothing in the home directory of another user, such as the root who
// started the command. Not parallel: it changes the environment.
func TestBackupHome(t *testing.T) {
	g := storetest.GuardedPostgreSQL(t)
	address := g.Owned(t, "daemon", "a password")
	home := t.TempDir()
	for _, name := range []string{"postgresql.crt", "postgresql.key", "root.crt"} {
		if err := os.MkdirAll(filepath.Join(home, ".postgresql", name), 0o700); err != nil { // cannot be read as a file
			t.Fatal(err)
		}
	}
	db, err := store.Open(t.Context(), store.Options{URL: address.TCP, Limits: store.CommandLimits})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	dump(t, db)
}
