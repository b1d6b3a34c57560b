// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/testsize"
)

// TestPooler runs the store through PgBouncer. It works with a session for each
// connection, and nothing begins with a session for each transaction.
func TestPooler(t *testing.T) {
	cluster := storetest.OwnPostgreSQL(t, "synchronous_commit=off")
	url := cluster.Database(t)

	session := cluster.Pooled(t, url, "session")
	db := openLimited(t, session+"&statement_timeout=90s", store.Options{Limits: store.ServingLimits(9 * time.Second), Connections: 4})
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The pool opens several connections, and each has the settings.
	for _, err := range atOnce(8, func() error {
		return db.Atomic(t.Context(), func(context.Context) error { return nil })
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := store.SessionSettings(t, db, "synchronous_commit", "lock_timeout", "statement_timeout", "jit"), "on 5s 90s off"; got != want {
		t.Errorf("settings of a session: %s, want %s", got, want)
	}

	for _, mode := range []string{"transaction", "statement"} {
		db, err := store.Open(t.Context(), store.Options{URL: cluster.Pooled(t, url, mode), Limits: store.ServingLimits(9 * time.Second)})
		if err == nil {
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "pool_mode = session") {
			t.Errorf("%s mode: %v, want what to set", mode, err)
		}
	}
}

// TestPoolerRuns runs the whole suite through PgBouncer, a third of it in the short form.
func TestPoolerRuns(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("TestPooler tries the pooler in the quick form")
	}
	each := 1
	if testsize.Of() < testsize.Whole {
		each = 3
	}
	cluster := storetest.PostgreSQL(t)
	storetest.RunEach(t, each, func(t *testing.T) *store.DB {
		return storetest.Open(t, cluster.Pooled(t, cluster.Emptied(t), "session"))
	})
}

// TestClockOfServer opens the database in processes whose clocks are ten minutes off. They
// have the server's time.
func TestClockOfServer(t *testing.T) {
	url := storetest.PostgreSQL(t).Emptied(t)
	right := openLimited(t, url, store.Options{})
	for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		db := openLimited(t, url, store.Options{Wall: func() time.Time { return time.Now().Add(off) }})
		// Half of the round trip bounds the error. A busy machine may need a while for one.
		if got := db.Now().Sub(right.Now()).Abs(); got > time.Minute {
			t.Errorf("%s off: the time differs by %s from that of another process", off, got)
		}
		if got := (db.ClockOffset() - right.ClockOffset() - off).Abs(); got > time.Minute {
			t.Errorf("%s off: the offset is %s", off, db.ClockOffset())
		}
		if err := db.CheckClock(2 * time.Second); err == nil {
			t.Errorf("%s off: the clock passes", off)
		}
	}
}
