// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"tamga/internal/domain/fault"
)

// queue puts calls in line, one after another, and notes in which order they run.
type queue struct {
	t     *testing.T
	turns *Turns
	ran   chan string
}

// add waits until the call is in line.
func (q *queue) add(ctx context.Context, remote, name string) chan error {
	q.t.Helper()
	q.turns.mu.Lock()
	before := q.turns.waiting
	q.turns.mu.Unlock()
	out := make(chan error, 1)
	go func() {
		done, err := q.turns.Take(ctx, remote)
		if err == nil {
			q.ran <- name
			done()
		}
		out <- err
	}()
	for {
		q.turns.mu.Lock()
		now := q.turns.waiting
		q.turns.mu.Unlock()
		if now > before {
			return out
		}
		select {
		case err := <-out:
			out <- err
			return out
		case <-time.After(time.Millisecond):
		}
	}
}

// Addresses take turns, whichever call came first.
func TestTurnsAreFair(t *testing.T) {
	turns := NewTurns(TurnRules{Running: 1, Waiting: 100, WaitingOfOne: 10, Wait: time.Hour})
	done, err := turns.Take(t.Context(), "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{t: t, turns: turns, ran: make(chan string, 100)}
	for i := range 4 {
		q.add(t.Context(), "192.0.2.1", fmt.Sprintf("a%d", i))
	}
	q.add(t.Context(), "192.0.2.2", "b0")
	q.add(t.Context(), "2001:db8::1", "c0")
	q.add(t.Context(), "2001:db8::2", "c1") // the same network
	done()
	done() // twice is once
	var order []string
	for range 7 {
		order = append(order, <-q.ran)
	}
	if want := []string{"a0", "b0", "c0", "a1", "c1", "a2", "a3"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	if err := turns.Room("192.0.2.1"); err != nil {
		t.Errorf("after all: %v", err)
	}
	// Everything was given back.
	again, err := turns.Take(t.Context(), "192.0.2.9")
	if err != nil || turns.running != 1 || turns.waiting != 0 || len(turns.lines) != 0 {
		t.Fatalf("%v, running %d, waiting %d", err, turns.running, turns.waiting)
	}
	again()
}

// The queue is bounded, for one address and for all. A full queue still accepts an address
// that has fewer calls in it than the longest one.
func TestTurnsAreBounded(t *testing.T) {
	turns := NewTurns(TurnRules{Running: 1, Waiting: 4, WaitingOfOne: 3, Wait: time.Hour})
	done, err := turns.Take(t.Context(), "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{t: t, turns: turns, ran: make(chan string, 100)}
	var a []chan error
	for i := range 3 {
		a = append(a, q.add(t.Context(), "192.0.2.1", fmt.Sprintf("a%d", i)))
	}
	refused := func(err error, code string) {
		t.Helper()
		if f, ok := fault.As(err); !ok || f.Code != code || f.After <= 0 {
			t.Errorf("%v, want %s with a time to wait", err, code)
		}
	}
	_, err = turns.Take(t.Context(), "192.0.2.1")
	refused(err, fault.TooManyRequests)
	// Such a call is refused before its body is received.
	refused(turns.Room("192.0.2.1"), fault.TooManyRequests)
	if err := turns.Room("192.0.2.2"); err != nil {
		t.Errorf("another address: %v", err)
	}
	q.add(t.Context(), "192.0.2.2", "b0")
	// The queue is full. The third call of the first address makes room for another.
	waited := make(chan error, 1)
	go func() {
		done, err := turns.Take(t.Context(), "192.0.2.3")
		if err == nil {
			q.ran <- "c0"
			done()
		}
		waited <- err
	}()
	refused(<-a[2], fault.Unavailable)
	_, err = turns.Take(t.Context(), "192.0.2.1")
	refused(err, fault.Unavailable)
	done()
	for range 4 {
		<-q.ran
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// A wait ends with the patience of the rules or of the caller, and takes no place with it.
func TestTurnsEnd(t *testing.T) {
	turns := NewTurns(TurnRules{Running: 1, Waiting: 4, WaitingOfOne: 3, Wait: time.Nanosecond})
	done, err := turns.Take(t.Context(), "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turns.Take(t.Context(), "192.0.2.1"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	turns.rules.Wait = time.Hour
	cancel()
	if _, err := turns.Take(ctx, "192.0.2.1"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	done()
	if turns.running != 0 || turns.waiting != 0 || turns.ring.Len() != 0 {
		t.Errorf("running %d, waiting %d, lines %d", turns.running, turns.waiting, turns.ring.Len())
	}
}
