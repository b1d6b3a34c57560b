// SPDX-License-Identifier: Apache-2.0

package waiting_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/waiting"
)

// memory is a Store whose states a test sets.
type memory struct {
	mu      sync.Mutex
	states  map[waiting.Topic]string
	queries [][]waiting.Topic
	err     error
}

func (m *memory) States(_ context.Context, _ time.Time, topics []waiting.Topic) (map[waiting.Topic]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries = append(m.queries, topics)
	found := map[waiting.Topic]string{}
	for _, t := range topics {
		if state, is := m.states[t]; is {
			found[t] = state
		}
	}
	return found, m.err
}

func (m *memory) set(t waiting.Topic, state string) {
	m.mu.Lock()
	m.states[t] = state
	m.mu.Unlock()
}

// TestFollow has several people wait for several topics, and checks that one query at a tick serves all of them, that a
// change is told once, and that the ticks end with the last of them.
func TestFollow(t *testing.T) {
	m := &memory{states: map[waiting.Topic]string{}}
	ticks, stopped := make(chan time.Time), make(chan bool, 1)
	failed := make(chan error, 1)
	hub := waiting.New(waiting.Deps{
		Store: m, Now: time.Now, Failed: func(err error) { failed <- err },
		Ticks: func() (<-chan time.Time, func()) { return ticks, func() { stopped <- true } },
	})
	one, two := waiting.Topic{Kind: waiting.Confirmation, ID: "1", UserID: "a"}, waiting.Topic{Kind: waiting.Devices, ID: "b", UserID: "b"}
	m.set(one, "Created 0")
	ctx, end := context.WithCancel(t.Context())
	told := make(chan string)
	var all sync.WaitGroup
	for _, topic := range []waiting.Topic{one, one, two} {
		all.Go(func() {
			if err := hub.Follow(ctx, topic, func(state string) error { told <- topic.ID + " " + state; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	got := map[string]int{<-told: 1}
	got[<-told]++
	got[<-told]++
	if got["1 Created 0"] != 2 || got["b "] != 1 {
		t.Errorf("the first states are %v", got)
	}
	before := len(m.queries)
	m.set(one, "Confirmed 1")
	ticks <- time.Time{}
	if a, b := <-told, <-told; a != "1 Confirmed 1" || b != a {
		t.Errorf("after a change they are told %q and %q", a, b)
	}
	if n := len(m.queries) - before; n != 1 || len(m.queries[before]) != 2 {
		t.Errorf("%d queries with the topics %v serve three people, want one with two topics", n, m.queries[before:])
	}
	m.mu.Lock()
	m.err = errors.New("the database is away")
	m.mu.Unlock()
	ticks <- time.Time{}
	if err := <-failed; err == nil {
		t.Error("a query that fails is not told")
	}
	end()
	all.Wait()
	ticks <- time.Time{}
	<-stopped
}

// TestMostOfOne checks the bound for a user, and that a place is free again when a stream has ended.
func TestMostOfOne(t *testing.T) {
	m := &memory{states: map[waiting.Topic]string{}}
	hub := waiting.New(waiting.Deps{Store: m, Now: time.Now, Ticks: func() (<-chan time.Time, func()) { return make(chan time.Time), func() {} }})
	topic := waiting.Topic{Kind: waiting.Devices, ID: "a", UserID: "a"}
	ctx, end := context.WithCancel(t.Context())
	began := make(chan bool)
	var all sync.WaitGroup
	for range waiting.MostOfOne {
		all.Go(func() { hub.Follow(ctx, topic, func(string) error { began <- true; return nil }) })
		<-began
	}
	none := func(string) error { return errors.New("gone") }
	if err := hub.Follow(t.Context(), topic, none); !fault.Is(err, fault.TooManyRequests) {
		t.Errorf("one stream too many: %v", err)
	}
	other := topic
	other.UserID = "b"
	if err := hub.Follow(t.Context(), other, none); fault.Is(err, fault.TooManyRequests) {
		t.Error("another user has no stream")
	}
	end()
	all.Wait()
	if err := hub.Follow(t.Context(), topic, none); fault.Is(err, fault.TooManyRequests) {
		t.Error("the places of streams that have ended are taken")
	}
	hub.Close()
	if err := hub.Follow(t.Context(), topic, func(string) error { return nil }); err != nil {
		t.Errorf("a stream of a hub that is closed: %v", err)
	}
}

// TestAgain has a person leave and come again before the next tick: one query at a tick serves who waits.
func TestAgain(t *testing.T) {
	m := &memory{states: map[waiting.Topic]string{}}
	begun := 0
	hub := waiting.New(waiting.Deps{Store: m, Now: time.Now, Failed: func(error) {}, Ticks: func() (<-chan time.Time, func()) {
		begun++
		return nil, func() {}
	}})
	defer hub.Close()
	for range 3 {
		ctx, end := context.WithCancel(t.Context())
		err := hub.Follow(ctx, waiting.Topic{Kind: waiting.Devices, ID: "a", UserID: "a"}, func(string) error { end(); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if begun != 1 {
		t.Errorf("the ticks began %d times", begun)
	}
}
