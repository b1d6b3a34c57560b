// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"tamga/internal/domain/fault"
)

// ErrClosed is the error of units that arrive after Close.
var ErrClosed = errors.New("store: the database is closed")

const (
	queueLength = 1024 // units that may wait; when the queue is full, callers wait to enter it
	batchLength = 256  // units of one transaction
	// batchTime bounds a transaction, and on PostgreSQL a gathered statement without
	// Limits.Call, when the database hangs.
	batchTime = 30 * time.Second
)

// Committer writes the small changes of many requests in one transaction, so that they
// share one flush to disk. It does not wait for more units, but lets callers enter who are ready
// to run: while one batch commits, the next one gathers. A single caller pays only for its own commit, and many callers share
// one.
//
// It is for SQLite, which has one writer. On PostgreSQL units run alone (see alone), and
// audit entries gather (see gatherer).
type Committer struct {
	db    *DB
	queue chan *unit
	done  chan struct{}

	batches, units atomic.Int64 // that were committed or refused

	mu     sync.RWMutex // held shared while a unit enters the queue
	closed bool
}

// unit is the work of one caller in the queue.
type unit struct {
	ctx    context.Context
	fn     func(context.Context) error
	single bool  // fn runs one statement
	entry  []any // audit entry instead of fn; no unit reads the audit log
	state  atomic.Int32
	answer chan outcome // buffered: the committer never waits for a caller
}

const (
	unitWaiting int32 = iota
	unitTaken
	unitAbandoned
)

type outcome struct {
	err   error
	panic any
}

func newCommitter(db *DB) *Committer {
	c := &Committer{db: db, queue: make(chan *unit, queueLength), done: make(chan struct{})}
	go c.loop()
	return c
}

// unit implements units. fn must run only statements and nothing slow: every other writer
// waits for it. A unit that rolls back does not affect the others of its batch.
func (c *Committer) unit(ctx context.Context, fn func(ctx context.Context) error) error {
	return c.do(&unit{ctx: ctx, fn: fn})
}

// single implements units. A single statement needs no savepoint, which would cost more
// than the statement. If the statement fails, the units of the batch run again one by one.
func (c *Committer) single(ctx context.Context, fn func(ctx context.Context) error) error {
	return c.do(&unit{ctx: ctx, fn: fn, single: true})
}

func (c *Committer) do(u *unit) error {
	if err := c.begin(u); err != nil {
		return err
	}
	return c.wait(u.ctx, u)
}

// begin puts a unit into the queue.
func (c *Committer) begin(u *unit) error {
	u.answer = make(chan outcome, 1)
	return c.enter(u)
}

// wait returns the error of a unit. The unit of an audit entry may still be written after
// ctx ends, because it does not change the caller's data.
func (c *Committer) wait(ctx context.Context, u *unit) error {
	var o outcome
	select {
	case o = <-u.answer:
	case <-ctx.Done():
		if u.state.CompareAndSwap(unitWaiting, unitAbandoned) || u.fn == nil {
			return waited(ctx, ctx)
		}
		o = <-u.answer
	}
	if o.panic != nil {
		panic(o.panic)
	}
	return o.err
}

func (c *Committer) enter(u *unit) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return ErrClosed
	}
	select {
	case c.queue <- u:
		return nil
	default:
	}
	select {
	case c.queue <- u:
		return nil
	case <-u.ctx.Done():
		return waited(u.ctx, u.ctx)
	}
}

// Close accepts no more units, finishes the accepted ones and returns.
func (c *Committer) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.queue)
	}
	c.mu.Unlock()
	<-c.done
}

func (c *Committer) loop() {
	defer close(c.done)
	batch := make([]*unit, 0, batchLength)
	for u := range c.queue {
		batch = take(batch[:0], u)
		// Units of callers who are ready to run share this batch. As long as that brings more of
		// them, others become ready.
		for n := -1; n < len(c.queue) && n < batchLength; {
			n = len(c.queue)
			runtime.Gosched()
		}
	gather:
		for len(batch) < batchLength {
			select {
			case u, open := <-c.queue:
				if !open {
					break gather
				}
				batch = take(batch, u)
			default:
				break gather
			}
		}
		c.commit(batch)
		clear(batch)
	}
}

// take appends a unit if its caller still waits.
func take(batch []*unit, u *unit) []*unit {
	if u.state.CompareAndSwap(unitWaiting, unitTaken) {
		batch = append(batch, u)
	}
	return batch
}

// commit completes a batch and answers every unit of it.
func (c *Committer) commit(batch []*unit) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTime)
	defer cancel()
	c.commitWithin(ctx, batch)
}

// commitWithin is commit until ctx ends.
func (c *Committer) commitWithin(ctx context.Context, batch []*unit) {
	if len(batch) == 0 {
		return
	}
	c.batches.Add(1)
	c.units.Add(int64(len(batch)))
	outcomes := make([]outcome, len(batch))
	var final bool
	err := c.db.retry(ctx, func() (err error) {
		clear(outcomes)
		final, err = c.commitOnce(ctx, batch, outcomes)
		return err
	})
	if err != nil && !final && len(batch) > 1 {
		// A unit in the batch broke the shared transaction. Nothing of it was kept, so
		// each unit gets its own transaction.
		for i := range batch {
			c.commitWithin(ctx, batch[i:i+1])
		}
		return
	}
	err = outage(ctx, err)
	for i, u := range batch {
		if err != nil {
			outcomes[i] = outcome{err: err}
		}
		u.answer <- outcomes[i]
	}
}

