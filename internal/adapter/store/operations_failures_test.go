// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/vault"
	"tamga/sig"
)

// Failures while an operation is under way, and their tests. Tests of other packages run the whole program.
//
//	killed before the commit that ends it      TestKilled, TestConfirmedDies; tokenapi: TestConfirmedAndKilled
//	killed after the commit, before the answer TestKilled, TestOperationsWalk; signapi: TestV2KilledWhileAsynchronous
//	frozen for less or more than its lease     TestOperationLeaseIsExtended, TestKindsOfOperations; cmd/tamga: TestFrozenProcess
//	database paused                            TestPausedDatabase; cmd/tamga: TestDatabaseSilent; cluster: database-freeze
//	failover, the outcome of a commit unknown  TestUnansweredCommits, TestCommitCut; cluster: failover
//	failover, a unit runs twice                TestCommitCut: it does so only if nothing of it was kept
//	clock of a process wrong                   TestOperationRaces (ahead), TestKindsOfOperations (behind); cluster: clock
//	master key replaced meanwhile              TestMasterKeyReplaced, TestSealedColumns; cmd/tamga: TestResealKilled
//	backup in the middle, then a restore       TestRestoreVoids; cmd/tamga: TestRestoreHolds
//	callback sent, the record of it lost       TestOperationsWalk; notify: TestDeadProcess
//	cancelled, or the account changed          TestOperationRaces, TestOperationEndsMeanwhile, TestOperationEndsBeside
//	two requests and the loop at once          TestOperationRaces; tokenapi: TestConfirmedByProcesses
//	disk full, bucket out of order             TestStorageFull; cmd/tamga: TestBucketSilent; cluster: disk, bucket-freeze
//	time-stamp service out of order            TestConfirmedOperations, TestConfirmedStarts

// paused is a database that does not extend leases.
type paused struct {
	operation.Store
	asked chan struct{}
}

func (p paused) ExtendOperation(ctx context.Context, _ string, _ lease.Lease) (bool, error) {
	select {
	case p.asked <- struct{}{}:
	case <-ctx.Done():
	}
	return false, &fault.Outage{Message: "paused", Err: errors.New("paused")}
}

// TestPausedDatabase lets a lease run out because the database does not answer. If no other process has claimed the
// operation then, the result is stored.
func TestPausedDatabase(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, engine.reused(t))
			f := &founding{d: d, groups: store.Users{DB: d.records.DB}}
			p := paused{store.Operations{DB: d.records.DB}, make(chan struct{})}
			s := d.actsOn(p, 30*time.Millisecond, f.kind(1))
			id := found(d, s, "paused")
			d.confirms(id)
			f.before = func() error {
				for range 3 { // a whole lease
					<-p.asked
				}
				d.pass(time.Minute)
				return nil
			}
			_, result, err := s.CarryOut(t.Context(), d.who, claim(id))
			if d.must(err); result != "paused quiet" || f.done != 1 || d.row(id).State != operation.Completed {
				t.Errorf("%v, %d changes, the operation is %s", result, f.done, d.row(id).State)
			}
		})
	}
}

