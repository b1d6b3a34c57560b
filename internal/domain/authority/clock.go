// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"fmt"
	"sync"
	"time"
)

// clockWatch compares the wall clock with a monotonic clock. A time stamp is a promise
// about the wall clock. When that is set, by hand or after a long outage of its source,
// the time before or the time after was wrong, and this program cannot know which.
//
// Slow corrections are not reported: the comparison begins anew every renewed, so only
// jumps exceed the limit.
type clockWatch struct {
	now     func() time.Time
	elapsed func() time.Duration
	bound   time.Duration

	mu      sync.Mutex
	wall    time.Time // the two clocks at the beginning of the comparison
	running time.Duration
}

// renewed is how long one comparison lasts.
const renewed = 10 * time.Minute

// newClockWatch begins a comparison. A nil elapsed means the monotonic reading in the
// times of now.
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

// check returns an error when the clock jumped by more than the limit, until the clock is
// back.
func (w *clockWatch) check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The process may be paused between two readings, so the monotonic clock is read
	// before and after the wall clock.
	before := w.elapsed()
	wall := w.now().Round(0)
	after := w.elapsed()
	passed := wall.Sub(w.wall)
	least, most := passed-(after-w.running), passed-(before-w.running)
	switch {
	case least > w.bound:
		return fmt.Errorf("authority: the clock went forward by %s: set it back, or restart the service to confirm it", least.Round(time.Millisecond))
	case most < -w.bound:
		return fmt.Errorf("authority: the clock went back by %s: set it right, or restart the service to confirm it", (-most).Round(time.Millisecond))
	case before-w.running >= renewed && after-before < w.bound/10:
		w.wall, w.running = wall, before
	}
	return nil
}
