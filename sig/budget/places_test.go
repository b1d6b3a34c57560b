// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tamga/sig/budget"
)

const stride = 1 << 16 // steps between two waits for a place

// untrusted is a document of an untrusted caller.
func untrusted(ctx context.Context, p *budget.Places) *budget.Budget {
	b := budget.New(ctx, budget.Limits{Steps: 1 << 40, Memory: 1 << 40, Anonymous: true, Places: p})
	b.Begin()
	return b
}

// enter fails the test if no place is free now.
func enter(t *testing.T, p *budget.Places) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	leave, err := p.Enter(ctx)
	if err != nil {
		t.Fatalf("no place is free: %v", err)
	}
	return leave
}

// However many expensive documents arrive, no more work than there are places, and all of them end.
func TestPlacesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, documents = 2, 20
		p := budget.NewPlaces(places)
		var working, most atomic.Int64
		var all sync.WaitGroup
		for range documents {
			all.Go(func() {
				b := untrusted(t.Context(), p)
				defer b.End()
				for range 10 {
					if err := b.Spend(stride); err != nil {
						t.Error(err)
					}
					most.Store(max(most.Load(), working.Add(1)))
					time.Sleep(100 * time.Microsecond) // work
					working.Add(-1)
				}
			})
		}
		all.Wait()
		if most.Load() != places {
			t.Errorf("%d documents worked at the same time, want %d", most.Load(), places)
		}
	})
}

// A document that goes on lets the next one in first, in the order of arrival.
func TestPlacesAreHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPlaces(1)
		leave := enter(t, p)
		var order []string
		for _, name := range []string{"a", "b", "c"} {
			go func() {
				b := untrusted(t.Context(), p)
				defer b.End()
				for range 2 {
					if err := b.Spend(stride); err != nil {
						t.Error(err)
					}
					order = append(order, name)
				}
			}()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Fatalf("%v worked without a place", order)
		}
		leave()
		synctest.Wait()
		want := "abcabc"
		got := ""
		for _, name := range order {
			got += name
		}
		if got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
	})
}

// A small document never waits: one of less than 65,536 steps that draws no memory. Nor does the
// work before Begin and after End.
func TestSmallDocumentsNeedNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPlaces(1)
		defer enter(t, p)()
		b := untrusted(budget.Within(t.Context(), budget.NewPool(mib, 0)), p)
		for range stride - 1 {
			if err := b.Spend(1); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Hold(budget.Free); err != nil {
			t.Error(err)
		}
		b.End()
		if err := b.Spend(10 * stride); err != nil {
			t.Error(err)
		}
		b.End() // without Begin
	})
}

// A place rests for as long as it was used. Short uses are added up.
func TestPlacesRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPlaces(1)
		use := func(d time.Duration) (waited time.Duration) {
			start := time.Now()
			leave, err := p.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waited = time.Since(start)
			time.Sleep(d)
			leave()
			return waited
		}
		for i, step := range []struct{ use, waited time.Duration }{
			{20 * time.Millisecond, 0},
			{600 * time.Microsecond, 20 * time.Millisecond},
			{600 * time.Microsecond, 0},
			{0, 1200 * time.Microsecond},
			{0, 0},
		} {
			if waited := use(step.use); waited != step.waited {
				t.Errorf("use %d waited for %s, want %s", i, waited, step.waited)
			}
		}
	})
}

// Places rest longer while trusted callers have work, for 100 ms after each.
func TestPlacesYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPlaces(1)
		rest := func() time.Duration {
			leave := enter(t, p)
			time.Sleep(10 * time.Millisecond)
			leave()
			start := time.Now()
			leave, err := p.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leave()
			return time.Since(start)
		}
		p.Yield()
		if got, want := rest(), 40*time.Millisecond; got != want {
			t.Errorf("a place rested for %s beside trusted work, want %s", got, want)
		}
		time.Sleep(100*time.Millisecond - 60*time.Millisecond) // the second use ends 100 ms after the call
		if got, want := rest(), 10*time.Millisecond; got != want {
			t.Errorf("a place rested for %s after trusted work, want %s", got, want)
		}

		// Beside trusted work it rests still longer for the next of several.
		p.Yield()
		leave := enter(t, p)
		next := make(chan time.Time)
		go func() {
			leave, err := p.Enter(t.Context())
			if err != nil {
				t.Error(err)
				close(next)
				return
			}
			next <- time.Now()
			leave()
		}()
		synctest.Wait()
		time.Sleep(5 * time.Millisecond)
		start := time.Now()
		leave()
		if got, want := (<-next).Sub(start), 80*time.Millisecond; got != want {
			t.Errorf("a place rested for %s for the next of several, want %s", got, want)
		}
	})
}

