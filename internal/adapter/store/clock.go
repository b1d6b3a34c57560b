// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// clockInterval is the time between two measurements of the server's clock.
	clockInterval = time.Second
	// clockTime bounds one measurement.
	clockTime = 2 * time.Second
	// clockSamples is the number of measurements of Open, of which the best one counts.
	clockSamples = 3
)

// clock tells the time of a database server. All processes share that time, so leases and
// life times agree, however wrong the wall clock of a process is.
//
// The time is a measurement plus what has passed since then on the monotonic clock of
// this process, so setting the wall clock does not change it. If the whole machine was
// suspended, the monotonic clock may be slow until the next measurement. Then the process
// is like one that was frozen, and it loses its leases.
type clock struct {
	wall func() time.Time // clock of this process, with a monotonic reading
	base atomic.Pointer[measurement]
}

// measurement is one reading of the server's clock.
type measurement struct {
	local  time.Time     // by wall, in the middle of the round trip
	server time.Time     // without a monotonic reading
	err    time.Duration // half of the round trip
}

// at returns the server's time at a time of wall.
func (m *measurement) at(local time.Time) time.Time { return m.server.Add(local.Sub(m.local)) }

// measure asks for the server's time.
func (c *clock) measure(ask func() (time.Time, error)) (*measurement, error) {
	before := c.wall()
	server, err := ask()
	if err != nil {
		return nil, err
	}
	half := c.wall().Sub(before) / 2
	return &measurement{local: before.Add(half), server: server.Round(0).UTC(), err: half}, nil
}

// correct takes a measurement into account. A measurement that agrees with the current
// time within its own error changes nothing, so the time does not jump back and forth.
func (c *clock) correct(m *measurement) {
	if old := c.base.Load(); old == nil || old.at(m.local).Sub(m.server).Abs() > m.err {
		c.base.Store(m)
	}
}

// now returns the time of the server in UTC.
func (c *clock) now() time.Time { return c.base.Load().at(c.wall()) }

// offset returns how far the wall clock is ahead of the server.
func (c *clock) offset() time.Duration {
	local := c.wall()
	return local.Round(0).Sub(c.base.Load().at(local)) // Round removes the monotonic reading
}

// startClock measures the server's clock, and again at intervals until stopClock is
// called. A measurement that fails is left out.
func (db *DB) startClock(ctx context.Context, wall func() time.Time) error {
	c := &clock{wall: wall}
	var best *measurement
	for range clockSamples {
		m, err := c.measure(func() (time.Time, error) { return db.serverTime(ctx) })
		if err != nil {
			return err
		}
		if best == nil || m.err < best.err {
			best = m
		}
	}
	c.correct(best)
	db.clock, db.now = c, c.now
	measuring, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	db.stopClock = func() { stop(); <-done }
	go func() {
		defer close(done)
		tick := time.NewTicker(clockInterval)
		defer tick.Stop()
		for {
			select {
			case <-measuring.Done():
				return
			case <-tick.C:
			}
			if m, err := c.measure(func() (time.Time, error) { return db.serverTime(measuring) }); err == nil {
				c.correct(m)
			}
		}
	}()
	return nil
}

// serverTime asks the server for its time.
func (db *DB) serverTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, clockTime)
	defer cancel()
	us, _, err := one(ctx, db, scalar[int64], "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
	return time.UnixMicro(us), err
}

// Now returns the current time, by which life times, leases and orders are measured. On
// PostgreSQL it is the server's time, to half a round trip. On SQLite it is the time of
// this machine.
func (db *DB) Now() time.Time { return db.now() }

// ClockOffset returns how far the clock of this machine is ahead of the clock that Now
// follows. It is 0 on SQLite.
func (db *DB) ClockOffset() time.Duration {
	if db.clock == nil {
		return 0
	}
	return db.clock.offset()
}

// CheckClock returns an error if ClockOffset is more than most in either direction.
func (db *DB) CheckClock(most time.Duration) error {
	offset, where := db.ClockOffset().Round(time.Millisecond), "ahead of"
	if offset.Abs() <= most {
		return nil
	}
	if offset < 0 {
		where = "behind"
	}
	return fmt.Errorf("store: the clock of this machine is %s %s the clock of the database, more than the %s allowed: set the wrong one of them",
		offset.Abs(), where, most)
}
