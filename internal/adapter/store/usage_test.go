// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/signing"
)

// clock is a clock that tests move.
type clock struct{ atomic.Int64 }

func (c *clock) Now() time.Time { return time.UnixMilli(1_700_000_000_000 + c.Load()) }

// twoProcesses opens a database twice, as two processes do. Their clock does not move by
// itself.
func twoProcesses(t *testing.T, url string) (a, b *store.DB, now *clock, admin *sql.DB) {
	t.Helper()
	storetest.Open(t, url)
	now = &clock{}
	o := store.Options{Now: now.Now, Limits: store.ServingLimits(9 * time.Second)}
	a, b = openLimited(t, url, o), openLimited(t, url, o)
	return a, b, now, adminOf(t, url)
}

func adminOf(t *testing.T, url string) *sql.DB {
	t.Helper()
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	return admin
}

func preparedNumber(n int, caller string) *signing.PreparedRecord {
	return &signing.PreparedRecord{
		ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Caller: caller, Type: "CAdES", Job: []byte{1}, Bytes: 10,
		CreatedAt: time.UnixMilli(1), ExpiresAt: time.UnixMilli(1_900_000_000_000),
	}
}

// spend completes a prepared object.
func spend(t *testing.T, db *store.DB, n int) {
	t.Helper()
	s, id := store.Prepared{DB: db}, preparedNumber(n, "").ID
	now := time.UnixMilli(1_700_000_000_000)
	if ok, err := s.ClaimPrepared(t.Context(), id, "l", now, now.Add(time.Minute), 3); !ok || err != nil {
		t.Fatalf("leasing %d: %v, %v", n, ok, err)
	}
	if ok, err := s.SpendPrepared(t.Context(), id, "l", now, 3, audit.Beside{}); !ok || err != nil {
		t.Fatalf("spending %d: %v, %v", n, ok, err)
	}
}

const wide = 1 << 40

// TestQuotaOfTwoProcesses checks that the quota of an owner counts what all processes have
// added, and that the quota of all counts it after a second.
func TestQuotaOfTwoProcesses(t *testing.T) {
	a, b, now, admin := twoProcesses(t, storetest.PostgreSQL(t).Database(t))
	n := 0
	add := func(db *store.DB, caller string, all, own int) bool {
		t.Helper()
		n++
		ok, err := store.Prepared{DB: db}.AddPrepared(t.Context(), preparedNumber(n, caller),
			signing.Quota{Objects: int64(all), Bytes: wide}, signing.Quota{Objects: int64(own), Bytes: wide}, audit.Beside{})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for i, c := range []struct {
		db     *store.DB
		caller string
		all    int
		want   bool
	}{
		{a, "x", 100, true}, {b, "x", 100, true}, {a, "x", 100, true},
		{b, "x", 100, false}, {a, "x", 100, false}, // three are the quota
		{b, "y", 100, true},
		{b, "z", 2, false}, // the total that b knows: its own two, and none when it began
		{b, "z", 4, true},  // in fact the fifth
	} {
		if got := add(c.db, c.caller, c.all, 3); got != c.want {
			t.Errorf("row %d: added %v, want %v", i, got, c.want)
		}
	}
	now.Add(1000)
	if add(b, "z", 5, 3) || add(a, "z", 5, 3) {
		t.Error("after a second a process does not know the total")
	}
	// An object is given back by whatever process.
	spend(t, b, 1)
	if !add(b, "x", 5, 3) {
		t.Error("no room after an object was completed by another process")
	}
	if err := (store.Prepared{DB: a}).SweepPrepared(t.Context(), time.UnixMilli(1_900_000_000_001)); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM prepared_shares").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows count nothing, %v", rows, err)
	}
}

