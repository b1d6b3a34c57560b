// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

type question struct {
	n, answer int
	group     int // how many were answered together
}

func double(asked []*question) {
	for _, q := range asked {
		q.answer, q.group = 2*q.n, len(asked)
	}
}

// TestDo: callers at the same time get their own answers, in groups that are not too large.
func TestDo(t *testing.T) {
	for _, most := range []int{1, 2, 8} {
		var answered atomic.Int64
		c := New(most, func(asked []*question) {
			if len(asked) == 0 || len(asked) > most {
				t.Errorf("%d questions at a time, want 1 to %d", len(asked), most)
			}
			answered.Add(int64(len(asked)))
			double(asked)
		})
		const callers, calls = 20, 200
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for j := range calls {
					q := &question{n: i*calls + j}
					if c.Do(q); q.answer != 2*q.n {
						t.Errorf("%d is answered by %d", q.n, q.answer)
					}
				}
			})
		}
		all.Wait()
		if n := answered.Load(); n != callers*calls {
			t.Errorf("%d answers, want %d", n, callers*calls)
		}
		if c.open != nil {
			t.Error("a group is still open")
		}
	}
}

// open returns calls whose group has one question and can be joined.
func open(most int, answer func([]*question)) (*Calls[question], *group[question], *question) {
	c := New(most, answer)
	first := &question{n: 1}
	c.open = &group[question]{asked: []*question{first}}
	return c, c.open, first
}

// joined waits until a group has n questions.
func (c *Calls[Q]) joined(g *group[Q], n int) {
	for {
		c.mu.Lock()
		has := len(g.asked)
		c.mu.Unlock()
		if has >= n {
			return
		}
		runtime.Gosched()
	}
}

// TestJoin: callers who come before a group is served are answered with it. A full group is not
// joined.
func TestJoin(t *testing.T) {
	c, g, first := open(3, double)
	others := []*question{{n: 2}, {n: 3}}
	var all sync.WaitGroup
	for i, q := range others {
		all.Go(func() { c.Do(q) })
		c.joined(g, i+2)
	}
	alone := &question{n: 4}
	if c.Do(alone); alone.answer != 8 || alone.group != 1 {
		t.Errorf("a caller beside a full group: %+v", *alone)
	}
	c.serve(g)
	all.Wait()
	for _, q := range append(others, first) {
		if q.answer != 2*q.n || q.group != 3 {
			t.Errorf("%+v, want a group of 3", *q)
		}
	}
}

// TestPanic: every caller of a group gets the panic, and the next calls are answered.
func TestPanic(t *testing.T) {
	fails := true
	c, g, _ := open(8, func(asked []*question) {
		if fails {
			panic("no answer")
		}
		double(asked)
	})
	panics := func(f func()) (p any) {
		defer func() { p = recover() }()
		f()
		return nil
	}
	var all sync.WaitGroup
	all.Go(func() {
		if p := panics(func() { c.Do(&question{}) }); p != "no answer" {
			t.Errorf("a caller who joined: panic %v", p)
		}
	})
	c.joined(g, 2)
	if p := panics(func() { c.serve(g) }); p != "no answer" {
		t.Errorf("the first caller: panic %v", p)
	}
	all.Wait()
	fails = false
	q := &question{n: 5}
	if c.Do(q); q.answer != 10 {
		t.Errorf("after a panic: %+v", *q)
	}
}

func BenchmarkDo(b *testing.B) {
	c := New(8, double)
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			c.Do(&question{n: 1})
		}
	})
	b.Run("together", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				c.Do(&question{n: 1})
			}
		})
	})
}
