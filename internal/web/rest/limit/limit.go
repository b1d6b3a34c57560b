// SPDX-License-Identifier: Apache-2.0

// Package limit has the rate limits of callers: unknown callers by their address, known
// ones by their identifier.
//
// Begin with [New] and [Limiter.Admit]. [Turns] is a queue for calls that are expensive,
// and [Known] remembers addresses. All of them count in one process: several processes
// together admit several times as much.
package limit

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"tamga/internal/domain/fault"
)

// Limiter counts the calls of each caller. It is safe for concurrent use. Its count belongs
// to one process.
type Limiter struct {
	every rate.Limit
	burst int
	most  int
	now   func() time.Time

	mu     sync.Mutex
	recent *list.List // of *caller, the most recent first
	known  map[string]*list.Element
}

// caller is an IPv4 address, an IPv6 network, or a known caller.
type caller struct {
	key    string
	bucket *rate.Limiter
}

// New returns a limiter that lets each caller call perSecond times a second on average and
// burst times at once. It remembers the most callers that called last. A caller that was
// forgotten begins again with a full burst, so most should be more than the number of
// addresses that an anonymous caller has.
func New(perSecond float64, burst, most int, now func() time.Time) *Limiter {
	return &Limiter{
		every: rate.Limit(perSecond), burst: burst, most: most, now: now,
		recent: list.New(), known: map[string]*list.Element{},
	}
}

// Admit counts a call from an address. The fault is too_many_requests.
func (l *Limiter) Admit(remote string) error {
	if wait := l.take(Network(remote), 1); wait > 0 {
		return fault.New(fault.TooManyRequests, "too many calls from this address without a token: wait a little and try again").Until(wait)
	}
	return nil
}

// AdmitCaller counts a call of a known caller, by its identifier, as n calls. More than
// burst count as burst. The fault is too_many_requests.
func (l *Limiter) AdmitCaller(id string, n int) error {
	if wait := l.take(id, min(n, l.burst)); wait > 0 {
		return fault.New(fault.TooManyRequests, "too many calls of this kind: wait a little and try again").Until(wait)
	}
	return nil
}

// take takes n calls from the bucket of a caller. Otherwise it takes nothing and returns
// how long it takes until they are available.
func (l *Limiter) take(key string, n int) (wait time.Duration) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.known[key]
	if ok {
		l.recent.MoveToFront(e)
	} else {
		e = l.recent.PushFront(&caller{key, rate.NewLimiter(l.every, l.burst)})
		l.known[key] = e
		for l.recent.Len() > l.most {
			last := l.recent.Back()
			delete(l.known, l.recent.Remove(last).(*caller).key)
		}
	}
	r := e.Value.(*caller).bucket.ReserveN(now, n)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// Network returns what counts as one caller: an IPv4 address, or the /64 of an IPv6
// address, because a host usually controls all addresses of its /64.
func Network(remote string) string {
	a, err := netip.ParseAddr(remote)
	if err != nil {
		return remote
	}
	if a.Is4() {
		return remote // ParseAddr accepts one spelling of an IPv4 address
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
