// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/lease"
)

// Numbered is an entry with its number in the audit log.
type Numbered struct {
	Number int64
	Entry
}

// Collector takes copies of audit entries outside of the service.
type Collector interface {
	// Deliver returns nil if the collector has taken all entries. After an error it may have taken some.
	Deliver(ctx context.Context, list []Numbered) error
}

// ExportStore keeps the position of the export, with the lease of the process that exports.
type ExportStore interface {
	// ClaimExport leases the export if no other process has it, and returns the number of the last entry
	// that was delivered.
	ClaimExport(ctx context.Context, l lease.Lease, now time.Time) (position int64, claimed bool, err error)
	ExtendExport(ctx context.Context, l lease.Lease) (held bool, err error)
	// MoveExport stores a new position. It reports false if the lease is lost.
	MoveExport(ctx context.Context, token string, position int64) (held bool, err error)
	ReleaseExport(ctx context.Context, token string) error
	// Following returns at most limit entries after a position, in the order of their numbers. An entry is
	// returned only when no entry with a smaller number can appear any more.
	Following(ctx context.Context, position int64, limit int) ([]Numbered, error)
}

// Exporter delivers each audit entry to a collector at least once, in the order of the numbers. Any number of
// processes may run it on one database: the lease lets one of them deliver. The position moves after the
// delivery, so entries that were delivered before a crash come again.
type Exporter struct {
	Store     ExportStore
	Collector Collector
	Leases    lease.Rules
	Noted     func(err error) // takes the result of each delivery
	Ended     func()          // is called when this process delivers no longer
	Failed    func(err error) // takes errors of the store
}

const (
	exportPoll  = time.Second      // between two looks for new entries
	exportBatch = 500              // entries of one delivery
	longestWait = 30 * time.Second // after failed deliveries
	firstCalm   = time.Minute      // before as many entries as have failed are tried again
	longestCalm = time.Hour
)

// Run delivers until ctx ends.
func (x *Exporter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := x.turn(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, lease.ErrLost) {
			x.Failed(err)
		}
		wait(ctx, x.Leases.Life/3)
	}
}

// turn delivers for as long as this process has the lease. It returns nil at once if another one has it.
func (x *Exporter) turn(ctx context.Context) error {
	l, err := x.Leases.New()
	if err != nil {
		return err
	}
	position, claimed, err := x.Store.ClaimExport(ctx, l, x.Leases.Now())
	if err != nil || !claimed {
		return err
	}
	defer x.Ended()
	err = x.Leases.Hold(ctx, l, x.Store.ExtendExport, func(ctx context.Context) error { return x.deliver(ctx, l, position) })
	if errors.Is(err, lease.ErrLost) {
		return err
	}
	// The next process need not wait for the end of the lease, also when this one stops.
	return errors.Join(err, x.Store.ReleaseExport(context.WithoutCancel(ctx), l.Token))
}

// deliver delivers all entries after a position until ctx ends or the store fails.
//
// A failed delivery is followed by one of a single entry, and the next ones grow. So a collector that is slow, or
// that ends each connection after one entry, gets on all the same. The number that has failed is not tried again
// for a while.
func (x *Exporter) deliver(ctx context.Context, l lease.Lease, position int64) error {
	size, most := exportBatch, exportBatch
	var grows time.Time // when most is lifted again
	calm, pause := firstCalm, exportPoll
	for ctx.Err() == nil {
		if !x.Leases.Now().Before(grows) {
			most = exportBatch
		}
		size = min(size, most)
		list, err := x.Store.Following(ctx, position, size)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			wait(ctx, exportPoll)
			continue
		}
		err = x.Collector.Deliver(ctx, list)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.Noted(err)
		if err != nil {
			if len(list) > 1 {
				most, grows = max(1, len(list)/2), x.Leases.Now().Add(calm)
				calm = min(2*calm, longestCalm)
			}
			size = 1
			wait(ctx, pause)
			pause = min(2*pause, longestWait)
			continue
		}
		if len(list) > 1 {
			calm = firstCalm
		}
		pause = exportPoll
		position = list[len(list)-1].Number
		held, err := x.Store.MoveExport(ctx, l.Token, position)
		if err != nil {
			return err
		}
		if !held {
			return lease.ErrLost
		}
		if len(list) < size { // what comes next can share a delivery
			wait(ctx, exportPoll)
		}
		size = min(2*size, exportBatch)
	}
	return ctx.Err()
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
