// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"testing"
	"time"
)

// TestClock moves a process through time. Its wall clock and its monotonic clock are one
// in this test, since a time.Time without a monotonic reading has only the first.
func TestClock(t *testing.T) {
	local := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC) // ten minutes ahead
	server := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var trip time.Duration
	c := &clock{wall: func() time.Time { return local }}
	pass := func(d time.Duration) { local, server = local.Add(d), server.Add(d) }
	measure := func() {
		m, err := c.measure(func() (time.Time, error) {
			pass(trip)
			asked := server
			pass(trip)
			return asked, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c.correct(m)
	}
	wantNow := func(when string, want time.Time) {
		t.Helper()
		if got := c.now(); !got.Equal(want) {
			t.Errorf("%s: the time is %s, want %s", when, got, want)
		}
	}

	trip = 5 * time.Millisecond
	measure()
	wantNow("after the first measurement", server)
	if got := c.offset(); got != 10*time.Minute {
		t.Errorf("the wall clock is %s ahead, want 10m", got)
	}
	pass(time.Hour)
	wantNow("an hour later", server)

	// The clock of the server was moved by less than the error of a measurement, then by
	// more.
	server = server.Add(4 * time.Millisecond)
	measure()
	wantNow("within the error", server.Add(-4*time.Millisecond))
	server = server.Add(-3 * time.Second)
	measure()
	wantNow("beyond the error", server)
	trip = time.Minute
	server = server.Add(30 * time.Second)
	measure()
	wantNow("after a slow answer", server.Add(-30*time.Second))

	if _, err := c.measure(func() (time.Time, error) { return time.Time{}, errors.New("away") }); err == nil {
		t.Error("a measurement without an answer succeeded")
	}
}

func TestCheckClock(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		offset time.Duration
		want   string
	}{
		{0, ""},
		{2 * time.Second, ""},
		{-2 * time.Second, ""},
		{2001 * time.Millisecond, "store: the clock of this machine is 2.001s ahead of the clock of the database, more than the 2s allowed: set the wrong one of them"},
		{-10 * time.Minute, "store: the clock of this machine is 10m0s behind the clock of the database, more than the 2s allowed: set the wrong one of them"},
	} {
		db := &DB{clock: &clock{wall: func() time.Time { return now.Add(c.offset) }}}
		db.clock.correct(&measurement{local: now.Add(c.offset), server: now})
		got := ""
		if err := db.CheckClock(2 * time.Second); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("offset %s: %q, want %q", c.offset, got, c.want)
		}
	}
	if err := new(DB).CheckClock(0); err != nil {
		t.Errorf("a database without a server: %v", err)
	}
}
