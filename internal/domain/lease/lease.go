// SPDX-License-Identifier: Apache-2.0

// Package lease is the right of one process to work on a stored row for a time.
//
// A row has a random token and the time at which its lease ends. A process that finds no lease, or one
// whose time is over, takes the row with a token of its own. Leases are short, and [Rules.Hold]
// extends one for as long as the work takes. So work may take long, and soon after the death of a
// process another one goes on. Results are stored only by the statement that still finds the token:
// a process that was frozen for longer than its lease loses its result, and nothing is done twice.
package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
)

// ErrLost is the error of work whose lease was taken over by another process, or whose row has ended.
var ErrLost = errors.New("lease: another process has taken over this work, or it has ended")

// Lease is the right of the holder of Token to work on a row until Until. A token is never used again.
type Lease struct {
	Token string
	Until time.Time
}

// Rules are how long leases last.
type Rules struct {
	Life   time.Duration // of a lease; it is extended at every third of it
	Now    func() time.Time
	Rand   io.Reader
	Failed func(error) // is called for extensions that failed, unless it is nil
}

// New returns a lease that begins now. The caller writes it to its row.
func (r Rules) New() (Lease, error) {
	token, err := uuid.NewRandomFromReader(r.Rand)
	if err != nil {
		return Lease{}, fmt.Errorf("lease: making a token: %w", err)
	}
	return r.from(token.String()), nil
}

func (r Rules) from(token string) Lease { return Lease{token, r.Now().Add(r.Life)} }

// Extend writes the new end of a lease to its row. It reports false if the lease is lost. Its context
// ends with the work.
type Extend func(ctx context.Context, l Lease) (held bool, err error)

// Hold runs work and extends its lease meanwhile. When the lease is lost, the context of work ends. If
// work fails after that, the error is ErrLost.
func (r Rules) Hold(ctx context.Context, l Lease, extend Extend, work func(ctx context.Context) error) error {
	held, stop := r.Keep(ctx, l, extend)
	defer stop()
	err := work(held)
	if err != nil && errors.Is(context.Cause(held), ErrLost) {
		return ErrLost
	}
	return err
}

// Keep extends a lease until stop is called or ctx ends. held ends with ctx, with stop, and with the
// cause ErrLost when the lease is lost. A failed extension is repeated: the lease lasts for two more.
//
// When stop returns, no call of extend is running: extend must not wait for something that the caller
// of stop holds, such as a row of its transaction.
func (r Rules) Keep(ctx context.Context, l Lease, extend Extend) (held context.Context, stop func()) {
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(r.Life / 3)
		defer tick.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-tick.C:
			}
			ours, err := extend(held, r.from(l.Token))
			switch {
			case err != nil && held.Err() == nil && r.Failed != nil:
				r.Failed(err)
			case err == nil && !ours:
				cancel(ErrLost)
			}
		}
	}()
	return held, func() { cancel(nil); <-done }
}
