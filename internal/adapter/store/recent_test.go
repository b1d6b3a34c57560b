// SPDX-License-Identifier: Apache-2.0

package store

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/domain/authority"
)

// TestRecentStates checks that the states of the authorities are answered from memory as long as
// nobody commits, and are read again after any commit: through this database, and through
// another one over the same file, as another process has it.
func TestRecentStates(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "tamga.db")
	var dbs [2]*DB
	for i := range dbs {
		db, err := Open(t.Context(), Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		dbs[i] = db
	}
	db := dbs[0]
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	record := authority.Record{State: authority.State{Name: "gost", CRLNumber: 1}, Suite: "s", Sealed: []byte{1}, Certificate: []byte{1}, CRL: []byte{1}}
	if added, err := (Authority{db}).AddAuthority(t.Context(), record); err != nil || !added {
		t.Fatal(added, err)
	}
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
	m := db.authorityStates.joint.recent
	const fake = 1_000_000
	for number := int64(1); number < 40; number++ {
		if got := read(); got != number {
			t.Fatalf("list %d is in the answer, want %d", got, number)
		}
		for m.plain > 0 || len(m.of) == 0 { // reads without the version do not remember
			read()
		}
		read() // remembers this state
		if len(m.of) != 1 {
			t.Fatalf("%d connections remember, want one", len(m.of))
		}
		for _, last := range m.of {
			if last.answer.value[0].CRLNumber != number {
				t.Fatalf("list %d is remembered, want %d", last.answer.value[0].CRLNumber, number)
			}
			last.answer.value[0].CRLNumber = fake
		}
		if got := read(); got != fake {
			t.Fatalf("list %d is in the answer although nobody has committed: it was read", got)
		}
		if m.misses != 0 {
			t.Fatalf("%d misses after an answer from memory", m.misses)
		}
		from := dbs[number%2]
		if replaced, err := (Authority{from}).ReplaceCRL(t.Context(), "gost", number, []byte{2}, time.UnixMilli(number)); err != nil || !replaced {
			t.Fatal(replaced, err)
		}
	}
}

// TestRecentUnderCommits checks that readers never get a state older than the last commit before
// their call, while the other process commits.
func TestRecentUnderCommits(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "tamga.db")
	db, err := Open(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	record := authority.Record{State: authority.State{Name: "gost", CRLNumber: 1}, Suite: "s", Sealed: []byte{1}, Certificate: []byte{1}, CRL: []byte{1}}
	if added, err := (Authority{db}).AddAuthority(t.Context(), record); err != nil || !added {
		t.Fatal(added, err)
	}
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

// TestRecentPasses checks how many reads in a row do without the version when every answer is
// outdated, and that one answer from memory ends it.
func TestRecentPasses(t *testing.T) {
	m := &recent[int]{own: func(n int) int { return n }}
	passed := func() (n int) {
		for m.passes() {
			n++
		}
		return n
	}
	m.keep(nil, 0, found[int]{})
	for i, want := range []int{0, 1, 3, 7, plainMost, plainMost} {
		m.keep(nil, int64(i+1), found[int]{})
		if got := passed(); got != want {
			t.Errorf("miss %d: %d reads pass, want %d", i+1, got, want)
		}
	}
	if _, ok := m.at(nil, 5); ok {
		t.Error("an outdated answer is given")
	}
	if _, ok := m.at(nil, 6); !ok {
		t.Error("the answer is not remembered")
	}
	m.keep(nil, 7, found[int]{})
	if got := passed(); got != 0 {
		t.Errorf("%d reads pass after an answer from memory", got)
	}
}