// A document whose context ends waits no longer, and no place is lost.
func TestPlacesAfterTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPlaces(1)
		leave := enter(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for range 2 {
			go func() {
				b := untrusted(ctx, p)
				defer b.End()
				ended <- b.Spend(stride)
			}()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want the error of the context", err)
			}
		}
		leave()
		enter(t, p)()

		// One that has a place and is canceled leaves it at its end.
		ctx, cancel = context.WithCancel(t.Context())
		b := untrusted(ctx, p)
		if err := b.Spend(stride); err != nil {
			t.Fatal(err)
		}
		cancel()
		b.End()
		enter(t, p)()

		// One that is given a place at the moment when its context ends passes it on.
		for range 20 { // which of the two it sees first is random
			leave := enter(t, p)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				leave, err := p.Enter(ctx)
				if err == nil {
					leave()
				}
				ended <- err
			}()
			synctest.Wait()
			cancel()
			leave()
			<-ended
			enter(t, p)()
		}
	})
}

// A document does not keep its place while it waits for memory, for its turn or for the network: who
// has these may need the place.
func TestPlacesAreLeftBeforeWaiting(t *testing.T) {
	for name, wait := range map[string]func(b *budget.Budget) (end func(), err error){
		"memory": func(b *budget.Budget) (func(), error) { return func() {}, b.Hold(2 * mib) },
		"turn":   func(b *budget.Budget) (func(), error) { return b.Alone() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := budget.NewPlaces(1)
				ctx := budget.Within(t.Context(), budget.NewPool(16*mib, time.Minute))
				document := func() *budget.Budget {
					_, b := budget.Of(budget.With(ctx, budget.Limits{Steps: 1 << 40, Memory: 1 << 40, Anonymous: true, Places: p}), 0)
					b.Begin()
					return b
				}
				start := time.Now()
				first := document() // it has what the second waits for
				end, err := wait(first)
				if err != nil {
					t.Fatal(err)
				}
				budgetOf := make(chan error)
				go func() {
					second := document()
					defer second.End()
					err := second.Spend(stride)
					if err == nil {
						var end func()
						if end, err = wait(second); err == nil {
							end()
						}
					}
					budgetOf <- err
				}()
				if name == "memory" {
					// The first draws a place with its memory; it hands it on so that the second comes so far.
					if err := first.Spend(stride); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if err := first.Spend(stride); err != nil { // needs the place
					t.Fatal(err)
				}
				end()
				first.End()
				if err := <-budgetOf; err != nil {
					t.Error(err)
				}
				if waited := time.Since(start); waited > 0 {
					t.Errorf("they waited for each other for %s", waited)
				}
				enter(t, p)()
			})
		})
	}
	t.Run("network", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := budget.NewPlaces(1)
			ctx, b := budget.Of(budget.With(t.Context(), budget.Limits{Steps: 1 << 40, Memory: 1 << 40, Places: p}), 0)
			b.Begin()
			defer b.End()
			if err := b.Spend(stride); err != nil {
				t.Fatal(err)
			}
			budget.Leave(ctx)
			enter(t, p)()
			budget.Leave(t.Context())
		})
	})
}

// What a document does with drawn memory, it does in a place.
func TestDrawingNeedsAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPlaces(1)
		leave := enter(t, p)
		drawn := false
		go func() {
			b := untrusted(budget.Within(t.Context(), budget.NewPool(16*mib, 0)), p)
			defer b.End()
			if err := b.Hold(mib); err != nil {
				t.Error(err)
			}
			drawn = true
		}()
		synctest.Wait()
		if drawn {
			t.Error("it works without a place")
		}
		leave()
		synctest.Wait()
		if !drawn {
			t.Error("it waits although a place is free")
		}
	})
}

// The goroutines of one document share its place.
func TestGoroutinesShareAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPlaces(1)
		b := untrusted(budget.Within(t.Context(), budget.NewPool(64*mib, 0)), p)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					if err := errors.Join(b.Spend(stride/2), b.Hold(mib/64)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		b.End()
		enter(t, p)()
	})
}