// TestQuotaAtOnceOfTwoProcesses checks how far two busy processes exceed a quota: by what
// is under way at one moment. That is a statement of the other process, and the objects that are added
// alone because a statement exceeded the quota, which the connections bound.
func TestQuotaAtOnceOfTwoProcesses(t *testing.T) {
	a, b, _, admin := twoProcesses(t, storetest.PostgreSQL(t).Database(t))
	const quota, callers, connections = 30, 40, 8
	var number, added atomic.Int64
	for _, err := range atOnce(2*callers, func() error {
		db := a
		if number.Load()%2 == 1 {
			db = b
		}
		for range 5 {
			ok, err := store.Prepared{DB: db}.AddPrepared(t.Context(), preparedNumber(int(number.Add(1)), "x"),
				signing.Quota{Objects: 1000, Bytes: wide}, signing.Quota{Objects: quota, Bytes: wide}, audit.Beside{})
			if err != nil {
				return err
			}
			if ok {
				added.Add(1)
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	n := added.Load()
	if most := int64(quota + store.MostPrepared + 2*connections); n < quota || n > most {
		t.Errorf("%d objects were added, want %d to %d", n, quota, most)
	}
	var counted int64
	if err := admin.QueryRowContext(t.Context(), "SELECT SUM(objects) FROM prepared_shares").Scan(&counted); err != nil || counted != n {
		t.Errorf("%d objects are counted, want %d: %v", counted, n, err)
	}
}

// TestSharesAreNotWaitedFor adds, gives back and sweeps while other units hold all rows of
// the owner. A step that waits for one of them ends with an error of lock_timeout. A sweep
// afterwards leaves one row.
func TestSharesAreNotWaitedFor(t *testing.T) {
	db, _, _, admin := twoProcesses(t, storetest.PostgreSQL(t).Database(t))
	s, at := store.Documents{DB: db}, time.UnixMilli(1_700_000_000_000)
	q := document.Quotas{All: document.Quota{Objects: 100, Bytes: 1000}, Own: document.Quota{Objects: 5, Bytes: 100}}
	rows := func(want int64, of string) {
		t.Helper()
		var n, sum int64
		if err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*), SUM(bytes) FROM document_shares").Scan(&n, &sum); err != nil || n != want {
			t.Errorf("%s: %d rows, want %d: %v", of, n, want, err)
		}
		var there int64
		if err := admin.QueryRowContext(t.Context(), "SELECT SUM(bytes) FROM documents").Scan(&there); err != nil || sum != there {
			t.Errorf("%s: %d bytes are counted, %d are there: %v", of, sum, there, err)
		}
	}
	upload := func(n int) document.Upload {
		return document.Upload{ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), UserID: "x", Bytes: "b", Counted: 10}
	}
	add := func(n int, want bool) {
		t.Helper()
		if ok, err := s.AddUploads(t.Context(), []document.Upload{upload(n)}, at, at.Add(time.Hour), q); ok != want || err != nil {
			t.Fatalf("upload %d: %v, %v", n, ok, err)
		}
	}
	// hold locks all rows that no other unit has locked.
	hold := func() *sql.Tx {
		t.Helper()
		held, err := admin.BeginTx(t.Context(), nil)
		if err == nil {
			_, err = held.ExecContext(t.Context(), "SELECT 1 FROM document_shares FOR UPDATE SKIP LOCKED")
		}
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	sweep := func() {
		t.Helper()
		if _, err := s.ClaimGone(t.Context(), at, at, 10); err != nil {
			t.Fatal(err)
		}
	}
	add(1, true)
	add(2, true)
	rows(1, "one after the other")
	first := hold()
	defer first.Rollback()
	add(3, true)
	add(4, true)
	rows(2, "beside another unit")
	second := hold()
	defer second.Rollback()
	sweep()
	rows(2, "after a sweep that found all rows locked")
	if ok, err := s.KeepDocuments(t.Context(), []document.Record{{Info: document.Info{ID: upload(1).ID, UserID: "x", Size: 4, Hash: []byte{1}}}}, document.Quotas{}); ok != document.Done || err != nil {
		t.Fatal(ok, err)
	}
	rows(3, "after giving back, in a third row")
	add(5, true)
	add(6, false) // the quota counts all rows
	rows(3, "after reaching the quota")
	if err := errors.Join(first.Rollback(), second.Rollback()); err != nil {
		t.Fatal(err)
	}
	sweep()
	rows(1, "after a sweep")
}

// TestLooseBudgetsAreNotWaitedFor counts messages of a caller and of an installation while
// other units hold what they have counted. A step that waits ends with an error of
// lock_timeout.
func TestLooseBudgetsAreNotWaitedFor(t *testing.T) {
	a, b, _, admin := twoProcesses(t, storetest.PostgreSQL(t).Database(t))
	at := time.UnixMilli(1_700_000_000_000)
	spend := func(ctx context.Context, db *store.DB, want bool) {
		t.Helper()
		ok, err := store.Outbox{DB: db}.SpendBudgets(ctx, []notify.BudgetLimit{{Key: "caller", Limit: 4, Loose: true}, {Key: "all", Limit: 4, Loose: true}}, at, time.Hour)
		if ok != want || err != nil {
			t.Errorf("%v, %v, want %v", ok, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(a.Unit(t.Context(), func(one context.Context) error {
		spend(one, a, true)
		must(b.Unit(t.Context(), func(other context.Context) error {
			spend(other, b, true)
			spend(other, b, true)
			return nil
		}))
		spend(one, a, true)
		return nil
	}))
	spend(t.Context(), a, false)
	var rows, messages int64
	must(admin.QueryRowContext(t.Context(), "SELECT COUNT(*), SUM(messages) FROM message_budgets").Scan(&rows, &messages))
	if rows != 4 || messages != 8 {
		t.Errorf("%d messages in %d rows, want 8 in two rows of each key", messages, rows)
	}
}

// TestDocumentsOfTwoProcesses checks that an upload that another process extends, keeps
// and forgets leaves nothing counted.
func TestDocumentsOfTwoProcesses(t *testing.T) {
	a, b, _, admin := twoProcesses(t, storetest.PostgreSQL(t).Database(t))
	at := time.UnixMilli(1_700_000_000_000)
	q := document.Quotas{All: document.Quota{Objects: 10, Bytes: 1000}, Own: document.Quota{Objects: 2, Bytes: 100}}
	u := document.Upload{ID: "00000000-0000-4000-8000-000000000001", UserID: "x", Bytes: "b", Counted: 10}
	if ok, err := (store.Documents{DB: a}).AddUploads(t.Context(), []document.Upload{u}, at, at.Add(time.Hour), q); !ok || err != nil {
		t.Fatal(ok, err)
	}
	other := store.Documents{DB: b}
	for _, c := range []struct {
		more int64
		want document.Outcome
	}{{60, document.Done}, {31, document.Full}, {30, document.Done}} {
		if got, err := other.ExtendUpload(t.Context(), u, c.more, at.Add(time.Hour), q); got != c.want || err != nil {
			t.Errorf("%d more: %v, %v", c.more, got, err)
		}
	}
	if ok, err := other.KeepDocuments(t.Context(), []document.Record{{Info: document.Info{ID: u.ID, UserID: "x", Size: 40, Hash: []byte{1}}}}, document.Quotas{}); ok != document.Done || err != nil {
		t.Fatal(ok, err)
	}
	if _, ok, err := other.RemoveDocument(t.Context(), "x", u.ID, at); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := other.ForgetDocuments(t.Context(), []string{u.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.ClaimGone(t.Context(), at, at, 10); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM document_shares").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
}
