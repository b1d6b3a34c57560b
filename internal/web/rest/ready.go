// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// readyTime bounds the check of one need. A need that takes longer is not ready.
	readyTime = 2 * time.Second
	// readyLife is how long a result serves further probes. Several balancers may probe,
	// and each check of a bucket is a request to it.
	readyLife = time.Second
)

// Need is a service that the process needs for its work, such as its database.
type Need struct {
	Name  string // in the body of /readyz
	Check func(ctx context.Context) error
}

// Readiness answers /readyz: 200 if every need is ready, otherwise 503 with the needs that
// are not. After [Readiness.Drain] the answer is always 503.
type Readiness struct {
	parts    []*need
	noted    func(ctx context.Context, part string, err error)
	now      func() time.Time
	draining atomic.Bool
}

// NewReadiness returns the readiness of a process with these needs. noted gets the result of each need whenever it is
// asked for: nil if it is ready. Errors are for the log only.
func NewReadiness(noted func(ctx context.Context, part string, err error), needs ...Need) *Readiness {
	r := &Readiness{noted: noted, now: time.Now}
	for _, n := range needs {
		r.parts = append(r.parts, &need{Need: n})
	}
	return r
}

// Drain makes the process not ready for good, so that a balancer sends new requests
// elsewhere.
func (r *Readiness) Drain() { r.draining.Store(true) }

// Drained keeps connections open until Drain is called. Then each answer ends its
// connection, so that a balancer does not reuse a connection that is about to be closed.
func (r *Readiness) Drained(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if r.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, request)
	})
}

// readiness is the body of an answer.
type readiness struct {
	Status string            `json:"status"` // ok, ready, unavailable or stopping
	Parts  map[string]string `json:"parts,omitempty"`
}

// ServeHTTP implements [http.Handler].
func (r *Readiness) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	code, body := http.StatusOK, readiness{Status: "ready", Parts: map[string]string{}}
	for i, err := range r.Look(request.Context()) {
		name := r.parts[i].Name
		body.Parts[name] = "ready"
		if err != nil {
			body.Parts[name] = "unavailable"
			body.Status = "unavailable"
		}
	}
	if r.draining.Load() {
		body.Status = "stopping"
	}
	if body.Status != "ready" {
		code = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", strconv.Itoa(1))
	}
	writeJSON(w, code, body)
}

// Look returns the results of all needs, in their order. They are not older than readyLife and take readyTime at most.
func (r *Readiness) Look(ctx context.Context) []error {
	errs := make([]error, len(r.parts))
	var looking sync.WaitGroup
	for i, p := range r.parts {
		looking.Go(func() { errs[i] = p.ready(ctx, r.now) })
	}
	looking.Wait()
	for i, p := range r.parts {
		if ctx.Err() == nil { // otherwise the caller has gone, and nothing is known
			r.noted(ctx, p.Name, errs[i])
		}
	}
	return errs
}

// need is a Need with the result of its last check.
type need struct {
	Need
	mu      sync.Mutex
	at      time.Time     // time of the result
	err     error         // the result
	looking chan struct{} // closed at the end of the check under way; nil: none
}

// errSlow is the result while a check takes longer than readyTime.
var errSlow = errors.New("rest: no answer in " + readyTime.String())

// ready returns the result of a check that is not older than readyLife. All probes share
// one check. If a check hangs beyond its context, such as in a file system that is not
// reachable, no second one is started.
func (p *need) ready(ctx context.Context, now func() time.Time) error {
	p.mu.Lock()
	if p.looking == nil {
		if !p.at.IsZero() && now().Sub(p.at) < readyLife {
			defer p.mu.Unlock()
			return p.err
		}
		p.looking = make(chan struct{})
		go p.look(context.WithoutCancel(ctx), p.looking, now)
	}
	done := p.looking
	p.mu.Unlock()
	slow := time.NewTimer(readyTime)
	defer slow.Stop()
	select {
	case <-done:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.err
	case <-slow.C:
		return errSlow
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *need) look(ctx context.Context, done chan struct{}, now func() time.Time) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err := p.Check(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.err, p.looking = now(), err, nil
	close(done)
}
