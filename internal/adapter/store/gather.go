// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/domain/fault"
)

// gatherer runs one statement for many callers, because on PostgreSQL most of what a small
// statement costs is the round trip and the start of its plan. A caller that finds no
// statement under way starts one. Callers that come meanwhile share the next one. A
// statement that takes longer than patience, for example on a silent connection, no longer
// holds up the next one.
type gatherer[T any] struct {
	gathering
	limits Limits
	run    func(ctx context.Context, items []T) // answers every item
	queue  chan T
	done   chan struct{}

	mu     sync.RWMutex // held shared while an item enters the queue
	closed bool
}

// gathering is how items gather.
type gathering struct {
	most     int           // items of one statement
	flights  int           // statements under way at a time
	patience time.Duration // how long a statement holds up the next one
}

func newGatherer[T any](how gathering, limits Limits, run func(ctx context.Context, items []T)) *gatherer[T] {
	g := &gatherer[T]{gathering: how, limits: limits, run: run, queue: make(chan T, queueLength), done: make(chan struct{})}
	go g.loop()
	return g
}

// enter puts an item into the queue. It waits while the queue is full, for at most
// Limits.Call.
func (g *gatherer[T]) enter(ctx context.Context, item T) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return ErrClosed
	}
	select {
	case g.queue <- item:
		return nil
	default:
	}
	bounded, cancel := g.limits.within(ctx)
	defer cancel()
	select {
	case g.queue <- item:
		return nil
	case <-bounded.Done():
		return waited(ctx, bounded)
	}
}

// waited is the error of a caller who waited for others until bounded ended.
func waited(ctx, bounded context.Context) error {
	return outage(ctx, fmt.Errorf("store: waiting for earlier statements: %w", context.Cause(bounded)))
}

// close accepts no more items, finishes the accepted ones and returns.
func (g *gatherer[T]) close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.queue)
	}
	g.mu.Unlock()
	<-g.done
}

func (g *gatherer[T]) loop() {
	defer close(g.done)
	var (
		items    []T
		underWay int
		newest   int  // number of the newest statement
		hold     bool // it is under way and holds up the next one
		ended    = make(chan int, g.flights)
		overdue  = time.NewTimer(g.patience)
	)
	overdue.Stop()
	for queue := g.queue; queue != nil || len(items) > 0 || underWay > 0; {
		from := queue
		if len(items) == g.most {
			from = nil
		}
		select {
		case item, open := <-from:
			if open {
				items = append(items, item)
			} else {
				queue = nil
			}
		case n := <-ended:
			underWay--
			if n == newest {
				hold = false
				overdue.Stop()
			}
		case <-overdue.C:
			hold = false
		}
		if len(items) == 0 || hold && len(items) < g.most || underWay == g.flights {
			continue
		}
		items = g.more(items)
		underWay++
		newest++
		hold = true
		overdue.Reset(g.patience)
		go func(n int, items []T) {
			ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(g.limits.Call, batchTime))
			defer cancel()
			g.run(ctx, items)
			ended <- n
		}(newest, items)
		items = nil
	}
}

// more adds what is in the queue already.
func (g *gatherer[T]) more(items []T) []T {
	for len(items) < g.most {
		select {
		case item, open := <-g.queue:
			if !open {
				return items
			}
			items = append(items, item)
		default:
			return items
		}
	}
	return items
}

// eachAlone reports whether the items of a statement must run one by one: the server refused
// the statement and kept nothing of it, maybe for one of them only.
func eachAlone(err error, items int) bool {
	_, is := fault.AsOutage(err)
	return err != nil && !is && items > 1
}

// lookups reads a row by a text key at a time, for many callers together: on PostgreSQL with
// one statement for all of them (gatherer), on SQLite from the same pages (joint).
type lookups[A any] struct {
	db             *DB
	single, shared string // queries of one key, and of many
	timed          bool   // the query uses the time
	scan           func(r row, before ...any) (A, error)
	waiting        *gatherer[*lookup[A]] // on PostgreSQL
	joint          *joint[A]             // on SQLite
}

// lookup is a key that waits.
type lookup[A any] struct {
	ctx    context.Context // its end is the end of the wait
	key    string
	at     int64
	answer chan found[A] // buffered: the statement never waits for a caller
}

