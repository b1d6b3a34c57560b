// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// TestBackupKept makes backups with --keep, verifies them without an installation, damages one, and looks for the age
// in the metrics.
func TestBackupKept(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); keepBackups(t) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		keepBackups(t, "--set", "database="+storetest.PostgreSQL(t).Database(t))
	})
}

func keepBackups(t *testing.T, flags ...string) {
	p := tamgatest.Start(t, flags...)
	dir := filepath.Join(t.TempDir(), "backups")
	// Two of earlier days, one of which is not whole, and what an administrator keeps there.
	for _, name := range []string{"2020-01-01T000000Z/SHA256SUMS", "2020-01-02T000000Z/SHA256SUMS", "2020-01-03T000000Z/other", "before-the-move/SHA256SUMS"} {
		tamgatest.WriteFile(t, filepath.Join(dir, name), "")
	}
	out := p.Command("backup", dir, "--keep", "2")
	names := tamgatest.Listing(t, dir)
	var made string
	for _, name := range names {
		if m := regexp.MustCompile(`^2[0-9]{3}-[0-9-]{5}T[0-9]{6}Z`).FindString(name); m > made {
			made = m
		}
	}
	all := strings.Join(names, " ")
	if !strings.Contains(out, "Removed: "+filepath.Join(dir, "2020-01-01T000000Z")) || strings.Contains(all, "2020-01-01T") ||
		!strings.Contains(all, "2020-01-02T") || !strings.Contains(all, "2020-01-03T") || !strings.Contains(all, "before-the-move") {
		t.Errorf("it prints %s, and leaves %q", out, names)
	}
	backup := filepath.Join(dir, made)
	r := tamgatest.Run(t.Context(), "", "backup", "verify", backup)
	if r.Code != 0 || !strings.Contains(r.Out, "is whole") {
		t.Errorf("verifying: %v\n%s", r.Failure, r.Out)
	}
	for end := time.Now().Add(tamgatest.Patience); ; time.Sleep(10 * time.Millisecond) {
		_, scrape := get(t, p.URL+"/metrics")
		if m := regexp.MustCompile(`(?m)^tamga_backup_taken_seconds ([1-9]\S*)$`).FindSubmatch(scrape); m != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no backup in\n%s", scrape)
		}
	}
	// Damage that has checksums of its own, as of a broken disk.
	file := filepath.Join(backup, "database")
	if err := os.Truncate(file, 3000); err != nil {
		t.Fatal(err)
	}
	if r := tamgatest.Run(t.Context(), "", "backup", "verify", backup); r.Code != 1 || !strings.Contains(r.Failure.Error(), "database") {
		t.Errorf("a truncated file: %v", r.Failure)
	}
}

// TestAdopt puts a database back by its file, as a snapshot of a disk does. No server starts over it until it is
// adopted, and then it is closed as after a restore.
func TestAdopt(t *testing.T) {
	t.Parallel()
	i := initializeEmpty(t)
	file, spool := filepath.Join(i.dir, "data", "tamga.db"), filepath.Join(i.dir, "data", "spool")
	before := tamgatest.ReadFile(t, file)
	taken := time.Now().UTC()
	i.run("group", "add", "Later")
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + file, Limits: store.CommandLimits})
	if err != nil {
		t.Fatal(err)
	}
	newest, err := store.Audit{DB: db}.Newest(t.Context())
	if err != nil || newest.ID == 0 {
		t.Fatalf("%+v, %v", newest, err)
	}
	db.Close()
	text, err := json.Marshal(newest)
	if err != nil {
		t.Fatal(err)
	}
	tamgatest.WriteFile(t, filepath.Join(spool, "seen.json"), string(text))
	i.serve().Stop() // the entry is there

	for _, end := range []string{"-wal", "-shm"} {
		os.Remove(file + end)
	}
	tamgatest.WriteFile(t, file, string(before))
	if r := i.try("serve"); r.Code != 1 || !strings.Contains(r.Failure.Error(), "older than what this machine has seen") || !strings.Contains(r.Failure.Error(), "tamga restore adopt") {
		t.Fatalf("a server over the database that was put back: %v", r.Failure)
	}
	if r := i.try("restore", "adopt", "--taken-at", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)); r.Code != 1 || !strings.Contains(r.Failure.Error(), "--taken-at") {
		t.Errorf("a time that comes: %v", r.Failure)
	}
	i.run("restore", "adopt", "--taken-at", taken.Format(time.RFC3339))
	s := i.serve()
	if status, parts := readyBody(t, s); status != 503 || parts["release"] != "unavailable" {
		t.Errorf("after the adoption: %d %v", status, parts)
	}
	if r := i.try("restore", "adopt", "--taken-at", taken.Format(time.RFC3339)); r.Code != 1 {
		t.Error("it is adopted twice")
	}
	i.run("restore", "release", "--yes")
	released(t, s)
}
