// SPDX-License-Identifier: Apache-2.0

// Package waiting tells people that something they wait for has changed: a confirmation, an operation, the activation of a
// device, requests to operators. One query a second serves all who wait in a process, whichever process makes the change.
// Begin with [New], [Hub.State] and [Hub.Follow].
package waiting

import (
	"context"
	"sync"
	"time"

	"tamga/internal/domain/fault"
)

// Kind is a kind of what people wait for. The set is closed.
type Kind string

// The kinds. A topic of Devices, Requests and Office has the identifier of its user.
const (
	Confirmation Kind = "confirmation" // and what is carried out after it
	Operation    Kind = "operation"
	Devices      Kind = "devices"  // of a user, and their activation
	Requests     Kind = "requests" // of a user for certificates
	Office       Kind = "office"   // what waits for an operator: requests for certificates, changes of other operators
)

// Topic is what a user waits for.
type Topic struct {
	Kind   Kind
	ID     string
	UserID string
}

// Store reads what topics are about.
type Store interface {
	// States returns a short text for each topic, which changes when what it is about does. A topic of another user, or
	// of something that is not there, has none.
	States(ctx context.Context, now time.Time, topics []Topic) (map[Topic]string, error)
}

// MostOfOne is how many streams a user has at most.
const MostOfOne = 4

// Life is how long a stream lasts. Who waits longer follows again, and is identified again.
const Life = 10 * time.Minute

// Deps lists what a Hub needs.
type Deps struct {
	Store Store
	Now   func() time.Time
	// Ticks begins the ticks at which states are read, and returns how to end them.
	Ticks func() (ticks <-chan time.Time, stop func())
	// Failed is told of a query that failed. Those who wait stay, and the next tick tries again.
	Failed func(err error)
}

// Hub serves those who wait in a process.
type Hub struct {
	deps   Deps
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	waiters map[*waiter]bool
	of      map[string]int // streams by user
	serving bool           // serve runs
}

type waiter struct {
	topic Topic
	state chan string // the newest one that was not taken
}

// New returns a Hub.
func New(d Deps) *Hub {
	return &Hub{deps: d, closed: make(chan struct{}), waiters: map[*waiter]bool{}, of: map[string]int{}}
}

// Every returns Ticks of a period.
func Every(period time.Duration) func() (<-chan time.Time, func()) {
	return func() (<-chan time.Time, func()) {
		t := time.NewTicker(period)
		return t.C, t.Stop
	}
}

// Close ends all streams.
func (h *Hub) Close() { h.once.Do(func() { close(h.closed) }) }

// State returns the state of a topic, "" if there is none.
func (h *Hub) State(ctx context.Context, t Topic) (string, error) {
	states, err := h.deps.Store.States(ctx, h.deps.Now(), []Topic{t})
	return states[t], err
}

// Follow sends the state of a topic, and again whenever it changes, until ctx ends, the process stops or send fails. Its
// fault is too_many_requests for a user with MostOfOne streams.
func (h *Hub) Follow(ctx context.Context, t Topic, send func(state string) error) error {
	w := &waiter{topic: t, state: make(chan string, 1)}
	if err := h.enter(w); err != nil {
		return err
	}
	defer h.leave(w)
	ctx, end := context.WithTimeout(ctx, Life)
	defer end()
	last, err := h.State(ctx, t)
	if err != nil {
		return err
	}
	if err := send(last); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.closed:
			return nil
		case state := <-w.state:
			if state == last {
				continue
			}
			if last = state; send(state) != nil {
				return nil // the reader is gone
			}
		}
	}
}

// enter adds a waiter. The ticks begin unless they run.
func (h *Hub) enter(w *waiter) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[w.topic.UserID] >= MostOfOne {
		return fault.Newf(fault.TooManyRequests, "at most %d pages wait at once: close one of them", MostOfOne)
	}
	h.of[w.topic.UserID]++
	h.waiters[w] = true
	if !h.serving { // it ends at a tick, and a waiter may come before that
		h.serving = true
		ticks, stop := h.deps.Ticks()
		go h.serve(ticks, stop)
	}
	return nil
}

func (h *Hub) leave(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiters, w)
	if h.of[w.topic.UserID]--; h.of[w.topic.UserID] == 0 {
		delete(h.of, w.topic.UserID)
	}
}

// serve reads the states of all topics at each tick, until no user waits.
func (h *Hub) serve(ticks <-chan time.Time, stop func()) {
	defer stop()
	for {
		select {
		case <-h.closed:
			return
		case <-ticks:
		}
		topics, ended := h.topics()
		if ended {
			return
		}
		states, err := h.deps.Store.States(context.Background(), h.deps.Now(), topics)
		if err != nil {
			h.deps.Failed(err)
			continue
		}
		h.tell(states)
	}
}

// topics returns what is waited for, each once, and whether no user waits. Then the next waiter begins new ticks.
func (h *Hub) topics() (list []Topic, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[Topic]bool{}
	for w := range h.waiters {
		if !seen[w.topic] {
			seen[w.topic], list = true, append(list, w.topic)
		}
	}
	h.serving = len(list) > 0
	return list, !h.serving
}

func (h *Hub) tell(states map[Topic]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.waiters {
		select { // the newest state takes the place of one that was not taken
		case <-w.state:
		default:
		}
		w.state <- states[w.topic]
	}
}
