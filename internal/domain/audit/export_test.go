// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/lease"
)

// shelf is an audit.ExportStore in memory.
type shelf struct {
	mu       sync.Mutex
	entries  int64
	position int64
	holder   lease.Lease
	moving   error // the error of MoveExport
}

func (s *shelf) ClaimExport(_ context.Context, l lease.Lease, now time.Time) (int64, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.holder.Until) {
		return 0, false, nil
	}
	s.holder = l
	return s.position, true, nil
}

func (s *shelf) ExtendExport(_ context.Context, l lease.Lease) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder.Token != l.Token {
		return false, nil
	}
	s.holder = l
	return true, nil
}

func (s *shelf) MoveExport(_ context.Context, token string, position int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moving != nil || s.holder.Token != token {
		return false, s.moving
	}
	s.position = position
	return true, nil
}

func (s *shelf) ReleaseExport(_ context.Context, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder.Token == token {
		s.holder = lease.Lease{}
	}
	return nil
}

func (s *shelf) Following(_ context.Context, position int64, limit int) (list []audit.Numbered, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := position + 1; n <= s.entries && len(list) < limit; n++ {
		list = append(list, audit.Numbered{Number: n})
	}
	return list, nil
}

func (s *shelf) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// taker is a collector that keeps the numbers of what it took. take decides on a delivery.
type taker struct {
	mu   sync.Mutex
	took []int64
	take func(ctx context.Context, list []audit.Numbered) (int, error)
}

func (c *taker) Deliver(ctx context.Context, list []audit.Numbered) error {
	n, err := len(list), error(nil)
	if c.take != nil {
		n, err = c.take(ctx, list)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range list[:n] {
		c.took = append(c.took, e.Number)
	}
	return err
}

// count returns how many entries it took so far.
func (c *taker) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.took)
}

// exporterOf returns an exporter that counts outages and their ends.
func exporterOf(s *shelf, c audit.Collector) (x *audit.Exporter, changes *int) {
	failing, changes := false, new(int)
	return &audit.Exporter{
		Store: s, Collector: c, Leases: lease.Rules{Life: 15 * time.Second, Now: time.Now, Rand: rand.Reader},
		Noted: func(err error) {
			if (err != nil) != failing {
				failing = err != nil
				*changes++
			}
		},
		Ended: func() {}, Failed: func(error) {},
	}, changes
}

// running runs an exporter until stop is called.
func running(x *audit.Exporter) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); x.Run(ctx) }()
	return func() { cancel(); <-done }
}

// numbered reports whether a list has each number from 1 to last, and the first ones of each in order.
func numbered(took []int64, last int64) bool {
	var first []int64
	for _, n := range took {
		if !slices.Contains(first, n) {
			first = append(first, n)
		}
	}
	return int64(len(first)) == last && slices.IsSorted(first)
}

func TestExportInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &shelf{entries: 1234}, &taker{}
		x, changes := exporterOf(s, c)
		stop := running(x)
		time.Sleep(2 * time.Second)
		s.set(func() { s.entries = 1300 })
		time.Sleep(2 * time.Second)
		stop()
		if !numbered(c.took, 1300) || len(c.took) != 1300 || s.position != 1300 || *changes != 0 {
			t.Errorf("%d entries, position %d, %d outages", len(c.took), s.position, *changes)
		}
		if s.holder != (lease.Lease{}) {
			t.Error("a process that stopped has kept the lease")
		}
	})
}

// TestExportOneProcess has two processes on one database. The second goes on when the first one ends.
func TestExportOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, first, second := &shelf{entries: 10}, &taker{}, &taker{}
		x, _ := exporterOf(s, first)
		y, _ := exporterOf(s, second)
		stopX := running(x)
		time.Sleep(time.Second)
		stopY := running(y)
		time.Sleep(time.Minute)
		if first.count() != 10 || second.count() != 0 {
			t.Errorf("%d and %d entries", first.count(), second.count())
		}
		stopX()
		s.set(func() { s.entries = 20 })
		time.Sleep(time.Minute)
		stopY()
		if !numbered(slices.Concat(first.took, second.took), 20) || len(second.took) != 10 {
			t.Errorf("%d and %d entries", len(first.took), len(second.took))
		}
	})
}

// TestExportKilled has a process vanish between a delivery and the new position.
func TestExportKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &shelf{entries: 3}, &taker{}
		s.holder = lease.Lease{Token: "killed", Until: time.Now().Add(15 * time.Second)}
		x, _ := exporterOf(s, c)
		stop := running(x)
		time.Sleep(14 * time.Second)
		if c.count() != 0 {
			t.Error("delivered beside a lease of another process")
		}
		time.Sleep(10 * time.Second)
		s.set(func() { s.moving, s.entries = errors.New("the database is away"), 5 })
		time.Sleep(10 * time.Second)
		s.set(func() { s.moving = nil })
		time.Sleep(10 * time.Second)
		stop()
		if !numbered(c.took, 5) || len(c.took) < 7 {
			t.Errorf("%v: want all five, and the last two again", c.took)
		}
	})
}

// TestExportLostLease has another process take over while this one is frozen in a delivery.
func TestExportLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &shelf{entries: 3}, &taker{}
		c.take = func(ctx context.Context, _ []audit.Numbered) (int, error) {
			s.set(func() { s.holder = lease.Lease{Token: "other", Until: time.Now().Add(time.Hour)} })
			<-ctx.Done()
			return 0, ctx.Err()
		}
		x, changes := exporterOf(s, c)
		stop := running(x)
		time.Sleep(time.Minute)
		stop()
		if s.position != 0 || *changes != 0 || s.holder.Token != "other" {
			t.Errorf("position %d, %d outages, lease of %q", s.position, *changes, s.holder.Token)
		}
	})
}

// TestExportHardCollectors has collectors that break connections. Each gets all entries in order, and the number of
// changes between outage and service stays small.
func TestExportHardCollectors(t *testing.T) {
	broken := errors.New("the connection was reset")
	for _, x := range []struct {
		name string
		of   func() func(ctx context.Context, list []audit.Numbered) (int, error)
		most int // changes
	}{
		{"ends each connection after one entry", func() func(context.Context, []audit.Numbered) (int, error) {
			return func(_ context.Context, list []audit.Numbered) (int, error) {
				if len(list) > 1 {
					return 1, broken
				}
				return 1, nil
			}
		}, 20},
		{"takes three at a time", func() func(context.Context, []audit.Numbered) (int, error) {
			return func(_ context.Context, list []audit.Numbered) (int, error) {
				if len(list) > 3 {
					return 3, broken
				}
				return len(list), nil
			}
		}, 150},
		{"was away for an hour", func() func(context.Context, []audit.Numbered) (int, error) {
			begin := time.Now()
			return func(_ context.Context, list []audit.Numbered) (int, error) {
				if time.Since(begin) < time.Hour {
					return 0, broken
				}
				return len(list), nil
			}
		}, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := &shelf{entries: 800}, &taker{take: x.of()}
				e, changes := exporterOf(s, c)
				stop := running(e)
				time.Sleep(time.Minute)
				for range 60 { // one entry a minute
					s.set(func() { s.entries++ })
					time.Sleep(time.Minute)
				}
				stop()
				if !numbered(c.took, 860) || *changes > x.most {
					t.Errorf("%d of 860 entries, %d changes", len(c.took), *changes)
				}
			})
		})
	}
}
