// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/pki/suite"
	"tamga/pki/tsp"
)

// race gets one stamp from several services: the next one if one fails, and a second one
// in parallel if the first is slow. The first valid stamp wins.
type race struct {
	source  *Source
	trust   trust
	digest  suite.Digest
	queue   []turn
	budget  int // requests that may still be sent
	running int
	hedged  bool   // a second service was asked because the first was slow
	asked   string // key of the service asked last
	slow    string // key of the slow service, while it has not answered
	results chan outcome
	failed  []error // in order of arrival
	pause   time.Duration
}

// turn is a service that may be asked from a given time.
type turn struct {
	service  service
	from     time.Time
	patience time.Time // how long to wait for its quota; zero until that is used up
	again    bool      // it was asked before
	resting  bool      // it is in back-off
}

type outcome struct {
	turn  turn
	token *tsp.Verified
	err   error
}

// newRace puts the services into a queue. A resting service is asked only if no other is
// left, and once.
func newRace(s *Source, services []service, t trust, d suite.Digest) *race {
	now := s.Now()
	r := &race{source: s, trust: t, digest: d, budget: s.Tries, pause: s.Pause, results: make(chan outcome, s.Tries)}
	for _, svc := range services {
		r.queue = append(r.queue, turn{service: svc, from: now, resting: svc.registered && s.services.resting(svc.key, now)})
	}
	return r
}

func (r *race) run(ctx context.Context) (*tsp.Verified, error) {
	ctx, cancel := context.WithCancel(ctx) // cancels the losers
	defer cancel()
	hedge, wake := stoppedTimer(), stoppedTimer()
	defer hedge.Stop()
	defer wake.Stop()
	for {
		if r.running == 0 {
			wait, ok := r.start(ctx, false)
			switch {
			case !ok:
				return nil, r.refusal()
			case wait > 0:
				wake.Reset(wait)
			case !r.hedged && r.source.HedgeAfter > 0:
				hedge.Reset(r.source.HedgeAfter)
			}
		}
		select {
		case o := <-r.results:
			r.running--
			switch {
			case o.err == nil:
				r.won(o)
				return o.token, nil
			case ctx.Err() == nil: // otherwise it failed because of our cancellation
				r.note(o)
			}
		case <-hedge.C:
			if r.running == 1 && !r.hedged {
				r.second(ctx)
			}
		case <-wake.C:
		case <-ctx.Done():
			r.failed = append(r.failed, errors.New("the time for a time stamp is over"))
			return nil, r.refusal()
		}
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// start asks the next service. If it must wait first, it returns the time. It returns
// false if no service is left.
func (r *race) start(ctx context.Context, hedged bool) (wait time.Duration, ok bool) {
	for len(r.queue) > 0 && r.budget > 0 {
		now := r.source.Now()
		i := r.next(hedged)
		if i < 0 {
			return 0, false
		}
		t := r.queue[i]
		if t.from.After(now) {
			return t.from.Sub(now), true
		}
		r.queue = append(r.queue[:i], r.queue[i+1:]...)
		if wait := r.source.services.take(t.service.key, t.service.PerMinute, now); wait > 0 {
			if t.patience.IsZero() {
				t.patience = now.Add(r.source.QuotaWait)
			}
			if now.Add(wait).After(t.patience) {
				r.failed = append(r.failed, fmt.Errorf("%s: the quota of %d requests a minute is used up, the next one is in %s", t.service.URL, t.service.PerMinute, wait.Round(time.Millisecond)))
				continue
			}
			t.from = now.Add(wait)
			r.queue = append(r.queue, t)
			continue
		}
		r.budget--
		r.running++
		r.asked = t.service.key
		go func() {
			token, err := r.source.stamp(ctx, t.service, r.trust, r.digest, hedged)
			r.results <- outcome{t, token, err}
		}()
		return 0, true
	}
	return 0, false
}

// next returns the index of the earliest turn, preferring services that are not resting.
// A hedge uses only services that are not resting and were not asked before, so that the
// slow service is not asked twice.
func (r *race) next(hedged bool) int {
	best := -1
	for i, t := range r.queue {
		if hedged && (t.again || t.resting) {
			continue
		}
		if best < 0 || r.queue[best].resting && !t.resting || r.queue[best].resting == t.resting && t.from.Before(r.queue[best].from) {
			best = i
		}
	}
	return best
}

// second asks another service in addition to the slow one.
func (r *race) second(ctx context.Context) {
	slow := r.asked
	_, _ = r.start(ctx, true)
	if r.hedged = r.running == 2; r.hedged {
		r.slow = slow
	}
}

// won records a success. A service that was overtaken by one asked later counts as
// failed.
func (r *race) won(o outcome) {
	s := r.source
	if o.turn.service.registered {
		s.services.answered(o.turn.service.key)
	}
	if r.slow != "" && r.slow != o.turn.service.key {
		s.services.failed(r.slow, s.Now(), s.jitter)
	}
}

// note records a failure.
func (r *race) note(o outcome) {
	r.failed = append(r.failed, fmt.Errorf("%s: %w", o.turn.service.URL, o.err))
	s := r.source
	if o.turn.service.key == r.slow {
		r.slow = ""
	}
	if !isOutage(o.err) {
		if o.turn.service.registered {
			s.services.answered(o.turn.service.key)
		}
		return
	}
	if o.turn.service.registered {
		s.services.failed(o.turn.service.key, s.Now(), s.jitter)
	}
	if !o.turn.resting {
		r.queue = append(r.queue, turn{service: o.turn.service, from: s.Now().Add(s.jitter(r.pause)), again: true})
		r.pause *= 2
	}
}

// refusal returns the error if no service stamped.
func (r *race) refusal() error {
	return unavailable(whatStamp, "no time-stamp service gave one", r.failed)
}
