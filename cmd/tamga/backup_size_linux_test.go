// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// What backups of large installations may take. The times are those of a calm machine, so only a run with sizes of its own checks
// them: see docs/performance.md.
const (
	backupMemory = 256 << 10 // KiB
	backupTime   = 3 * time.Minute
	restoreTime  = 10 * time.Minute
)

// Settings of the environment, and the sizes without them.
const (
	usersSetting   = "TAMGA_BACKUP_USERS"
	entriesSetting = "TAMGA_BACKUP_ENTRIES"
	fromSetting    = "TAMGA_BACKUP_DATABASE"
	toSetting      = "TAMGA_BACKUP_RESTORE_DATABASE"
	usersShort     = 2_000
	entriesShort   = 20_000
)

// sizeOf returns a number of the environment, and whether it is set.
func sizeOf(t *testing.T, name string, short int) (n int, given bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return short, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: %q is not a number", name, text)
	}
	return n, true
}

// TestBackupOfMany makes a backup of an installation with many users and a long audit log, restores it elsewhere, and compares the
// numbers of rows. It bounds the memory of both commands, and with sizes of its own their time.
func TestBackupOfMany(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		backUpMany(t, "sqlite:"+filepath.Join(dir, "from.db"), "sqlite:"+filepath.Join(dir, "to.db"))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		from, to := os.Getenv(fromSetting), os.Getenv(toSetting)
		if from == "" || to == "" {
			cluster := storetest.PostgreSQL(t)
			from, to = cluster.Database(t), cluster.Database(t)
		}
		backUpMany(t, from, to)
	})
}

func backUpMany(t *testing.T, from, to string) {
	users, timed := sizeOf(t, usersSetting, usersShort)
	entries, _ := sizeOf(t, entriesSetting, entriesShort)
	dir := t.TempDir()
	config := filepath.Join(dir, "tamga.yaml")
	server := &tamgatest.Server{T: t}
	server.MustRun("init", "--yes", "--public-url", "https://sign.example.org", "--config", config, "--database", from)
	crowd := storetest.OpenCrowd(t, from)
	crowd.AddUsers(users)
	user := storetest.CrowdUser(fmt.Sprintf("i %% %d", users))
	now := time.Now().UnixMilli()
	crowd.Copy("audit", "phase = 'done'", entries, map[string]string{
		"id": "", "at": fmt.Sprintf("%d - (%d - i)", now, entries), "request_id": "CAST(i AS TEXT)", "operation": "'SignDocument'", "user_id": user,
		"login": fmt.Sprintf("'user' || CAST(i %% %d AS TEXT)", users), "detail": "'type CAdES, suite gost2012-256, certificate 17'",
	})
	crowd.Settle()

	run := func(what string, most time.Duration, args ...string) {
		t.Helper()
		cmd := tamgatest.ProcessOf(t, append(args, "--config", config)...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended, peak := make(chan bool), make(chan int64)
		go func() { peak <- peakOf(cmd.Process.Pid, ended) }()
		err := cmd.Wait()
		took := time.Since(began).Round(10 * time.Millisecond)
		close(ended)
		memory := <-peak
		if err != nil || memory == 0 {
			t.Fatalf("%s: %v, %d KiB\n%s", what, err, memory, out.String())
		}
		t.Logf("%s of %d users and %d entries: %v, %d MiB, processor %v", what, users, entries, took, memory>>10, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		if memory > backupMemory {
			t.Errorf("%s: %d MiB, want at most %d", what, memory>>10, backupMemory>>10)
		}
		if timed && took > most {
			t.Errorf("%s: %v, want at most %v", what, took, most)
		}
	}
	backup := filepath.Join(dir, "backup")
	run("backup", backupTime, "backup", backup)
	run("restore", restoreTime, "restore", backup, "--set", "database="+to, "--set", "blob_dir="+filepath.Join(dir, "restored"))
	for table, least := range map[string]int{"users": users, "audit": entries, "contacts": 5 * users} {
		if a, b := rowsOf(t, from, table), rowsOf(t, to, table); a < least || b < least || table != "audit" && a != b {
			t.Errorf("%s: %d rows, restored %d, want at least %d", table, a, b, least)
		}
	}
}

// peakOf reads the peak of the resident memory of a process in KiB until it has ended. The figure that the system gives of an ended
// process has the memory of the test that started it, too.
func peakOf(process int, ended <-chan bool) (peak int64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
		if _, rest, found := strings.Cut(string(text), "VmHWM:"); found {
			var n int64
			fmt.Sscan(rest, &n)
			peak = max(peak, n)
		}
		select {
		case <-ended:
			return peak
		case <-tick.C:
		}
	}
}

// rowsOf counts the rows of a table.
func rowsOf(t *testing.T, database, table string) (n int) {
	t.Helper()
	driver := "pgx"
	if file, is := strings.CutPrefix(database, "sqlite:"); is {
		driver, database = "sqlite", file
	}
	db, err := sql.Open(driver, database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
