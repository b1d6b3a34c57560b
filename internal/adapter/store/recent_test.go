// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/token"
)

// recentDatabases opens a migrated database with one authority, and the same file as another
// process has it.
func recentDatabases(t *testing.T) (db, other *DB) {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "tamga.db")
	var dbs [2]*DB
	for i := range dbs {
		var err error
		if dbs[i], err = Open(t.Context(), Options{URL: url}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := dbs[i].Close(); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			if err := dbs[0].Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, known := dbs[i].database.(*sqliteFile).state(); !known {
			t.Fatal("commits are not watched")
		}
	}
	record := authority.Record{State: authority.State{Name: "gost", CRLNumber: 1}, Suite: "s", Sealed: []byte{1}, Certificate: []byte{1}, CRL: []byte{1}}
	if added, err := (Authority{dbs[0]}).AddAuthority(t.Context(), record); err != nil || !added {
		t.Fatal(added, err)
	}
	return dbs[0], dbs[1]
}

// TestRecentStates checks that the states of the authorities are answered from memory as long as
// there is no commit, and are read again after any commit of either process.
func TestRecentStates(t *testing.T) {
	db, other := recentDatabases(t)
	read := func() int64 {
		t.Helper()
		list, err := (Authority{db}).States(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		number := list[0].CRLNumber
		list[0].CRLNumber = -1 // the caller's own
		return number
	}
	m := &db.authorityStates.joint.recent
	for number := int64(1); number < 40; number++ {
		if got := read(); got != number {
			t.Fatalf("list %d is in the answer, want %d", got, number)
		}
		state, _ := db.database.(*sqliteFile).state()
		for m.state != state { // rows that are left out
			read()
		}
		m.used = false
		if got := read(); got != number || !m.used {
			t.Fatalf("list %d is in the answer, want %d from memory (%t)", got, number, m.used)
		}
		from := []*DB{db, other}[number%2]
		if replaced, err := (Authority{from}).ReplaceCRL(t.Context(), "gost", number, []byte{2}, time.UnixMilli(number)); err != nil || !replaced {
			t.Fatal(replaced, err)
		}
	}
}

// TestRecentUnderCommits checks that readers never get a state older than the last commit before
// their call, while the other process commits.
func TestRecentUnderCommits(t *testing.T) {
	db, other := recentDatabases(t)
	var committed atomic.Int64
	committed.Store(1)
	var all sync.WaitGroup
	defer all.Wait()
	for range 4 {
		all.Go(func() {
			for committed.Load() < 200 {
				least := committed.Load()
				list, err := (Authority{db}).States(t.Context())
				if err != nil || len(list) != 1 || list[0].CRLNumber < least {
					t.Errorf("%v, %v after list %d", list, err, least)
					return
				}
			}
		})
	}
	for number := int64(1); number < 200; number++ {
		replaced, err := (Authority{other}).ReplaceCRL(t.Context(), "gost", number, []byte{2}, time.UnixMilli(number))
		if err != nil || !replaced {
			t.Error(replaced, err)
			committed.Store(200)
			return
		}
		committed.Store(number + 1)
	}
}

// TestRecentLasts checks that nothing in a bearer depends on the time but what lasts excludes:
// whether an operator who acts for the user may do so.
func TestRecentLasts(t *testing.T) {
	for _, q := range []string{bearerQuery, bearerSnapshotQuery} {
		rest := strings.ReplaceAll(q, "CASE WHEN t.actor_id = '' THEN FALSE ELSE NOT ("+reachesBy("t.actor_id")+") END", "")
		if rest == q || strings.Contains(rest, "$2") {
			t.Errorf("a query of bearers depends on the time $2 in other places: %s", rest)
		}
	}
	for _, q := range []string{snapshotQuery, statesQuery} {
		if strings.Contains(q, "$2") {
			t.Errorf("a query depends on the time $2: %s", q)
		}
	}
	var b token.Bearer
	if !bearerLasts(b) {
		t.Error("a bearer without an actor does not last")
	}
	if b.Token.ActorID = "x"; bearerLasts(b) {
		t.Error("a bearer with an actor lasts")
	}
}

// TestRecent checks what is given and what is left out: rows of another state never, and while no
// row is used, up to eight rows are left out after each one that is kept.
func TestRecent(t *testing.T) {
	var m recent
	db, _ := recentDatabases(t)
	c, err := db.database.(*sqliteFile).readers.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.database.(*sqliteFile).readers.give(c)
	err = c.Query(t.Context(), lite.Once, "SELECT 7", nil, func(r lite.Row) error {
		kept := func(s uint64) (left int) {
			t.Helper()
			for {
				m.keep(lite.State{s}, "a", r)
				if m.state == (lite.State{s}) {
					return left
				}
				left++
			}
		}
		for i, want := range []int{0, 0, 1, 3, 7, 8, 8} {
			if left := kept(uint64(i + 1)); left != want {
				t.Errorf("%d rows were left out before state %d, want %d", left, i+1, want)
			}
		}
		if _, has := m.at(lite.State{6}, "a"); has {
			t.Error("a row of another state is given")
		}
		if _, has := m.at(lite.State{7}, "b"); has {
			t.Error("a row of another key is given")
		}
		if row, has := m.at(lite.State{7}, "a"); !has {
			t.Error("a row is not given")
		} else if v, err := scalar[int64](row); err != nil || v != 7 {
			t.Errorf("the row has %d, %v", v, err)
		}
		kept(8) // after rows that were left out before
		if left := kept(9) + kept(10); left != 0 {
			t.Errorf("%d rows were left out after one was used", left)
		}
		for i := range 2 * recentMost {
			m.keep(lite.State{10}, strings.Repeat("k", i), r)
		}
		if len(m.rows) != recentMost {
			t.Errorf("%d rows are kept, want %d", len(m.rows), recentMost)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatchBegins checks that commits are watched when what lasts is read, and not by what a command
// does, and that the log says why they cannot be watched.
func TestWatchBegins(t *testing.T) {
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "tamga.db")
	db, err := Open(t.Context(), Options{URL: "sqlite:" + path, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := (Users{db}).Groups(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := db.database.(*sqliteFile)
	if file.watch != nil {
		t.Error("commits are watched, and no statement needs it")
	}
	if _, err := (Authority{db}).States(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, known := file.state(); !known || file.watch == nil || log.Len() > 0 {
		t.Errorf("commits are not watched: %s", log.String())
	}
	none := &sqliteFile{path: filepath.Join(path, "none"), log: file.log}
	for range 2 {
		if _, known := none.state(); known {
			t.Error("a file that cannot be opened is watched")
		}
	}
	if n := strings.Count(log.String(), "are not watched"); n != 1 {
		t.Errorf("the log says %d times why commits are not watched:\n%s", n, log.String())
	}
}

// TestWatchEnds checks that the watch of commits ends after the last connection, and that a late
// reader is refused.
func TestWatchEnds(t *testing.T) {
	db, err := Open(t.Context(), Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "tamga.db")})
	if err != nil {
		t.Fatal(err)
	}
	file := db.database.(*sqliteFile)
	c, err := file.readers.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, known := file.state(); !known {
		t.Error("the watch ended before the last connection")
	}
	file.readers.give(c)
	if _, known := file.state(); known {
		t.Error("the watch goes on")
	}
	if _, err := file.readers.take(t.Context()); err != ErrClosed {
		t.Errorf("a late reader: %v, want ErrClosed", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}
