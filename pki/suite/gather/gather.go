// SPDX-License-Identifier: Apache-2.0

// Package gather lets goroutines that ask the same kind of question at the same moment share
// one answer to all: eight signatures in the lanes of a vector cost little more than two of
// them one after another, and a statement that reads rows of ten callers little more than one.
//
// Begin with New and Calls.Do. The package starts no goroutines and has no timers: no caller waits
// for another that may not come.
package gather

import (
	"runtime"
	"sync"
)

// Calls gathers calls of one kind. It is safe for concurrent use.
type Calls[Q any] struct {
	most   int
	answer func([]*Q)

	mu   sync.Mutex
	open *group[Q] // that further callers may join
}

// group has the questions of callers who came together.
type group[Q any] struct {
	asked  []*Q
	done   chan struct{} // closed when the answers are there; made by the second caller
	failed any           // the value of a panic
}

// New returns calls whose questions are answered up to most at a time. answer gets at least one
// question and writes its answer into it. Every question appears in one call of answer, which
// begins after the call of Do.
func New[Q any](most int, answer func([]*Q)) *Calls[Q] {
	return &Calls[Q]{most: most, answer: answer}
}

// Do returns when q is answered. The first caller yields the processor. Goroutines that are
// ready to ask do so then, and the first caller answers them all. A caller alone pays for the
// yield, a tenth of a microsecond. If answer panics, Do panics with the same value in all callers.
func (c *Calls[Q]) Do(q *Q) {
	c.mu.Lock()
	if g := c.open; g != nil {
		if g.done == nil {
			g.done = make(chan struct{})
		}
		if g.asked = append(g.asked, q); len(g.asked) == c.most {
			c.open = nil
		}
		c.mu.Unlock()
		<-g.done
		if g.failed != nil {
			panic(g.failed)
		}
		return
	}
	g := &group[Q]{asked: []*Q{q}}
	if c.most > 1 {
		c.open = g
	}
	c.mu.Unlock()

	runtime.Gosched()
	c.serve(g)
}

// serve answers a group, which callers cannot join any more.
func (c *Calls[Q]) serve(g *group[Q]) {
	c.mu.Lock()
	if c.open == g {
		c.open = nil
	}
	c.mu.Unlock()
	defer func() {
		g.failed = recover()
		if g.done != nil {
			close(g.done)
		}
		if g.failed != nil {
			panic(g.failed)
		}
	}()
	c.answer(g.asked)
}