// TestMasterKeyReplaced replaces the master key while an operation is carried out. The attempt fails, and a process
// without the former key carries it out and returns its answer.
func TestMasterKeyReplaced(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			d := newDesk(t, engine.reused(t))
			ring := func(active string, ids ...string) *vault.Ring {
				keys := map[string][]byte{}
				for _, id := range ids {
					keys[id] = bytes.Repeat([]byte(id[:1]), vault.MasterKeySize)
				}
				r, err := vault.NewRing(active, keys, d.random(9))
				d.must(err)
				return r
			}
			f := &founding{d: d, groups: store.Users{DB: d.records.DB}}
			d.ring = ring("former", "former")
			id := found(d, d.acts(f.kind(1)), "sealed anew")
			d.confirms(id)
			both := ring("new", "former", "new")
			d.ring = both
			failure := errors.New("a failure")
			records := store.Sealed{DB: d.records.DB}
			f.before = func() error { // after the secret was opened under the former key
				resealed := vault.Resealing{Ring: both, Records: records, Batch: 4, Workers: 1}
				_, err := resealed.Run(ctx)
				return errors.Join(err, failure)
			}
			if _, _, err := d.acts(f.kind(1)).CarryOut(ctx, d.who, claim(id)); !errors.Is(err, failure) {
				t.Fatal(err)
			}
			for _, c := range records.Columns() {
				if n, err := records.CountUnder(ctx, c, vault.Head("former")); c.Table == "operations" && (err != nil || n != 0) {
					t.Errorf("%s: %d records under the former key, %v", c.Name(), n, err)
				}
			}
			f.before = nil
			d.ring = ring("new", "new")
			for range 2 {
				op, _, err := d.acts(f.kind(1)).CarryOut(ctx, d.who, claim(id))
				if d.must(err); string(op.Answer) != "Completed sealed anew quiet" || f.done != 1 {
					t.Errorf("%q, %d changes", op.Answer, f.done)
				}
			}
		})
	}
}

// fullBlobs is a storage without space.
type fullBlobs struct {
	signing.Blobs
	full bool
}

func (b *fullBlobs) KeepBlob(ctx context.Context, d sig.Document, expires time.Time) (string, error) {
	if b.full {
		return "", fmt.Errorf("keeping a document: %w", syscall.ENOSPC)
	}
	return b.Blobs.KeepBlob(ctx, d, expires)
}

// TestStorageFull has no space for the results of operations. Nothing leaves, the operation stays Confirmed, and is carried
// out when there is space.
func TestStorageFull(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			d := newDesk(t, engine.reused(t))
			var failed []error
			d.failed = func(err error) { failed = append(failed, err) }
			o := d.live()
			blobs := &fullBlobs{Blobs: o.Signer.Blobs}
			d.docs.Blobs = blobs
			o.Use(d.docs)
			order := func() *signing.OperationOrder {
				order := d.order(o)
				order.Inputs[0].Content = d.intake(o, strings.Repeat("x", 40<<10))
				return order
			}
			is := func(name, id string, want operation.State, results int) {
				t.Helper()
				if r := d.row(id); r.State != want || d.results() != results {
					t.Errorf("%s: %s, %d results", name, r.State, d.results())
				}
			}
			blobs.full = true
			if op, err := propose(ctx, o, d.who, order()); !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(op, err)
			}
			if list, err := o.Active(ctx, d.who); err != nil || len(list) != 0 {
				t.Errorf("an order that was not stored: %v, %v", list, err)
			}
			blobs.full = false
			op, err := propose(ctx, o, d.who, order())
			d.must(err)
			d.approve(op.ID)
			blobs.full = true
			if _, err := o.Confirmed(ctx, d.who, confirmedOrder(op.ID)); !errors.Is(err, syscall.ENOSPC) {
				t.Error(err)
			}
			is("a request", op.ID, operation.Confirmed, 0)
			blobs.full = false
			done, err := o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.must(err)
			d.must(done.Close())
			is("a request with space", op.ID, operation.Completed, 1)

			later := order()
			later.Async = true
			op, err = o.Start(ctx, d.who, later)
			d.must(err)
			blobs.full = true
			if worked, err := o.Next(ctx); !worked || !errors.Is(err, syscall.ENOSPC) {
				t.Error(worked, err)
			}
			is("the loop", op.ID, operation.Confirmed, 1)
			blobs.full = false
			d.pass(time.Minute)
			if worked, err := o.Next(ctx); !worked || err != nil {
				t.Error(worked, err)
			}
			is("the loop with space", op.ID, operation.Completed, 2)
			if len(failed) > 0 {
				t.Error(failed)
			}
		})
	}
}
