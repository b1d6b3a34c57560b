// SPDX-License-Identifier: Apache-2.0

package svsapi

import (
	"context"
	"sync"
	"time"
)

// deadline is a context that ends at a time. It arms a timer only when a caller waits for Done: most
// verifications take a tenth of a millisecond and only ask Err, and the timer of
// [context.WithDeadline] is a fiftieth of their cost.
type deadline struct {
	context.Context
	at time.Time

	mu    sync.Mutex
	armed context.Context // with a timer; nil until Done is called
	stop  context.CancelFunc
	err   error // what Err returned first
}

// within returns a context that ends after d, and what frees its timer.
func within(ctx context.Context, d time.Duration) (*deadline, context.CancelFunc) {
	l := &deadline{Context: ctx, at: time.Now().Add(d)}
	return l, l.free
}

func (l *deadline) Deadline() (time.Time, bool) {
	if at, ok := l.Context.Deadline(); ok && at.Before(l.at) {
		return at, true
	}
	return l.at, true
}

func (l *deadline) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed == nil {
		l.armed, l.stop = context.WithDeadline(l.Context, l.at)
	}
	return l.armed.Done()
}

func (l *deadline) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
	case l.armed != nil:
		l.err = l.armed.Err()
	case l.Context.Err() != nil:
		l.err = l.Context.Err()
	case !time.Now().Before(l.at):
		l.err = context.DeadlineExceeded
	}
	return l.err
}

func (l *deadline) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
	}
}
