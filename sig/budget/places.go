// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Places are where work for untrusted callers is done. There are few, so however much of it
// arrives, most of the processors serve others. A document enters a place once it has taken 65,536
// steps. Every 65,536 steps it lets the next one in and waits again, in the order of arrival.
// A place rests for as long as it was used. While trusted callers have work (see Yield), it rests
// four times as long, and sixteen times if others wait for it: then untrusted callers send more than
// they need. It is safe for concurrent use.
type Places struct {
	mu   sync.Mutex
	free int
	line list.List     // of chan struct{}, closed when a place is given to who waits; empty if places are free
	used time.Duration // without a rest so far
	busy time.Time     // until then trusted callers have work
}

// NewPlaces returns n places.
func NewPlaces(n int) *Places { return &Places{free: n} }

// leastRest is the shortest rest. Timers are not more exact than that, so shorter uses are added up.
const leastRest = time.Millisecond

// How long places make way after a call of Yield, and how much longer than they were used they rest
// meanwhile, for the only document and for one of several.
const (
	yieldTime    = 100 * time.Millisecond
	longerRests  = 4
	longestRests = 16
)

// Yield reports that a trusted caller has work now: for 100 ms, places rest longer.
func (p *Places) Yield() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = time.Now().Add(yieldTime)
}

// Enter waits for a place. The caller calls leave when the work is done, and waits for nothing
// before that: neither for memory or a turn nor for bytes from the network. The error is that
// of the context.
func (p *Places) Enter(ctx context.Context) (leave func(), err error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	since := time.Now()
	return func() { p.leave(time.Since(since)) }, nil
}

// wait waits for a place. leave follows.
func (p *Places) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	e := p.line.PushBack(ready)
	p.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-ready: // in the meantime
		p.next()
	default:
		p.line.Remove(e)
	}
	return ctx.Err()
}

// leave gives a place to the next one, after the rest for a use.
func (p *Places) leave(used time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used += used; p.used < leastRest {
		p.next()
		return
	}
	rest := p.used
	if time.Now().Before(p.busy) {
		if p.line.Len() > 0 {
			rest *= longestRests
		} else {
			rest *= longerRests
		}
	}
	time.AfterFunc(rest, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.next()
	})
	p.used = 0
}

// next gives a place that is not in use to the first of the line. p.mu is held.
func (p *Places) next() {
	if e := p.line.Front(); e != nil {
		close(p.line.Remove(e).(chan struct{}))
		return
	}
	p.free++
}

// visit is the place of one document.
type visit struct {
	mu    sync.Mutex // held while the document waits, so all its goroutines wait
	since time.Time  // zero: the document has no place
}

// enter enters a place of the limits. With again, it leaves that of the document first; without, that
// one is enough. The error is that of ctx.
func (p *purse) enter(ctx context.Context, again bool) error {
	p.visit.mu.Lock()
	defer p.visit.mu.Unlock()
	if !again && !p.visit.since.IsZero() {
		return nil
	}
	p.leaveLocked()
	if err := p.limits.Places.wait(ctx); err != nil {
		return err
	}
	p.visit.since = time.Now()
	if p.open.Load() <= 0 { // the last End did not see this place
		p.leaveLocked()
	}
	return nil
}

// leave leaves the place of the document, if it has one.
func (p *purse) leave() {
	if p.limits.Places == nil {
		return
	}
	p.visit.mu.Lock()
	defer p.visit.mu.Unlock()
	p.leaveLocked()
}

// leaveLocked is leave. The caller holds visit.mu.
func (p *purse) leaveLocked() {
	if v := &p.visit; !v.since.IsZero() {
		p.limits.Places.leave(time.Since(v.since))
		v.since = time.Time{}
	}
}
