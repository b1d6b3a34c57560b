package authority

import (
	"fmt"
	"sync"
	"time"
)

// clockWatch compares the clock of the day with one that only runs forward. A
// time stamp is a promise about the first; when somebody sets it, by hand or by a
// repair after a long outage of its source, one of the times before and after was
// wrong, and nobody here knows which.
//
// It is steered smoothly without being noticed: the comparison begins anew every
// renewed, so only jumps add up to the bound.
type clockWatch struct {
	now     func() time.Time
	elapsed func() time.Duration
	bound   time.Duration

	mu      sync.Mutex
	wall    time.Time // the two clocks when they were compared to begin with
	running time.Duration
}

// renewed is how long a comparison counts.
const renewed = 10 * time.Minute

// newClockWatch begins to watch. A nil elapsed takes the monotonic reading that
// the times of now carry.
func newClockWatch(now func() time.Time, elapsed func() time.Duration, bound time.Duration) *clockWatch {
	if elapsed == nil {
		started := now()
		elapsed = func() time.Duration { return now().Sub(started) }
	}
	w := &clockWatch{now: now, elapsed: elapsed, bound: bound}
	w.running = elapsed()
	w.wall = now().Round(0) // without its monotonic reading
	return w
}

// check says by how much the clock jumped, when that is more than the bound. It
// goes on saying so until the clock is back.
func (w *clockWatch) check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The process may stand still between two readings, so the second clock is
	// read on both sides of the first.
	before := w.elapsed()
	wall := w.now().Round(0)
	after := w.elapsed()
	passed := wall.Sub(w.wall)
	least, most := passed-(after-w.running), passed-(before-w.running)
	switch {
	case least > w.bound:
		return fmt.Errorf("authority: the clock went forward by %s: it has to be set back, or confirmed by a restart of the service", least.Round(time.Millisecond))
	case most < -w.bound:
		return fmt.Errorf("authority: the clock went back by %s: it has to be set right, or confirmed by a restart of the service", (-most).Round(time.Millisecond))
	case before-w.running >= renewed && after-before < w.bound/10:
		w.wall, w.running = wall, before
	}
	return nil
}
