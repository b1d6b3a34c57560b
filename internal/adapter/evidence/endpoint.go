// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"sync"
	"time"
)

// Back-off: after failuresToRest outages in a row an endpoint rests, first for firstRest,
// then twice as long each time up to longestRest. A resting endpoint is asked only if no
// other one can answer.
const (
	failuresToRest = 3
	firstRest      = 5 * time.Second
	longestRest    = 5 * time.Minute
)

// maxEndpoints limits how many endpoints are remembered. Certificates name them, so there
// can be any number.
const maxEndpoints = 1024

// endpoint is the state of an address that receives requests.
type endpoint struct {
	failures  int       // outages since the last answer
	restUntil time.Time // zero: not resting

	// The token bucket: tokens is the count at the time counted, at most perMinute.
	tokens  float64
	counted time.Time
}

// endpoints remembers the back-off and the quotas of addresses.
type endpoints struct {
	mu    sync.Mutex
	known *cache
}

func newEndpoints(most int) *endpoints {
	return &endpoints{known: newCache(most, int64(most)*4096)}
}

// endpoint must be called under the lock.
func (e *endpoints) endpoint(address string) *endpoint {
	if p, ok := e.known.get(address).(*endpoint); ok {
		return p
	}
	p := &endpoint{}
	e.known.put(address, p, 0)
	return p
}

// resting reports whether an address is in back-off.
func (e *endpoints) resting(address string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.known.get(address).(*endpoint)
	return ok && now.Before(p.restUntil)
}

// failed records an outage.
func (e *endpoints) failed(address string, now time.Time, jitter func(time.Duration) time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.endpoint(address)
	if now.Before(p.restUntil) {
		return // a request from before the rest proves nothing new
	}
	if p.failures++; p.failures >= failuresToRest {
		rest := firstRest << min(p.failures-failuresToRest, 10)
		p.restUntil = now.Add(jitter(min(rest, longestRest)))
	}
}

// answered records that an address has answered.
func (e *endpoints) answered(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.known.get(address).(*endpoint); ok {
		p.failures, p.restUntil = 0, time.Time{}
	}
}

// take takes one request from the quota and returns 0, or returns the time until one is
// available.
func (e *endpoints) take(address string, perMinute int, now time.Time) time.Duration {
	if perMinute <= 0 {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.endpoint(address)
	most := float64(perMinute)
	if p.counted.IsZero() {
		p.tokens = most
	} else if passed := now.Sub(p.counted); passed > 0 {
		p.tokens += most * passed.Minutes()
	}
	p.tokens = min(p.tokens, most)
	p.counted = now
	if p.tokens >= 1-tokenDust {
		p.tokens--
		return 0
	}
	return time.Duration((1 - p.tokens) / most * float64(time.Minute))
}

// tokenDust is the tolerance for rounding of a token.
const tokenDust = 1e-6
