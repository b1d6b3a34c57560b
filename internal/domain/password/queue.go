// SPDX-License-Identifier: Apache-2.0

package password

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tamga/internal/domain/fault"
)

// Limits bounds the password attempts that wait for a derivation. A derivation takes tens
// of milliseconds and every caller may ask for one. So untrusted callers share a part of
// the capacity and a short queue.
type Limits struct {
	// Reserved is the part of the capacity that is kept for trusted callers, 0 to 1.
	// Untrusted callers can always run one derivation, in turn with trusted callers.
	Reserved float64
	// Waiting is how many attempts of untrusted callers may wait, OfOne how many of one of
	// them, and Wait how long. Trusted callers have higher limits: see trusts.
	Waiting, OfOne int
	Wait           time.Duration
}

// DefaultLimits keeps half of the capacity for trusted callers.
func DefaultLimits() Limits {
	return Limits{Reserved: 0.5, Waiting: 64, OfOne: 8, Wait: 700 * time.Millisecond}
}

func (a Limits) check() error {
	switch {
	case !(a.Reserved >= 0 && a.Reserved <= 1):
		return fmt.Errorf("password: limits: reserved is %v, want 0 to 1", a.Reserved)
	case a.Waiting < 1 || a.OfOne < 1:
		return fmt.Errorf("password: limits: waiting is %d and of one caller %d, want at least 1", a.Waiting, a.OfOne)
	case a.Wait <= 0:
		return fmt.Errorf("password: limits: wait is %v, want more than 0", a.Wait)
	}
	return nil
}

// Visitor is where a password attempt comes from.
type Visitor struct {
	// Key names the callers that share one turn: an address, a network of IPv6, or a
	// client that proved a secret.
	Key   string
	Trust Trust
}

// Trust is how far a caller is trusted before the password is checked.
type Trust int

// The degrees of trust.
const (
	Untrusted Trust = iota
	Known           // comes from an address that a user has signed in from
	Proved          // proved the secret of a client
)

// trusts has the queue and the limits of each degree of trust. The limits are multiples
// of the limits of untrusted callers.
var trusts = [...]struct {
	class                int
	waiting, ofOne, wait int
}{
	Untrusted: {untrusted, 1, 1, 1},
	Known:     {trusted, 10, 2, 5},
	Proved:    {trusted, 10, 10, 10}, // all users of an application share one key
}

type visitorKey struct{}

// WithVisitor returns a context that names the caller for [Hasher.Begin]. Without it the
// caller is untrusted.
func WithVisitor(ctx context.Context, v Visitor) context.Context {
	return context.WithValue(ctx, visitorKey{}, v)
}

// VisitorOf returns the caller set by [WithVisitor], or an untrusted one.
func VisitorOf(ctx context.Context) Visitor {
	v, _ := ctx.Value(visitorKey{}).(Visitor)
	return v
}

// inside is the caller of Encode: an operator or a command that sets a password.
var inside = Visitor{Trust: Proved}

// queue shares the memory among derivations. Untrusted and trusted callers wait in
// separate classes. Within a class, callers take turns.
type queue struct {
	limits Limits
	total  int64 // KiB for all derivations at one time
	share  int64 // KiB of total that untrusted callers may use

	mu       sync.Mutex
	used     int64
	classes  [2]class // untrusted, trusted
	previous int      // class of the last admission
}

const (
	untrusted = iota
	trusted
)

// class has the waiting attempts of untrusted or of trusted callers.
type class struct {
	lines   []*line // callers with waiting attempts; the next one is first
	byKey   map[string]*line
	waiting int
	used    int64
}

// line has the waiting attempts of one caller, oldest first.
type line struct {
	key     string
	tickets []*ticket
}

type ticket struct {
	weight   int64         // KiB
	admitted chan struct{} // closed on admission, under the lock of the queue
}