// commitOnce runs the batch in one transaction. final means that the units must not run
// again one by one: no transaction could be opened, the connection was lost, the commit
// itself failed, or the batch used up its time.
func (c *Committer) commitOnce(ctx context.Context, batch []*unit, outcomes []outcome) (final bool, err error) {
	defer func() { final = final || err != nil && (ctx.Err() != nil || c.db.lost(err)) }()
	t, err := c.db.begin(ctx, sql.LevelReadCommitted)
	if err != nil {
		return true, err
	}
	defer t.rollback()
	if len(batch) == 1 && batch[0].fn != nil {
		keep, err := c.run(ctx, t, batch[0], &outcomes[0])
		if !keep || err != nil {
			return false, err
		}
	} else if err := c.runAll(ctx, t, batch, outcomes); err != nil {
		return false, err
	}
	if err := t.commit(); err != nil {
		return !retryable(err), fmt.Errorf("store: committing: %w", err)
	}
	return false, nil
}

// runAll runs the units of a batch one after another, then adds the audit entries.
func (c *Committer) runAll(ctx context.Context, t *transaction, batch []*unit, outcomes []outcome) error {
	var entries []*unit
	var rest []int // indexes in batch of units with a function
	for i, u := range batch {
		if u.fn == nil {
			entries = append(entries, u)
		} else {
			rest = append(rest, i)
		}
	}
	open := false // the last unit left a savepoint for the next one
	for k, i := range rest {
		u, o := batch[i], &outcomes[i]
		if u.single {
			if err := c.runAmong(ctx, t, u, o); err != nil {
				return err
			}
			continue
		}
		next := k+1 < len(rest) && !batch[rest[k+1]].single
		if err := c.runApart(ctx, t, u, o, open, next); err != nil {
			return err
		}
		open = next
	}
	return addAll(ctx, t, entries)
}

// run calls the function of a unit. An error means that the transaction itself is no
// longer usable. The error of the unit is in its outcome.
func (c *Committer) run(ctx context.Context, batch *transaction, u *unit, o *outcome) (keep bool, err error) {
	t := &transaction{work: batch.work}
	// Keep the values of the caller's context, but not its end: a driver that is
	// interrupted in the middle of a statement drops the connection and with it the work
	// of all other units. SQLite cannot be interrupted where it could hang, in the file
	// system, so the context is not watched there. A PostgreSQL server is bounded by the
	// transaction.
	uctx := context.WithoutCancel(u.ctx)
	func() {
		defer func() {
			if p := recover(); p != nil {
				o.panic = fmt.Sprintf("%v, in a unit of the committer:\n%s", p, debug.Stack())
			}
		}()
		o.err = u.fn(c.db.within(uctx, t))
	}()
	switch {
	case o.panic != nil:
		return false, nil
	case retryable(o.err) || c.db.lost(o.err):
		return false, o.err
	case ctx.Err() != nil:
		return false, fmt.Errorf("store: a batch did not end in its time: %w", ctx.Err())
	case t.spoiled != nil:
		if o.err == nil {
			o.err = fmt.Errorf("store: rolled back by a nested unit: %w", t.spoiled)
		}
		return false, nil
	}
	return fault.Commits(o.err), nil
}

// runAmong is run for a single statement without a savepoint. Its failure is an error,
// because the transaction may be unusable after it.
func (c *Committer) runAmong(ctx context.Context, t *transaction, u *unit, o *outcome) error {
	keep, err := c.run(ctx, t, u, o)
	if err == nil && !keep {
		err = errors.New("store: a statement of the batch failed")
	}
	return err
}

// runApart is run inside a savepoint. open: there is a savepoint already. next: another
// unit needs one after this.
func (c *Committer) runApart(ctx context.Context, t *transaction, u *unit, o *outcome, open, next bool) error {
	if !open {
		if _, err := t.exec(ctx, "SAVEPOINT unit", nil); err != nil {
			return fmt.Errorf("store: opening a savepoint: %w", err)
		}
	}
	keep, err := c.run(ctx, t, u, o)
	if err != nil {
		return err
	}
	if keep {
		if err = c.release(ctx, t, next); err == nil {
			return nil
		}
		o.err = fmt.Errorf("store: keeping a unit: %w", err)
	}
	if _, err := t.exec(ctx, "ROLLBACK TO SAVEPOINT unit", nil); err != nil {
		return fmt.Errorf("store: undoing a unit: %w", err)
	}
	if next {
		return nil // the next unit begins at the savepoint that was rolled back to
	}
	if err := c.release(ctx, t, false); err != nil {
		return fmt.Errorf("store: closing a savepoint: %w", err)
	}
	return nil
}

// release closes a savepoint and opens another for the next unit, if there is one.
func (c *Committer) release(ctx context.Context, t *transaction, next bool) error {
	if _, err := t.exec(ctx, "RELEASE SAVEPOINT unit", nil); err != nil || !next {
		return err
	}
	_, err := t.exec(ctx, "SAVEPOINT unit", nil)
	return err
}
