// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tamga/internal/domain/fault"
)

// Turns lets a few expensive calls run at once while the others wait in a queue per
// address, or per identifier of a known caller. The addresses take turns, so an address with many calls delays only its own.
// Turns is safe for concurrent use and belongs to one process.
type Turns struct {
	rules TurnRules

	mu      sync.Mutex
	running int
	waiting int
	ring    *list.List // of *line, the next address first
	lines   map[string]*list.Element
}

// TurnRules bound Turns. All values must be greater than 0.
type TurnRules struct {
	// Running is how many calls run at once.
	Running int
	// Waiting is how many calls may wait in total, WaitingOfOne how many of one address.
	Waiting, WaitingOfOne int
	// Wait is how long a call waits at most.
	Wait time.Duration
}

// line is the queue of one address, the oldest call first.
type line struct {
	key     string
	waiters []*waiter
}

type waiter struct {
	key string
	// turn gets nil if the call may run, otherwise the fault for which it must not wait any
	// longer.
	turn chan error
}

// NewTurns returns turns by these rules.
func NewTurns(r TurnRules) *Turns {
	return &Turns{rules: r, ring: list.New(), lines: map[string]*list.Element{}}
}

// Take waits for the turn of a call from an address or of a known caller. The caller must call done when the
// call has ended. Errors: the fault too_many_requests if too many calls of the address wait
// already, the fault temporarily_unavailable if too many calls of all addresses wait or the
// wait was too long, and ctx.Err().
func (t *Turns) Take(ctx context.Context, remote string) (done func(), err error) {
	w, err := t.enter(Network(remote))
	if err != nil {
		return nil, err
	}
	if w == nil {
		return t.done(), nil
	}
	late := time.NewTimer(t.rules.Wait)
	defer late.Stop()
	select {
	case err = <-w.turn:
	case <-ctx.Done():
		err = t.withdraw(w, ctx.Err())
	case <-late.C:
		err = t.withdraw(w, t.busy())
	}
	if err != nil {
		return nil, err
	}
	return t.done(), nil
}

// done returns what ends a call: the first time that it is called, the next call gets its place.
func (t *Turns) done() func() {
	var ended atomic.Bool
	return func() {
		if !ended.Swap(true) {
			t.next()
		}
	}
}

func (t *Turns) busy() error {
	return fault.New(fault.Unavailable, "too many calls wait already: try again later").Until(t.rules.Wait)
}

// Room refuses a call that would be refused by Take now, because too many of its address wait, so that its
// body need not be received. Take decides about a call that is let in.
func (t *Turns) Room(remote string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running >= t.rules.Running && t.waitingOf(Network(remote)) >= t.rules.WaitingOfOne {
		return t.crowded()
	}
	return nil
}

// waitingOf returns how many calls of an address wait.
func (t *Turns) waitingOf(key string) int {
	if e, ok := t.lines[key]; ok {
		return len(e.Value.(*line).waiters)
	}
	return 0
}

func (t *Turns) crowded() error {
	return fault.New(fault.TooManyRequests, "too many of your calls wait already: send fewer at once").Until(t.rules.Wait / 2)
}

// enter takes a free place and returns a nil waiter, or joins the queue.
func (t *Turns) enter(key string) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running < t.rules.Running {
		t.running++
		return nil, nil
	}
	mine := t.waitingOf(key)
	if mine >= t.rules.WaitingOfOne {
		return nil, t.crowded()
	}
	if t.waiting >= t.rules.Waiting && !t.displace(mine) {
		return nil, t.busy()
	}
	w := &waiter{key: key, turn: make(chan error, 1)}
	e, ok := t.lines[key]
	if !ok {
		e = t.ring.PushBack(&line{key: key})
		t.lines[key] = e
	}
	l := e.Value.(*line)
	l.waiters = append(l.waiters, w)
	t.waiting++
	return w, nil
}

// displace removes the newest call of the address with the longest queue, in favour of an
// address whose queue would be shorter.
func (t *Turns) displace(mine int) bool {
	var longest *list.Element
	for e := t.ring.Front(); e != nil; e = e.Next() {
		if longest == nil || len(e.Value.(*line).waiters) > len(longest.Value.(*line).waiters) {
			longest = e
		}
	}
	if longest == nil || len(longest.Value.(*line).waiters) <= mine+1 {
		return false
	}
	l := longest.Value.(*line)
	last := l.waiters[len(l.waiters)-1]
	t.remove(longest, len(l.waiters)-1)
	last.turn <- t.busy()
	return true
}

// remove takes a waiter out of its queue.
func (t *Turns) remove(e *list.Element, i int) {
	l := e.Value.(*line)
	l.waiters = append(l.waiters[:i], l.waiters[i+1:]...)
	t.waiting--
	if len(l.waiters) == 0 {
		t.ring.Remove(e)
		delete(t.lines, l.key)
	}
}

// next passes a place to the address whose turn it is.
func (t *Turns) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.ring.Front()
	if e == nil {
		t.running--
		return
	}
	w := e.Value.(*line).waiters[0]
	t.ring.MoveToBack(e)
	t.remove(e, 0)
	w.turn <- nil
}

// withdraw ends the wait of a call. If the call got a place in the meantime, the place is
// passed on.
func (t *Turns) withdraw(w *waiter, why error) error {
	t.mu.Lock()
	if e, ok := t.lines[w.key]; ok {
		for i, x := range e.Value.(*line).waiters {
			if x == w {
				t.remove(e, i)
				t.mu.Unlock()
				return why
			}
		}
	}
	t.mu.Unlock()
	if err := <-w.turn; err != nil {
		return err
	}
	t.next()
	return why
}