// newQueue returns a queue for total KiB. one is the memory of a derivation of the usual
// cost, in KiB.
func newQueue(limits Limits, total, one int64) *queue {
	q := &queue{limits: limits, total: total, share: max(one, int64(float64(total)*(1-limits.Reserved))), previous: trusted}
	for i := range q.classes {
		q.classes[i].byKey = map[string]*line{}
	}
	return q
}

// admit waits until weight KiB are free for the caller. The fault is too_many_requests if
// the queue is full or the wait is over. After an error, no memory is held.
func (q *queue) admit(ctx context.Context, v Visitor, weight int64) (release func(), err error) {
	s := trusts[v.Trust]
	of, wait := s.class, q.limits.Wait*time.Duration(s.wait)
	t, err := q.enter(of, v.Key, weight, q.limits.Waiting*s.waiting, q.limits.OfOne*s.ofOne, wait)
	if err != nil {
		return nil, err
	}
	release = func() { q.release(of, weight) }
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.admitted:
		return release, nil
	case <-timer.C:
		err = busy(wait)
	case <-ctx.Done():
		err = fmt.Errorf("password: waiting for memory to derive a hash: %w", context.Cause(ctx))
	}
	if q.leave(of, v.Key, t) {
		return nil, err
	}
	return release, nil // admitted at the same moment
}

// busy returns the fault too_many_requests for a full queue or a wait that is over.
func busy(wait time.Duration) error {
	return fault.New(fault.TooManyRequests, "too many sign-ins by password at this moment: wait a little and try again").Until(wait)
}

func (q *queue) enter(of int, key string, weight int64, most, ofOne int, wait time.Duration) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := &q.classes[of]
	l := c.byKey[key]
	if c.waiting >= most || l != nil && len(l.tickets) >= ofOne {
		return nil, busy(wait)
	}
	if l == nil {
		l = &line{key: key}
		c.byKey[key], c.lines = l, append(c.lines, l)
	}
	t := &ticket{weight: weight, admitted: make(chan struct{})}
	l.tickets = append(l.tickets, t)
	c.waiting++
	q.dispatch()
	return t, nil
}

// leave removes a ticket from the queue. It returns false if the ticket was admitted.
func (q *queue) leave(of int, key string, t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-t.admitted:
		return false
	default:
	}
	c := &q.classes[of]
	l := c.byKey[key]
	for i := range l.tickets {
		if l.tickets[i] == t {
			l.tickets = append(l.tickets[:i], l.tickets[i+1:]...)
			c.waiting--
			break
		}
	}
	if len(l.tickets) == 0 {
		c.drop(l)
	}
	q.dispatch() // the ticket may have blocked smaller ones
	return true
}

// drop removes a caller that has no waiting attempts.
func (c *class) drop(l *line) {
	delete(c.byKey, l.key)
	for i := range c.lines {
		if c.lines[i] == l {
			c.lines = append(c.lines[:i], c.lines[i+1:]...)
			return
		}
	}
}

func (q *queue) release(of int, weight int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used -= weight
	q.classes[of].used -= weight
	q.dispatch()
}

// dispatch admits the next attempts while there is memory. Trusted callers go first. If
// no attempt of an untrusted caller runs, one goes after each of a trusted caller.
func (q *queue) dispatch() {
	for {
		order := [2]int{trusted, untrusted}
		if q.classes[untrusted].used == 0 && q.previous == trusted {
			order = [2]int{untrusted, trusted}
		}
		admitted := false
		for _, of := range order {
			c := &q.classes[of]
			if len(c.lines) == 0 {
				continue
			}
			l := c.lines[0]
			t := l.tickets[0]
			if of == untrusted && c.used > 0 && c.used+t.weight > q.share {
				continue
			}
			if q.used+t.weight > q.total {
				return // the next free memory is for this attempt
			}
			l.tickets = l.tickets[1:]
			c.waiting--
			if len(l.tickets) == 0 {
				c.drop(l)
			} else {
				c.lines = append(c.lines[1:], l) // to the end: callers take turns
			}
			q.used += t.weight
			c.used += t.weight
			q.previous = of
			close(t.admitted)
			admitted = true
			break
		}
		if !admitted {
			return
		}
	}
}
