// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
)

// TestExportWaitsForEarlierNumbers has transactions commit in another order than that of their numbers, and roll back.
func TestExportWaitsForEarlierNumbers(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	db, reader := storetest.Open(t, url), storetest.Open(t, url)
	log, s := store.Audit{DB: db}, store.NewAuditExport(reader, false)
	record := func(id string) {
		t.Helper()
		if err := log.Record(t.Context(), audit.Entry{RequestID: id}); err != nil {
			t.Fatal(err)
		}
	}
	// slow records an entry in a transaction that ends when end is called.
	slow := func(id string, result error) (end func()) {
		recorded, going, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			var once sync.Once
			ended <- db.Atomic(t.Context(), func(ctx context.Context) error {
				if err := log.Record(ctx, audit.Entry{RequestID: id}); err != nil {
					return err
				}
				once.Do(func() { close(recorded) })
				<-going
				return result
			})
		}()
		<-recorded
		return func() {
			t.Helper()
			close(going)
			if err := <-ended; !errors.Is(err, result) {
				t.Fatal(err)
			}
		}
	}
	position := int64(0)
	want := func(ids ...string) {
		t.Helper()
		list, err := s.Following(t.Context(), position, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			got, position = append(got, e.RequestID), e.Number
		}
		if !slices.Equal(got, ids) {
			t.Errorf("%q, want %q", got, ids)
		}
	}
	record("1")
	second := slow("2", nil)
	record("3")
	want("1")
	want()
	fourth := slow("4", errors.New("rolled back"))
	record("5")
	want() // the second one still runs
	second()
	want("2", "3")
	want() // the fourth may come
	sixth := slow("6", nil)
	record("7")
	fourth()
	want("5") // the transaction that runs now began later
	want()
	sixth()
	want("6", "7")
	want()
}

// TestExportMissesNothing follows the log beside many writers of several processes, some of which roll back.
func TestExportMissesNothing(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			db := storetest.Open(t, url)
			const writers, each = 8, 60
			var writing sync.WaitGroup
			var mu sync.Mutex
			kept := map[string]bool{}
			for w := range writers {
				writing.Go(func() {
					own := storetest.Open(t, url)
					log := store.Audit{DB: own}
					for i := range each {
						id := fmt.Sprintf("%d.%d", w, i)
						var err error
						if rand.N(3) > 0 {
							err = log.Record(t.Context(), audit.Entry{RequestID: id})
						} else {
							err = own.Atomic(t.Context(), func(ctx context.Context) error {
								if err := log.Record(ctx, audit.Entry{RequestID: id}); err != nil {
									return err
								}
								time.Sleep(rand.N(5 * time.Millisecond)) // the order of commits is another one
								if rand.N(3) == 0 {
									return errRolledBack
								}
								return nil
							})
						}
						switch {
						case err == nil:
							mu.Lock()
							kept[id] = true
							mu.Unlock()
						case !errors.Is(err, errRolledBack):
							t.Error(err)
						}
					}
				})
			}
			done := make(chan struct{})
			go func() { writing.Wait(); close(done) }()
			s, position, got := store.NewAuditExport(db, false), int64(0), map[string]bool{}
			for last := false; ; {
				list, err := s.Following(t.Context(), position, 20)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range list {
					if e.Number <= position || got[e.RequestID] {
						t.Errorf("entry %d twice or out of order", e.Number)
					}
					got[e.RequestID], position = true, e.Number
				}
				if len(list) > 0 {
					continue
				}
				if last {
					break
				}
				select {
				case <-done:
					last = true
				default:
				}
			}
			for id := range kept {
				if !got[id] {
					t.Errorf("entry %s was missed", id)
				}
			}
			if len(got) != len(kept) {
				t.Errorf("%d entries, %d were kept", len(got), len(kept))
			}
		})
	}
}

var errRolledBack = errors.New("rolled back")
