// Package budget bounds what one document may cost: the work that is done for it, in steps, and
// the memory that is held for it, in bytes. Formats begin with [Of]; a caller who wants other
// bounds than the ordinary ones puts them into the context with [With] before.
//
// A step is about what it takes to visit a node of a tree: 5 to 10 ns on a processor of 2024.
// Steps are counted, not measured, so that a document has the same outcome on every machine. The
// constants below price what is not a loop over nodes or bytes.
//
// A budget is for the document as a whole: signatures, references, transforms, time stamps,
// messages inside of documents and certificates of chains spend from the same one.
package budget

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
)

// Prices in steps.
const (
	// Signature is one signature checked with a public key.
	Signature = 10_000
	// Certificate is one certificate parsed, besides a step for each of its bytes.
	Certificate = 2_000
)

// Limits are the bounds of one document.
type Limits struct {
	// Steps is how much work may be done.
	Steps int64
	// Memory is how many bytes may be held at once. The garbage collector lets the heap grow
	// to three times of that.
	Memory int64
	// Rest, when not nil, is called every 65,536 steps once a tenth of Steps is spent: what
	// takes long lets others go first.
	Rest func()
}

// Bounds of Ordinary and Stranger.
const (
	steps         = 40_000_000 // 0.1 to 0.5 s, by what they are spent on
	stepsPerByte  = 24
	memory        = 64 << 20
	memoryPerByte = 5

	strangerMemory = 20 << 20
)

// Ordinary are the bounds of a document of size bytes that comes from a caller with a token or
// from the command line: they grow with the document, whose size has limits of its own.
func Ordinary(size int64) Limits {
	size = min(max(size, 0), 1<<40)
	return Limits{Steps: steps + stepsPerByte*size, Memory: memory + memoryPerByte*size}
}

// Stranger are the bounds of a document that anybody may send. They do not grow with it.
func Stranger() Limits { return Limits{Steps: steps, Memory: strangerMemory} }

// What Exceeded may be, for errors.Is.
var (
	ErrSteps  = errors.New("too many steps")
	ErrMemory = errors.New("too much memory")
)

// Exceeded says which bound a document passed.
type Exceeded struct {
	// Kind is ErrSteps or ErrMemory.
	Kind error
	// Limit is the bound.
	Limit int64
}

// Error is one sentence for whoever sent the document.
func (e *Exceeded) Error() string {
	if e.Kind == ErrMemory {
		return fmt.Sprintf("the document needs more than %d MiB of memory to be read, which is the limit; send a smaller one, or one with fewer elements", e.Limit>>20)
	}
	return fmt.Sprintf("the document asks for more than %d steps of work, which is the limit: fewer signatures, references, certificates or simpler XPath expressions are needed", e.Limit)
}

// Unwrap returns Kind.
func (e *Exceeded) Unwrap() error { return e.Kind }

// Budget is what a document may still cost. Once a bound was passed every call fails with the
// same error. Its methods may be called from several goroutines. A nil *Budget has no bounds.
type Budget struct {
	ctx   context.Context
	purse *purse
}

// purse is what all handles on one budget share.
type purse struct {
	limits      Limits
	spent, held atomic.Int64
	failed      atomic.Pointer[Exceeded]
}

// New returns a budget with these bounds. Spend also fails when ctx has ended.
func New(ctx context.Context, l Limits) *Budget {
	return &Budget{ctx: ctx, purse: &purse{limits: l}}
}

type key struct{}

// With returns a context whose formats spend from one budget with these bounds.
func With(ctx context.Context, l Limits) context.Context {
	return context.WithValue(ctx, key{}, &purse{limits: l})
}

// Of returns the budget of ctx. A context without one gets the ordinary bounds of a document of
// size bytes; what is called with the context returned spends from the same budget.
func Of(ctx context.Context, size int64) (context.Context, *Budget) {
	p, ok := ctx.Value(key{}).(*purse)
	if !ok {
		p = &purse{limits: Ordinary(size)}
		ctx = context.WithValue(ctx, key{}, p)
	}
	return ctx, &Budget{ctx: ctx, purse: p}
}

// lookEvery is how many steps may pass before the context is looked at: about half a millisecond.
const lookEvery = 1 << 16

// Spend counts n steps. The error is an *Exceeded or that of the context.
func (b *Budget) Spend(n int64) error {
	if b == nil {
		return nil
	}
	p := b.purse
	if e := p.failed.Load(); e != nil {
		return e
	}
	now := p.spent.Add(n)
	if now > p.limits.Steps {
		return p.fail(ErrSteps, p.limits.Steps)
	}
	if now/lookEvery != (now-n)/lookEvery {
		if rest := p.limits.Rest; rest != nil && now > p.limits.Steps/10 {
			rest()
		}
		return b.ctx.Err()
	}
	return nil
}

// Hold counts n bytes that are about to be allocated. The error is an *Exceeded.
func (b *Budget) Hold(n int64) error {
	if b == nil {
		return nil
	}
	p := b.purse
	if e := p.failed.Load(); e != nil {
		return e
	}
	if p.held.Add(n) > p.limits.Memory {
		return p.fail(ErrMemory, p.limits.Memory)
	}
	return nil
}

// Release takes back n bytes of Hold.
func (b *Budget) Release(n int64) {
	if b != nil {
		b.purse.held.Add(-n)
	}
}

// Held is how many bytes are held.
func (b *Budget) Held() int64 {
	if b == nil {
		return 0
	}
	return b.purse.held.Load()
}

// Spent is how many steps were counted.
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

// Err is why the work has to end: an *Exceeded, the error of the context, or nil. Loops whose
// steps have no error to return look at it.
func (b *Budget) Err() error {
	if b == nil {
		return nil
	}
	if e := b.purse.failed.Load(); e != nil {
		return e
	}
	return b.ctx.Err()
}

// Sorting is what it costs to sort n things that take each steps to compare.
func Sorting(n int, each int64) int64 {
	return int64(n) * int64(bits.Len(uint(n))) * each
}
