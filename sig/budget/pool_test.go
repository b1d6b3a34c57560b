// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tamga/sig/budget"
)

const mib = 1 << 20

// document is a document of a process with a pool.
func document(t *testing.T, p *budget.Pool, anonymous bool) *budget.Budget {
	t.Helper()
	ctx := budget.With(budget.Within(t.Context(), p), budget.Limits{Steps: 1, Memory: 1 << 40, Anonymous: anonymous})
	_, b := budget.Of(ctx, 0)
	b.Begin()
	return b
}

// A small document draws nothing; a large one draws what it holds, and gives it back at its end.
func TestPool(t *testing.T) {
	p := budget.NewPool(16*mib, 0)
	used := func(want int64) {
		t.Helper()
		if got := p.Used(); got != want {
			t.Errorf("%d bytes are drawn, want %d", got, want)
		}
	}
	a := document(t, p, false)
	if err := errors.Join(a.Hold(budget.Free-1), a.Hold(1)); err != nil {
		t.Error(err)
	}
	used(0)
	if err := a.Hold(mib); err != nil {
		t.Error(err)
	}
	used(mib)
	a.Release(mib)
	if err := a.Hold(mib); err != nil { // within what was drawn
		t.Error(err)
	}
	used(mib)
	a.Begin() // a format inside of another
	a.End()
	used(mib)
	// What has begun may use all; what begins only the first half.
	b := document(t, p, false)
	if err := b.Hold(budget.Free + 8*mib); !errors.Is(err, budget.ErrBusy) {
		t.Errorf("beyond the half: %v", err)
	}
	if err := a.Hold(14 * mib); err != nil {
		t.Error(err)
	}
	used(15 * mib)
	if err := a.Hold(2 * mib); !errors.Is(err, budget.ErrMemory) {
		t.Errorf("more than all: %v", err)
	}
	small := document(t, p, false)
	if err := small.Hold(budget.Free); err != nil {
		t.Errorf("a small document beside a full pool: %v", err)
	}
	if err := small.Hold(1); !errors.Is(err, budget.ErrBusy) {
		t.Errorf("beside a full pool: %v", err)
	}
	a.End()
	used(0)
	// Alone, a document may begin with more than the half.
	c := document(t, p, false)
	if err := c.Hold(12 * mib); err != nil {
		t.Error(err)
	}
	d := document(t, p, false)
	c.End()
	if err := d.Hold(mib); err != nil {
		t.Error(err)
	}
	e := document(t, p, false)
	if err := errors.Join(e.Hold(mib), d.Hold(12*mib)); err != nil {
		t.Error(err)
	}
	// What has drawn does not wait: it might wait for what waits for it.
	if err := e.Hold(4 * mib); !errors.Is(err, budget.ErrBusy) {
		t.Errorf("a second one grows: %v", err)
	}
	var exceeded *budget.Exceeded
	if err := e.Err(); !errors.As(err, &exceeded) || exceeded.Error() == "" {
		t.Errorf("%v", err)
	}
	d.End()
	e.End()
	b.End()
	small.End()
	used(0)
}

// Callers without a token share a quarter. However much they ask for, others get theirs.
func TestPoolOfAnonymousCallers(t *testing.T) {
	p := budget.NewPool(64*mib, 0)
	callers := 0
	for range 100 {
		if s := document(t, p, true); s.Hold(2*mib) == nil {
			defer s.End()
			callers++
		} else {
			s.End()
		}
	}
	if callers < 2 || p.Used() > 16*mib {
		t.Errorf("%d anonymous callers hold %d bytes", callers, p.Used())
	}
	known := document(t, p, false)
	defer known.End()
	if err := known.Hold(20 * mib); err != nil {
		t.Error(err)
	}
	alone := budget.NewPool(64*mib, 0)
	s := document(t, alone, true)
	if err := s.Hold(20 * mib); !errors.Is(err, budget.ErrMemory) {
		t.Errorf("an anonymous caller with more than a quarter: %v", err)
	}
	s.End()
}

// A document waits for its first memory. Callers with a token go first, then those for whom there
// is enough; a wait ends in time or with the caller.
func TestPoolWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(16*mib, time.Second)
		first := document(t, p, false)
		if err := first.Hold(16 * mib); err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 10)
		begin := func(name string, n int64, anonymous bool) {
			b := document(t, p, anonymous)
			go func() {
				if err := b.Hold(n); err != nil {
					name = err.Error()
				}
				got <- name
				b.End()
			}()
			synctest.Wait()
		}
		begin("anonymous", mib, true)
		begin("large", 12*mib, false)
		begin("known", mib, false)
		began := time.Now()
		first.End()
		if a := <-got; a != "large" {
			t.Errorf("%s begins first", a)
		}
		if all := <-got + " " + <-got; all != "known anonymous" && all != "anonymous known" || time.Since(began) > 0 {
			t.Errorf("%s after %v", all, time.Since(began))
		}
		synctest.Wait()
		if p.Used() != 0 {
			t.Errorf("%d bytes are left", p.Used())
		}
		second := document(t, p, false)
		if err := second.Hold(16 * mib); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		late := document(t, p, false)
		if err := late.Hold(mib); !errors.Is(err, budget.ErrBusy) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(budget.Within(t.Context(), p))
		cancel()
		_, gone := budget.Of(ctx, 0)
		gone.Begin()
		if err := gone.Hold(mib); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		gone.End()
		late.End()
		second.End()
		if p.Used() != 0 {
			t.Errorf("%d bytes are left", p.Used())
		}
	})
}

// TestUsage: the figures of a pool follow what documents draw, wait for and are refused.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(16*mib, time.Second)
		usage := func(want budget.Usage) {
			t.Helper()
			want.Most = 16 * mib
			if got := p.Usage(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		usage(budget.Usage{})
		a, b := document(t, p, false), document(t, p, true)
		if err := errors.Join(a.Hold(budget.Free+7*mib), b.Hold(budget.Free+mib)); err != nil {
			t.Fatal(err)
		}
		usage(budget.Usage{Used: 8 * mib, UsedByAnonymous: mib})
		late := make(chan error, 1)
		c := document(t, p, false)
		go func() { late <- c.Hold(budget.Free + mib) }()
		synctest.Wait()
		usage(budget.Usage{Used: 8 * mib, UsedByAnonymous: mib, Waiting: 1})
		if err := <-late; !errors.Is(err, budget.ErrBusy) {
			t.Error(err)
		}
		usage(budget.Usage{Used: 8 * mib, UsedByAnonymous: mib, Refused: 1})
		end, err := a.Alone()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := document(t, p, false).Alone(); !errors.Is(err, budget.ErrBusy) {
			t.Error(err)
		}
		end()
		a.End()
		b.End()
		usage(budget.Usage{Refused: 2})
	})
}
