// SPDX-License-Identifier: Apache-2.0

// Package budget limits what one document may cost: the work done for it, in steps, and the
// memory held for it, in bytes.
//
// Formats begin with [Of], then call [Budget.Spend] and [Budget.Hold]. A caller that wants other
// limits than the ordinary ones puts them into the context with [With] before. The package does
// not measure time or memory: it only counts what the formats report.
//
// A step is about the work of visiting a node of a tree: 5 to 10 ns on a processor of 2024.
// Steps are counted and not measured, so a document has the same outcome on every machine. The
// constants below are the prices of work that is not a loop over nodes or bytes.
//
// A budget is for the whole document: signatures, references, transforms, time stamps, messages
// inside documents and certificates of chains all spend from the same one.
package budget

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Prices in steps.
const (
	// Signature is the price of checking one signature with a public key.
	Signature = 10_000
	// Certificate is the price of parsing one certificate, besides a step for each byte.
	Certificate = 2_000
)

// Limits are the limits for one document.
type Limits struct {
	// Steps is the number of steps of work that is allowed.
	Steps int64
	// Memory is the number of bytes that may be held at once. The garbage collector lets
	// the heap grow to three times as much.
	Memory int64
	// Anonymous reports that the document draws from the part of a [Pool] for callers
	// without a token.
	Anonymous bool
	// Places, if not nil, are where the document does its work between Begin and End, once it
	// has taken 65,536 steps or draws from a [Pool].
	Places *Places
}

// Limits of Ordinary and Anonymous.
const (
	steps         = 40_000_000 // 0.1 to 0.5 s, depending on the work
	stepsPerByte  = 24
	memory        = 64 << 20
	memoryPerByte = 5

	anonymousMemory = 20 << 20
)

// Ordinary returns the limits for a document of size bytes from a caller with a token or from
// the command line. They grow with the document, whose size has limits of its own.
func Ordinary(size int64) Limits {
	size = min(max(size, 0), 1<<40)
	return Limits{Steps: steps + stepsPerByte*size, Memory: memory + memoryPerByte*size}
}

// Anonymous returns the limits for a document that anyone may send. They do not grow with it.
func Anonymous() Limits { return Limits{Steps: steps, Memory: anonymousMemory, Anonymous: true} }

// Values of Exceeded.Kind, for errors.Is. The third is ErrBusy.
var (
	ErrSteps  = errors.New("too many steps")
	ErrMemory = errors.New("too much memory")
)

// Exceeded reports which limit a document exceeded.
type Exceeded struct {
	// Kind is ErrSteps, ErrMemory or ErrBusy.
	Kind error
	// Limit is the limit, in steps or bytes. 0 for ErrBusy.
	Limit int64
}

// Error returns one sentence for the sender of the document.
func (e *Exceeded) Error() string {
	switch e.Kind {
	case ErrBusy:
		return "other documents hold the memory for documents: try again later"
	case ErrMemory:
		return fmt.Sprintf("the document needs more memory than the limit of %d MiB; send a smaller one, or one with fewer elements", e.Limit>>20)
	}
	return fmt.Sprintf("the document needs more than the limit of %d steps of work; send a smaller one, or one with fewer signatures, references or certificates", e.Limit)
}

// Unwrap returns Kind.
func (e *Exceeded) Unwrap() error { return e.Kind }

// Budget counts what a document has cost. Once a limit is exceeded, every call fails with the
// same error. Its methods may be called from several goroutines. A nil *Budget has no limits.
type Budget struct {
	ctx   context.Context
	purse *purse
	part  *part // nil: all of the purse
}

// part is a bound on the counters of a purse that is below its limits.
type part struct {
	steps, memory int64
	failed        atomic.Pointer[Exceeded]
}

// left reports whether n more of what was counted is within a limit of the part. If it is not, the part fails.
func (q *part) left(counted *atomic.Int64, n, limit int64, kind error) *Exceeded {
	if q.failed.Load() == nil && counted.Load()+n > limit {
		q.failed.CompareAndSwap(nil, &Exceeded{kind, limit})
	}
	return q.failed.Load()
}

// Part returns a handle for work that the document can do without: it may use numerator/denominator of what b has left.
// What exceeds that is not counted, and every later call of the handle fails. b does not.
func (b *Budget) Part(numerator, denominator int64) *Budget {
	if b == nil {
		return nil
	}
	p := b.purse
	share := func(counted *atomic.Int64, limit int64) int64 {
		c := counted.Load()
		return c + max(0, limit-c)/denominator*numerator
	}
	memory := p.limits.Memory
	if pool, ok := b.ctx.Value(poolKey{}).(*Pool); ok {
		memory = min(memory, Free+pool.share(p.limits.Anonymous))
	}
	return &Budget{ctx: b.ctx, purse: p, part: &part{steps: share(&p.spent, p.limits.Steps), memory: share(&p.held, memory)}}
}

// purse is the shared state of all handles on one budget.
type purse struct {
	limits      Limits
	spent, held atomic.Int64
	failed      atomic.Pointer[Exceeded]

	visit visit        // of limits.Places
	open  atomic.Int32 // how many calls of Begin have not ended
	drawn atomic.Int64 // bytes drawn from the pool
	mu    sync.Mutex   // held while drawing
}

// New returns a budget with these limits. Spend also fails when ctx is done.
func New(ctx context.Context, l Limits) *Budget {
	return &Budget{ctx: ctx, purse: &purse{limits: l}}
}

type key struct{}

// With returns a context whose formats spend from one budget with these limits.
func With(ctx context.Context, l Limits) context.Context {
	return context.WithValue(ctx, key{}, &purse{limits: l})
}

