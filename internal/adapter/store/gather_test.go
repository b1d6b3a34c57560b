// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/fault"
)

// flight is a statement under way.
type flight struct {
	items []int
	land  chan struct{}
}

// gathers runs a test with a gatherer of numbers. Each statement is sent to the test and
// runs until the test closes land.
func gathers(t *testing.T, how gathering, test func(t *testing.T, g *gatherer[int], started <-chan flight)) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan flight, 100)
		g := newGatherer(how, Limits{Call: time.Second}, func(_ context.Context, items []int) {
			f := flight{items, make(chan struct{})}
			started <- f
			<-f.land
		})
		test(t, g, started)
		g.close()
		select {
		case f := <-started:
			t.Errorf("%v was left", f.items)
		default:
		}
	})
}

func enter(t *testing.T, g *gatherer[int], items ...int) {
	t.Helper()
	for _, i := range items {
		if err := g.enter(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
}

// next returns the next statement, which must have started by now.
func next(t *testing.T, started <-chan flight, want ...int) flight {
	t.Helper()
	synctest.Wait()
	select {
	case f := <-started:
		if d := cmp.Diff(want, f.items); d != "" {
			t.Error(d)
		}
		return f
	default:
		t.Fatalf("no statement has started, want one of %v", want)
		return flight{}
	}
}

func none(t *testing.T, started <-chan flight) {
	t.Helper()
	synctest.Wait()
	select {
	case f := <-started:
		t.Fatalf("a statement of %v has started", f.items)
	default:
	}
}

// TestGather checks that the first item does not wait, that those behind it gather in
// their order, and that a statement has at most so many items.
func TestGather(t *testing.T) {
	gathers(t, gathering{most: 3, flights: 2, patience: time.Hour}, func(t *testing.T, g *gatherer[int], started <-chan flight) {
		enter(t, g, 1)
		first := next(t, started, 1)
		enter(t, g, 2, 3)
		none(t, started)
		close(first.land)
		second := next(t, started, 2, 3)
		enter(t, g, 4, 5)
		none(t, started)
		enter(t, g, 6) // nothing is gained by waiting longer
		third := next(t, started, 4, 5, 6)
		enter(t, g, 7, 8, 9, 10)
		none(t, started) // two are under way
		close(third.land)
		fourth := next(t, started, 7, 8, 9)
		close(second.land)
		none(t, started)
		close(fourth.land)
		close(next(t, started, 10).land)
	})
}

// TestGatherOvertakes checks that a statement that does not end holds up the others only
// for a short time, and the later ones not at all.
func TestGatherOvertakes(t *testing.T) {
	const patience = time.Second
	gathers(t, gathering{most: 10, flights: 2, patience: patience}, func(t *testing.T, g *gatherer[int], started <-chan flight) {
		enter(t, g, 1)
		stuck := next(t, started, 1)
		enter(t, g, 2)
		time.Sleep(patience - 1)
		none(t, started)
		time.Sleep(time.Nanosecond)
		f := next(t, started, 2)
		for i := 3; i < 6; i++ {
			close(f.land)
			enter(t, g, i)
			f = next(t, started, i)
		}
		enter(t, g, 6)
		time.Sleep(2 * patience)
		none(t, started) // two are under way
		close(stuck.land)
		sixth := next(t, started, 6)
		close(f.land)
		close(sixth.land)
	})
}

// TestGatherClose checks that items that were accepted are finished, and later ones
// refused.
func TestGatherClose(t *testing.T) {
	gathers(t, gathering{most: 2, flights: 1, patience: time.Hour}, func(t *testing.T, g *gatherer[int], started <-chan flight) {
		enter(t, g, 1)
		first := next(t, started, 1)
		enter(t, g, 2, 3, 4)
		closed := make(chan struct{})
		go func() {
			g.close()
			close(closed)
		}()
		synctest.Wait()
		if err := g.enter(t.Context(), 5); !errors.Is(err, ErrClosed) {
			t.Errorf("after close: %v", err)
		}
		close(first.land)
		close(next(t, started, 2, 3).land)
		last := next(t, started, 4)
		select {
		case <-closed:
			t.Error("close did not wait")
		default:
		}
		close(last.land)
		<-closed
	})
}

// TestGatherQueueIsBounded checks that callers wait when the queue is full, and return when
// their context ends.
func TestGatherQueueIsBounded(t *testing.T) {
	gathers(t, gathering{most: 2 * queueLength, flights: 1, patience: time.Hour}, func(t *testing.T, g *gatherer[int], started <-chan flight) {
		enter(t, g, 0)
		first := next(t, started, 0)
		for i := range g.most + queueLength {
			if err := g.enter(t.Context(), i); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.enter(gone, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left: %v", err)
		}
		err := g.enter(t.Context(), 0) // waits for Limits.Call
		if _, is := fault.AsOutage(err); !is {
			t.Errorf("after the wait: %v, want an outage", err)
		}
		close(first.land)
		for range 2 {
			synctest.Wait()
			close((<-started).land)
		}
	})
}

func TestEachAlone(t *testing.T) {
	refusal := fmt.Errorf("store: %w", errors.New("a constraint"))
	silence := fmt.Errorf("store: %w", &fault.Outage{Err: errors.New("silence")})
	if !eachAlone(refusal, 2) || eachAlone(refusal, 1) || eachAlone(silence, 2) || eachAlone(nil, 2) {
		t.Error("only a statement of several items that the server refused may run again in parts")
	}
}
