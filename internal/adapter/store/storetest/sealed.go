// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

// testRing returns a ring of master keys by their ids. The first one is active.
func testRing(t *testing.T, ids ...string) *vault.Ring {
	t.Helper()
	keys := map[string][]byte{}
	for _, id := range ids {
		keys[id] = bytes.Repeat([]byte(id[:1]), vault.MasterKeySize)
	}
	ring, err := vault.NewRing(ids[0], keys, rand.Reader)
	must(t, err)
	return ring
}

func testSealed(t *testing.T, open func(t *testing.T) *store.DB) {
	// add stores a record sealed under the active key of a ring.
	add := func(t *testing.T, db *store.DB, ring *vault.Ring, id string) {
		t.Helper()
		sealed, err := ring.Seal(vault.Place{Purpose: "webhook", Table: "webhooks", Row: id, Column: "sealed"}, []byte("secret of "+id))
		must(t, err)
		must(t, store.Webhooks{DB: db}.AddSubscription(t.Context(), notify.Subscription{ID: id, URL: "https://a.example/", Sealed: sealed, CreatedAt: start}))
	}
	cases{
		{"EveryColumn", func(t *testing.T, db *store.DB) {
			s := store.Sealed{DB: db}
			for _, c := range s.Columns() {
				n, err := s.CountUnder(t.Context(), c, vault.Head("1"))
				must(t, err)
				_, under, err := s.OneUnder(t.Context(), c, vault.Head("1"))
				must(t, err)
				_, none, err := s.OneUnderNone(t.Context(), c, [][]byte{vault.Head("1"), vault.Head("2")})
				must(t, err)
				list, err := s.NotUnder(t.Context(), c, vault.Head("1"), "", 10)
				must(t, err)
				swapped, err := s.Swap(t.Context(), c, vault.SealedRecord{ID: "a", Sealed: []byte("a")}, []byte("b"))
				must(t, err)
				if n != 0 || under || none || len(list) != 0 || swapped {
					t.Errorf("%s of an empty database: %d, %t, %t, %v, %t", c.Name(), n, under, none, list, swapped)
				}
			}
		}},
		{"Reseal", func(t *testing.T, db *store.DB) {
			old, ring := testRing(t, "1"), testRing(t, "2", "1")
			s := store.Sealed{DB: db}
			for i := range 25 {
				add(t, db, old, fmt.Sprintf("%03d", i))
			}
			add(t, db, testRing(t, "3"), "foreign")
			add(t, db, ring, "new")
			usage, err := vault.UsageOf(t.Context(), ring, s)
			must(t, err)
			if want := []vault.Usage{{KeyID: "1", Column: "webhooks.sealed", Count: 25}, {KeyID: "2", Column: "webhooks.sealed", Count: 1}, {KeyID: "3", Column: "webhooks.sealed", Count: 1}}; !slices.Equal(usage, want) {
				t.Errorf("before: %v", usage)
			}
			// A record is changed while it is resealed, and the run is stopped and repeated.
			changed := false
			stopped := errors.New("stopped")
			run := &vault.Resealing{Ring: ring, Records: meddler{s, func(id string) error {
				if id == "020" && !changed {
					changed = true
					_, err := store.Webhooks{DB: db}.RemoveSubscription(t.Context(), id)
					must(t, err)
					add(t, db, old, id)
				}
				return nil
			}}, Batch: 4, Workers: 1}
			left := 9
			interrupted := *run
			interrupted.Records = meddler{s, func(string) error {
				if left--; left < 0 {
					return stopped
				}
				return nil
			}}
			first, err := interrupted.Run(t.Context())
			if !errors.Is(err, stopped) || first.Moved == 0 || first.Moved > 9 {
				t.Errorf("stopped: %+v, %v", first, err)
			}
			second, err := run.Run(t.Context())
			if err != nil || first.Moved+second.Moved != 25 || second.FailedCount != 1 || len(second.Failed) != 1 {
				t.Errorf("moved %d and %d, failed %v, %v", first.Moved, second.Moved, second.Failed, err)
			}
			subscriptions, err := store.Webhooks{DB: db}.Subscriptions(t.Context())
			must(t, err)
			only := testRing(t, "2")
			for _, w := range subscriptions {
				plain, err := only.Open(vault.Place{Purpose: "webhook", Table: "webhooks", Row: w.ID, Column: "sealed"}, w.Sealed)
				if w.ID != "foreign" && (err != nil || string(plain) != "secret of "+w.ID) {
					t.Errorf("%s: %q, %v", w.ID, plain, err)
				}
			}
			if found, err := vault.Probe(t.Context(), ring, "2", s); err != nil || !found {
				t.Errorf("probing: %t, %v", found, err)
			}
		}},
		{"MasterKeys", func(t *testing.T, db *store.DB) {
			keys, records := store.MasterKeys{DB: db}, store.Sealed{DB: db}
			ring := testRing(t, "1")
			for range 2 {
				must(t, vault.Recognize(t.Context(), ring, keys, records, start))
			}
			other, err := vault.NewRing("1", map[string][]byte{"1": bytes.Repeat([]byte{9}, vault.MasterKeySize)}, rand.Reader)
			must(t, err)
			if err := vault.Recognize(t.Context(), other, keys, records, start); !errors.Is(err, vault.ErrWrongKey) {
				t.Errorf("another key of the same name: %v", err)
			}
			// A database from before canaries: a record shows that the key is another one.
			add(t, db, testRing(t, "2"), "a")
			wrong, err := vault.NewRing("2", map[string][]byte{"2": bytes.Repeat([]byte{9}, vault.MasterKeySize)}, rand.Reader)
			must(t, err)
			if err := vault.Recognize(t.Context(), wrong, keys, records, start); !errors.Is(err, vault.ErrWrongKey) {
				t.Errorf("another key without a canary: %v", err)
			}
			p := vault.Process{ID: "p", Host: "h", Version: "v", Active: "1", IDs: []string{"1"}, SeenAt: start}
			must(t, keys.PutProcess(t.Context(), p))
			p.Active, p.IDs, p.SeenAt = "2", []string{"1", "2"}, start.Add(time.Second)
			must(t, keys.PutProcess(t.Context(), p))
			list, err := keys.Processes(t.Context())
			must(t, err)
			if len(list) != 1 || list[0].Active != "2" || !slices.Equal(list[0].IDs, p.IDs) || !list[0].SeenAt.Equal(p.SeenAt) {
				t.Errorf("processes: %+v", list)
			}
			known, err := keys.MasterKeys(t.Context())
			must(t, err)
			if len(known) != 1 || !known[0].SealedAt.Equal(start) {
				t.Errorf("master keys: %+v", known)
			}
			must(t, keys.RemoveProcesses(t.Context(), "q", start.Add(2*time.Second)))
			if list, err = keys.Processes(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("removed: %+v, %v", list, err)
			}
		}},
	}.run(t, open)
}

// meddler calls a function before each record is replaced.
type meddler struct {
	store.Sealed
	before func(id string) error
}

// Swap implements vault.Records.
func (m meddler) Swap(ctx context.Context, c vault.Column, r vault.SealedRecord, sealed []byte) (bool, error) {
	if err := m.before(r.ID); err != nil {
		return false, err
	}
	return m.Sealed.Swap(ctx, c, r, sealed)
}