// found is the answer to a lookup.
type found[A any] struct {
	value A
	found bool
	err   error
}

// lookupGathering is for statements that take less than a millisecond when the server is
// near. More keys in one statement save little more.
var lookupGathering = gathering{most: 64, flights: 4, patience: 2 * time.Millisecond}

// newLookups returns the lookups by a query with the parameters $1, a text, and $2, a
// time, which it may leave out. scan scans the columns of the query after those of before.
func newLookups[A any](db *DB, query string, scan func(r row, before ...any) (A, error)) *lookups[A] {
	l := &lookups[A]{db: db, single: query, timed: strings.Contains(query, "$2"), scan: scan}
	if db.engine == postgresEngine {
		// OFFSET 0 keeps the planner from merging the query into the rest, so each key is
		// looked up as if it were alone. The arrays are in subselects to hide their
		// lengths: a plan that was made for two keys would look cheaper than the general
		// one, and PostgreSQL would plan again and again.
		l.shared = `SELECT w.n, s.* FROM unnest((SELECT CAST($1 AS TEXT[])), (SELECT CAST($2 AS BIGINT[]))) WITH ORDINALITY AS w (key, at, n)
			CROSS JOIN LATERAL (` + strings.NewReplacer("$1", "w.key", "$2", "w.at").Replace(query) + ` OFFSET 0) s`
		l.waiting = newGatherer(lookupGathering, db.limits, l.readAll)
	}
	if file, is := db.database.(*sqliteFile); is {
		l.joint = newJoint(file, query, l.timed, scan)
	}
	return l
}

// read returns the row of a key. found is false if there is none. The statement that reads
// it begins after the call of read.
func (l *lookups[A]) read(ctx context.Context, key string, at time.Time) (value A, ok bool, err error) {
	if l.db.transaction(ctx) != nil {
		args := []any{key, millis(at)}
		if !l.timed {
			args = args[:1]
		}
		return one(ctx, l.db, func(r row) (A, error) { return l.scan(r) }, l.single, args...)
	}
	if l.joint != nil {
		return l.joint.read(ctx, key, at)
	}
	bounded, cancel := l.db.limits.within(ctx)
	defer cancel()
	q := &lookup[A]{ctx: bounded, key: legibleText(key), at: millis(at), answer: make(chan found[A], 1)}
	if err := l.waiting.enter(ctx, q); err != nil {
		return value, false, err
	}
	select {
	case a := <-q.answer:
		return a.value, a.found, a.err
	case <-bounded.Done():
		return value, false, waited(ctx, bounded)
	}
}

// readAll reads the rows of keys with one statement and answers their callers.
func (l *lookups[A]) readAll(ctx context.Context, asked []*lookup[A]) {
	var (
		list  []*lookup[A]
		keys  []string
		times []int64
	)
	for _, q := range asked {
		if q.ctx.Err() == nil { // the caller still waits
			list, keys, times = append(list, q), append(keys, q.key), append(times, q.at)
		}
	}
	if len(list) == 0 {
		return
	}
	answers := make([]found[A], len(list))
	_, err := allOf(ctx, l.db.database, lite.Keep, func(r row) (struct{}, error) {
		var n int64
		var v A
		err := unpanicked(func() (err error) {
			v, err = l.scan(r, &n)
			return err
		})
		if n < 1 || n > int64(len(answers)) {
			return struct{}{}, errors.Join(err, errors.New("a row without a key"))
		}
		if err != nil { // an error of this caller only
			err = fmt.Errorf("store: %w", err)
		}
		answers[n-1] = found[A]{v, true, err}
		return struct{}{}, nil
	}, l.shared, []any{keys, times})
	if eachAlone(err, len(list)) {
		for i := range list {
			l.readAll(ctx, list[i:i+1])
		}
		return
	}
	for i, q := range list {
		if err != nil {
			answers[i] = found[A]{err: err}
		}
		q.answer <- answers[i]
	}
}

// unpanicked turns a panic of f into an error, because others wait for the goroutine of the
// statement.
func unpanicked(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v, in a statement for many callers:\n%s", p, debug.Stack())
		}
	}()
	return f()
}

func (l *lookups[A]) close() {
	if l.waiting != nil {
		l.waiting.close()
	}
}
