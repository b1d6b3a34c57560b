// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/operation"
)

// later returns a process that carries out what is due.
func (d *desk) later(kinds ...operation.Kind) *operation.Service {
	rows := store.Operations{DB: d.records.DB}
	s, err := operation.New(operation.Settings{Async: true, Life: time.Hour, Lease: time.Minute}, operation.Deps{
		Store: rows, Lists: rows, Confirmations: d.confirm, Vault: d.ring, Audit: store.Audit{DB: d.records.DB}, Now: d.clock, Rand: d.random(11),
	}, kinds...)
	d.must(err)
	return s
}

// TestNewerOperationsWait: a process leaves alone what a newer release has accepted, a kind or a form of a plan, however
// often it finds that due. A process that knows it carries it out.
func TestNewerOperationsWait(t *testing.T) {
	t.Parallel()
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			ctx := t.Context()
			d := newDesk(t, engine.migrated(t))
			f := &founding{d: d, groups: store.Users{DB: d.records.DB}}
			newer := d.later(f.kind(2))
			op, _, err := newer.Start(ctx, &operation.Order{Kind: "found", Form: operation.FormOperation, Owner: d.who, Async: true, Plan: groupPlan{"later"}, Secret: "quiet"})
			d.must(err)
			for want, older := range map[string]*operation.Service{"does not know": d.later(), "has version 2": d.later(f.kind(1))} {
				for range 12 { // more often than an operation is tried
					worked, err := older.Next(ctx)
					if !worked || err == nil || !strings.Contains(err.Error(), want) {
						t.Fatalf("an older release: %v, %v, want %q", worked, err, want)
					}
					d.pass(time.Second)
					if worked, err := older.Next(ctx); worked || err != nil {
						t.Fatalf("at once again: %v, %v", worked, err)
					}
					d.must(store.Exec(d.records.DB, ctx, "UPDATE operations SET due_at = 1 WHERE id = $1", op.ID))
				}
			}
			if r := d.row(op.ID); r.State != operation.Confirmed || r.Attempts != 0 || f.done != 0 {
				t.Errorf("%s after %d attempts", r.State, r.Attempts)
			}
			if worked, err := newer.Next(ctx); !worked || err != nil {
				t.Errorf("the newer release: %v, %v", worked, err)
			}
			if r := d.row(op.ID); r.State != operation.Completed || f.done != 1 {
				t.Errorf("%s, done %d times", r.State, f.done)
			}
		})
	}
}
