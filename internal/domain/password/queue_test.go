// SPDX-License-Identifier: Apache-2.0

package password

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/domain/fault"
)

// crowd is a queue with some callers. Each derivation takes one place of 1 KiB and runs
// until the test ends it.
type crowd struct {
	*queue
	mu       sync.Mutex
	admitted []string
	running  map[string][]func()
	refused  map[string]time.Duration // time to wait, of the fault
	wg       sync.WaitGroup
}

func newCrowd(limits Limits, places int64) *crowd {
	return &crowd{queue: newQueue(limits, places, 1), running: map[string][]func(){}, refused: map[string]time.Duration{}}
}

// ask starts an attempt of this name by v.
func (c *crowd) ask(t *testing.T, name string, v Visitor) {
	c.wg.Go(func() {
		release, err := c.admit(t.Context(), v, 1)
		c.mu.Lock()
		defer c.mu.Unlock()
		if f, ok := fault.As(err); ok && f.Code == fault.TooManyRequests {
			c.refused[name] = f.After
			return
		} else if err != nil {
			t.Error(err)
			return
		}
		c.admitted = append(c.admitted, name)
		c.running[name] = append(c.running[name], release)
	})
	synctest.Wait()
}

// end ends the oldest derivation of a name.
func (c *crowd) end(name string) {
	c.mu.Lock()
	list := c.running[name]
	c.running[name] = list[1:]
	c.mu.Unlock()
	list[0]()
	synctest.Wait()
}

// endAll ends derivations until none runs.
func (c *crowd) endAll() {
	for {
		c.mu.Lock()
		name := ""
		for n := range c.running {
			if len(c.running[n]) > 0 {
				name = n
			}
		}
		c.mu.Unlock()
		if name == "" {
			break
		}
		c.end(name)
	}
	c.wg.Wait()
}

func (c *crowd) want(t *testing.T, admitted ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.admitted, admitted) {
		t.Errorf("admitted %v, want %v", c.admitted, admitted)
	}
	c.admitted = nil
}

// roomy never refuses.
var roomy = Limits{Reserved: 0.5, Waiting: 1000, OfOne: 1000, Wait: time.Hour}

func untrustedOne(key string) Visitor { return Visitor{Key: key} }

// Untrusted callers never take the reserved part. Trusted callers are admitted there at once.
func TestQueueShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(roomy, 4)
		for i := range 200 {
			c.ask(t, fmt.Sprint("s", i), untrustedOne(fmt.Sprint(i)))
		}
		c.want(t, "s0", "s1")
		c.ask(t, "proved", Visitor{Key: "client", Trust: Proved})
		c.ask(t, "known", Visitor{Key: "address", Trust: Known})
		c.want(t, "proved", "known")
		c.ask(t, "third", Visitor{Key: "client", Trust: Proved})
		c.want(t)
		c.end("s0") // the place goes to the trusted caller before 198 untrusted ones
		c.want(t, "third")
		c.end("proved")
		c.want(t, "s2")
		c.endAll()
	})
}

// Trusted callers may take all places. The next free place then goes to an untrusted caller.
func TestQueueLeavesUntrustedAPlace(t *testing.T) {
	for _, places := range []int64{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(roomy, places)
			v := Visitor{Key: "client", Trust: Proved}
			for range places {
				c.ask(t, "t", v)
			}
			c.admitted = nil
			c.ask(t, "s", untrustedOne("s"))
			c.ask(t, "s", untrustedOne("s"))
			c.ask(t, "t", v)
			c.ask(t, "t", v)
			for _, want := range []string{"s", "t"} {
				c.end("t")
				if want == "t" && places == 1 {
					t.Fatal("more than one place")
				}
				c.want(t, want)
				if places == 1 {
					break
				}
			}
			c.end("s")
			if places == 1 {
				c.want(t, "t") // in turn
			} else {
				c.want(t, "s")
			}
			c.endAll()
		})
	}
}

// Callers take turns, even if one of them has many attempts.
func TestQueueTurns(t *testing.T) {
	for _, trust := range []Trust{Untrusted, Proved} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(roomy, 1)
			c.ask(t, "first", Visitor{Key: "x", Trust: trust})
			c.want(t, "first")
			for i := range 4 {
				c.ask(t, fmt.Sprint("a", i), Visitor{Key: "a", Trust: trust})
			}
			c.ask(t, "b0", Visitor{Key: "b", Trust: trust})
			c.ask(t, "b1", Visitor{Key: "b", Trust: trust})
			c.ask(t, "c0", Visitor{Key: "c", Trust: trust})
			c.end("first")
			c.endAll()
			c.want(t, "a0", "b0", "c0", "a1", "b1", "a2", "a3")
		})
	}
}

