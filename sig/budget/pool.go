// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Bounds of drawing from a Pool, in bytes.
const (
	// Free is what every document may hold without drawing, so that small documents never wait.
	Free = 256 << 10
	// drawn is the unit of drawing.
	drawn = 256 << 10
)

// ErrBusy is the Kind of an Exceeded for a document that may be sent again later: other documents
// hold the memory of the process.
var ErrBusy = errors.New("the memory for documents is in use")

// Pool is the memory that all documents of a process may hold together. A document draws from it
// as it grows beyond [Free], and gives everything back when its work ends. It is safe for
// concurrent use.
//
// A document that has drawn nothing yet waits a while for memory. One that has drawn never waits,
// so documents cannot wait for each other. Half of the memory is for documents that have begun.
type Pool struct {
	capacity  int64 // bytes
	anonymous int64 // bytes of it that documents of callers without a token may hold together
	wait      time.Duration

	mu    sync.Mutex
	used  [2]int64     // of all documents, and of the documents of anonymous callers
	lines [2]list.List // of *waiting: callers with a token, who go first, and anonymous callers

	refused int64 // how often ErrBusy was returned

	turns [2]chan struct{} // of Budget.Alone, for callers with a token and anonymous callers
}

type waiting struct {
	n     int64
	ready chan struct{} // closed when the memory is drawn
}

// NewPool returns a pool of so many bytes. Documents of anonymous callers together hold at most a quarter.
// A document waits for its first memory at most for the duration wait.
func NewPool(bytes int64, wait time.Duration) *Pool {
	return &Pool{capacity: bytes, anonymous: bytes / 4, wait: wait, turns: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}}
}

type poolKey struct{}

// Within returns a context whose documents draw from the pool.
func Within(ctx context.Context, p *Pool) context.Context {
	return context.WithValue(ctx, poolKey{}, p)
}

// Used returns the bytes that documents have drawn.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used[0]
}

// Usage is the state of a pool.
type Usage struct {
	Most, Used, UsedByAnonymous int64 // bytes
	Waiting                     int   // documents that wait for their first memory
	Refused                     int64 // how often a document was sent away because of others, since the pool was made
}

// Usage returns the state of the pool.
func (p *Pool) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Usage{Most: p.capacity, Used: p.used[0], UsedByAnonymous: p.used[1], Waiting: p.lines[0].Len() + p.lines[1].Len(), Refused: p.refused}
}

// share returns the most bytes of a document's kind.
func (p *Pool) share(anonymous bool) int64 {
	if anonymous {
		return p.anonymous
	}
	return p.capacity
}

// fits reports whether n bytes can be drawn now. have is what the document has drawn.
func (p *Pool) fits(n, have int64, anonymous bool) bool {
	all, own := p.capacity, p.anonymous
	if have == 0 {
		all, own = all/2, own/2
	}
	within := func(used, most int64) bool { return used == have || used+n <= most }
	return within(p.used[0], all) && p.used[0]+n <= p.capacity &&
		(!anonymous || within(p.used[1], own) && p.used[1]+n <= p.anonymous)
}

func (p *Pool) add(n int64, anonymous bool) {
	p.used[0] += n
	if anonymous {
		p.used[1] += n
	}
}

// take draws n bytes for a document that has drawn have bytes. The error is ErrMemory if not even
// the empty pool has so many, ErrBusy, or that of ctx.
func (p *Pool) take(ctx context.Context, n, have int64, anonymous bool) error {
	if have+n > p.share(anonymous) {
		return ErrMemory
	}
	p.mu.Lock()
	if p.fits(n, have, anonymous) {
		p.add(n, anonymous)
		p.mu.Unlock()
		return nil
	}
	if have > 0 {
		p.refused++
		p.mu.Unlock()
		return ErrBusy
	}
	w := &waiting{n: n, ready: make(chan struct{})}
	line := p.line(anonymous)
	e := line.PushBack(w)
	p.mu.Unlock()
	late := time.NewTimer(p.wait)
	defer late.Stop()
	err := ErrBusy
	select {
	case <-w.ready:
		return nil
	case <-late.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.ready: // in the meantime
		return nil
	default:
	}
	line.Remove(e)
	if err == ErrBusy {
		p.refused++
	}
	return err
}

func (p *Pool) line(anonymous bool) *list.List {
	if anonymous {
		return &p.lines[1]
	}
	return &p.lines[0]
}

// give gives back n bytes, and lets those begin for whom there is enough now.
func (p *Pool) give(n int64, anonymous bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(-n, anonymous)
	for _, of := range []bool{false, true} {
		line := p.line(of)
		for e := line.Front(); e != nil; {
			next := e.Next()
			if w := e.Value.(*waiting); p.fits(w.n, 0, of) {
				p.add(w.n, of)
				line.Remove(e)
				close(w.ready)
			}
			e = next
		}
	}
}

// Alone waits until no other document does what Alone is for: work that takes more memory than a
// document may hold, and has a bound of its own. Callers with a token and anonymous callers have a
// turn each, so at most two documents of the pool do such work. The caller calls end when it is
// done, and not Hold before that: another document could wait for both. The error is an *Exceeded
// or that of the context. Without a pool nothing waits.
func (b *Budget) Alone() (end func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	pool, ok := b.ctx.Value(poolKey{}).(*Pool)
	if !ok {
		return func() {}, nil
	}
	turn := pool.turns[0]
	if b.purse.limits.Anonymous {
		turn = pool.turns[1]
	}
	end = func() { <-turn }
	select {
	case turn <- struct{}{}:
		return end, nil
	default:
	}
	b.purse.leave() // who has the turn may need it
	late := time.NewTimer(pool.wait)
	defer late.Stop()
	select {
	case turn <- struct{}{}:
		return end, nil
	case <-late.C:
		pool.mu.Lock()
		pool.refused++
		pool.mu.Unlock()
		return nil, b.purse.fail(ErrBusy, 0)
	case <-b.ctx.Done():
		return nil, b.ctx.Err()
	}
}
