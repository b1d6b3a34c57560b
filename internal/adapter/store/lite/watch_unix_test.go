// SPDX-License-Identifier: Apache-2.0

//go:build unix

package lite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWatch checks that the state changes with each commit of any connection, and with nothing else.
func TestWatch(t *testing.T) {
	c, path := open(t, "journal_mode(WAL)")
	run(t, c, "CREATE TABLE t (x)")
	w, err := OpenWatch(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[State]bool{}
	state := func() State {
		t.Helper()
		s, ok := w.State()
		if !ok {
			t.Fatal("the state is not known")
		}
		return s
	}
	other := again(t, path, 0)
	for i := range 20 {
		s := state()
		if seen[s] {
			t.Fatalf("commit %d does not show", i)
		}
		seen[s] = true
		from := []*Conn{c, other}[i%2]
		var n int
		if err := scan(from, "SELECT COUNT(*) FROM t", nil, &n); err != nil || n != i {
			t.Fatal(n, err)
		}
		run(t, from, "BEGIN IMMEDIATE")
		run(t, from, "INSERT INTO t VALUES ($1)", strings.Repeat("x", 10_000))
		if state() != s {
			t.Fatal("a transaction shows before its commit")
		}
		if i%5 == 4 {
			run(t, from, "ROLLBACK")
			if state() != s {
				t.Fatal("a transaction that was undone shows")
			}
			run(t, from, "INSERT INTO t VALUES ($1)", i)
			continue
		}
		run(t, from, "COMMIT")
	}
	// A checkpoint changes where the content is. The next commit begins the log again.
	if err := scan(c, "PRAGMA wal_checkpoint(TRUNCATE)", nil, new(int), new(int), new(int)); err != nil {
		t.Fatal(err)
	}
	before := state()
	run(t, other, "INSERT INTO t VALUES (1)")
	if s := state(); s == before || seen[s] {
		t.Error("a commit after a checkpoint does not show")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestWatchRefuses checks files without a log, and headers of an unknown form.
func TestWatchRefuses(t *testing.T) {
	_, path := open(t, "journal_mode(DELETE)")
	for path, want := range map[string]string{path: "want wal", filepath.Join(t.TempDir(), "none", "none"): ""} {
		w, err := OpenWatch(path, 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is watched: %v", path, err)
		}
		if _, known := w.State(); known {
			t.Errorf("%s has a state", path)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}

	c, path := open(t, "journal_mode(WAL)")
	run(t, c, "CREATE TABLE t (x)")
	w, err := OpenWatch(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	good, ok := w.State()
	if !ok {
		t.Fatal("the state is not known")
	}
	for name, change := range map[string]func(h *[2 * len(State{})]uint64){
		"another format":  func(h *[2 * len(State{})]uint64) { h[0]++; h[len(State{})]++ },
		"not initialized": func(h *[2 * len(State{})]uint64) { h[1] = 0; h[len(State{})+1] = 0 },
		"being written":   func(h *[2 * len(State{})]uint64) { h[len(State{})+2]++ },
	} {
		var head [2 * len(State{})]uint64
		copy(head[:], good[:])
		copy(head[len(good):], good[:])
		if s, ok := (&Watch{head: &head}).State(); !ok || s != good {
			t.Fatal("an unchanged header is refused")
		}
		change(&head)
		if _, ok := (&Watch{head: &head}).State(); ok {
			t.Errorf("a header that is %s is a state", name)
		}
	}
}

// TestWatchHoldsIndex checks that the index stays the same file while other connections come and go.
func TestWatchHoldsIndex(t *testing.T) {
	c, path := open(t, "journal_mode(WAL)")
	run(t, c, "CREATE TABLE t (x)")
	w, err := OpenWatch(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path + "-shm")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	run(t, again, "INSERT INTO t VALUES (1)")
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path + "-shm")
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the index is another file: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