// A queue limits all attempts, the attempts of a caller, and the wait. The fault has the
// time to wait.
func TestQueueBounds(t *testing.T) {
	limits := Limits{Reserved: 0.5, Waiting: 5, OfOne: 3, Wait: 700 * time.Millisecond}
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(limits, 2)
		begun := time.Now()
		for i := range 10 { // one runs, three wait
			c.ask(t, fmt.Sprint("a", i), untrustedOne("a"))
		}
		for i := range 5 { // two more may wait
			c.ask(t, fmt.Sprint("b", i), untrustedOne(fmt.Sprint("b", i)))
		}
		if len(c.refused) != 6+3 || time.Since(begun) != 0 {
			t.Errorf("%d refused after %v, want 9 at once: %v", len(c.refused), time.Since(begun), c.refused)
		}
		c.want(t, "a0")
		time.Sleep(699 * time.Millisecond)
		c.end("a0")
		c.want(t, "a1")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if len(c.refused) != 9+4 { // three more waited until the end
			t.Errorf("%d refused at the end of the wait, want 13: %v", len(c.refused), c.refused)
		}
		for name, after := range c.refused {
			if after != limits.Wait {
				t.Errorf("%s: retry after %v, want %v", name, after, limits.Wait)
			}
		}
		// Their places in the queue are free again.
		c.ask(t, "b9", untrustedOne("b9"))
		c.end("a1")
		c.want(t, "b9")
		if c.classes[untrusted].waiting != 0 || len(c.classes[untrusted].byKey) != 0 || len(c.classes[untrusted].lines) != 0 {
			t.Errorf("the class is not empty: %+v", c.classes[untrusted])
		}
		c.endAll()
		if c.used != 0 || c.classes[untrusted].used != 0 {
			t.Errorf("%d KiB are in use at the end", c.used)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(limits, 1)
		c.ask(t, "x", Visitor{Key: "x", Trust: Known})
		for i := range 20 {
			c.ask(t, fmt.Sprint("known", i), Visitor{Key: "one", Trust: Known})
			c.ask(t, fmt.Sprint("proved", i), Visitor{Key: "client", Trust: Proved})
		}
		if len(c.refused) != 20-6 {
			t.Errorf("%d refused, want 14: a known address may have 6 attempts waiting, a client 30: %v", len(c.refused), c.refused)
		}
		c.endAll()
	})
}

// An attempt that ends early leaves nothing in the queue. A small attempt does not
// overtake a large one.
func TestQueueGivenUpAndHeavy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(roomy, 4, 1)
		hold, err := q.admit(t.Context(), Visitor{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := q.admit(ctx, Visitor{Key: "heavy", Trust: Proved}, 4); !errors.Is(err, context.Canceled) {
				t.Errorf("after cancel: %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		light := false
		wg.Go(func() {
			release, err := q.admit(t.Context(), Visitor{Key: "light", Trust: Proved}, 1)
			if err != nil {
				t.Error(err)
				return
			}
			light = true
			release()
		})
		synctest.Wait()
		if light {
			t.Error("the light attempt overtook the heavy one")
		}
		cancel()
		wg.Wait()
		if !light {
			t.Error("the light attempt still waits after the heavy one was cancelled")
		}
		hold()
		// A stored password may cost more than the share of untrusted callers.
		release, err := q.admit(t.Context(), Visitor{}, 4)
		if err != nil {
			t.Fatal(err)
		}
		release()
		if q.used != 0 || q.classes[untrusted].used != 0 || q.classes[trusted].used != 0 || q.classes[trusted].waiting != 0 {
			t.Errorf("the queue is not empty: %+v", q)
		}
	})
}

func TestAttemptsAreChecked(t *testing.T) {
	for name, change := range map[string]func(a *Limits){
		"reserved": func(a *Limits) { a.Reserved = 1.1 }, "less than none": func(a *Limits) { a.Reserved = -0.1 },
		"waiting": func(a *Limits) { a.Waiting = 0 }, "of one": func(a *Limits) { a.OfOne = 0 }, "wait": func(a *Limits) { a.Wait = 0 },
	} {
		a := DefaultLimits()
		change(&a)
		if _, err := New(cheap, 1024, a, zero{}); err == nil {
			t.Errorf("%s: %+v was accepted", name, a)
		}
	}
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { return len(p), nil }