// Of returns the budget of ctx. If ctx has none, it makes one with the ordinary limits of a
// document of size bytes. Calls with the returned context spend from the same budget.
func Of(ctx context.Context, size int64) (context.Context, *Budget) {
	if p, ok := ctx.Value(key{}).(*purse); ok {
		return ctx, &Budget{ctx: ctx, purse: p}
	}
	n := &ordinary{Context: ctx, purse: purse{limits: Ordinary(size)}}
	n.budget = Budget{ctx: n, purse: &n.purse}
	return n, &n.budget
}

// ordinary is a context with a budget of its own, in one piece of memory: each document of a
// batch has one.
type ordinary struct {
	context.Context
	budget Budget
	purse  purse
}

// Value implements [context.Context].
func (c *ordinary) Value(k any) any {
	if k == (key{}) {
		return &c.purse
	}
	return c.Context.Value(k)
}

// lookEvery is how many steps pass between checks of the context: about half a millisecond.
const lookEvery = 1 << 16

// Spend counts n steps. The error is an *Exceeded or the error of the context. It may wait for a
// place of the limits.
func (b *Budget) Spend(n int64) error {
	if b == nil {
		return nil
	}
	p := b.purse
	if e := p.failed.Load(); e != nil {
		return e
	}
	if q := b.part; q != nil {
		if e := q.left(&p.spent, n, q.steps, ErrSteps); e != nil {
			return e
		}
	}
	now := p.spent.Add(n)
	if now > p.limits.Steps {
		return p.fail(ErrSteps, p.limits.Steps)
	}
	if now/lookEvery != (now-n)/lookEvery {
		if p.limits.Places != nil && p.open.Load() > 0 {
			return p.enter(b.ctx, true)
		}
		return b.ctx.Err()
	}
	return nil
}

// Hold counts n bytes that are about to be allocated. The error is an *Exceeded or the error of the
// context. It may wait for memory of the [Pool] of the context, and for a place of the limits.
func (b *Budget) Hold(n int64) error {
	if b == nil {
		return nil
	}
	p := b.purse
	if e := p.failed.Load(); e != nil {
		return e
	}
	if q := b.part; q != nil {
		if e := q.left(&p.held, n, q.memory, ErrMemory); e != nil {
			return e
		}
	}
	held := p.held.Add(n)
	if held > p.limits.Memory {
		return p.fail(ErrMemory, p.limits.Memory)
	}
	if held > Free+p.drawn.Load() && p.open.Load() > 0 {
		if err := b.draw(); err != nil || p.limits.Places == nil {
			return err
		}
		return p.enter(b.ctx, false) // memory is drawn for work
	}
	return nil
}

// draw draws memory from the pool of the context, if it has one.
func (b *Budget) draw() error {
	pool, ok := b.ctx.Value(poolKey{}).(*Pool)
	if !ok {
		return nil
	}
	p := b.purse
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.drawn.Load()
	n := p.held.Load() - Free - have
	if n <= 0 { // another goroutine has drawn
		return nil
	}
	n = (n + drawn - 1) / drawn * drawn
	if have == 0 { // it may wait for others, who need a place to end
		p.leave()
	}
	switch err := pool.take(b.ctx, n, have, p.limits.Anonymous); {
	case err == ErrBusy:
		return p.fail(ErrBusy, 0)
	case err == ErrMemory:
		return p.fail(ErrMemory, pool.share(p.limits.Anonymous))
	case err != nil:
		return err
	}
	p.drawn.Add(n)
	return nil
}

// Begin begins work on the document. Only between Begin and End does the budget draw from the
// [Pool] of the context. Each Begin needs an End.
func (b *Budget) Begin() { b.purse.open.Add(1) }

// End ends what Begin began. The last End gives back all that was drawn.
func (b *Budget) End() {
	p := b.purse
	if p.open.Add(-1) > 0 {
		return
	}
	p.leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.drawn.Swap(0); n > 0 {
		b.ctx.Value(poolKey{}).(*Pool).give(n, p.limits.Anonymous)
	}
}

// Leave leaves the place of the document of ctx, if it has one. A caller that waits for something else than
// a processor, such as an answer from the network, calls it before.
func Leave(ctx context.Context) {
	if p, ok := ctx.Value(key{}).(*purse); ok {
		p.leave()
	}
}

// Release gives back n bytes of Hold.
func (b *Budget) Release(n int64) {
	if b != nil {
		b.purse.held.Add(-n)
	}
}

// Held returns the number of bytes that are held.
func (b *Budget) Held() int64 {
	if b == nil {
		return 0
	}
	return b.purse.held.Load()
}

// Spent returns the number of steps that were counted.
func (b *Budget) Spent() int64 {
	if b == nil {
		return 0
	}
	return b.purse.spent.Load()
}

func (p *purse) fail(kind error, limit int64) error {
	p.failed.CompareAndSwap(nil, &Exceeded{kind, limit})
	return p.failed.Load()
}

// Err returns the reason to stop: an *Exceeded, the error of the context, or nil. Loops whose
// steps cannot return an error call it.
func (b *Budget) Err() error {
	if b == nil {
		return nil
	}
	if e := b.purse.failed.Load(); e != nil {
		return e
	}
	if b.part != nil {
		if e := b.part.failed.Load(); e != nil {
			return e
		}
	}
	return b.ctx.Err()
}

// Sorting returns the price of sorting n things if one comparison costs each steps.
func Sorting(n int, each int64) int64 {
	return int64(n) * int64(bits.Len(uint(n))) * each
}
