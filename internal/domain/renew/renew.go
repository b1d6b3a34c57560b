// SPDX-License-Identifier: Apache-2.0

// Package renew renews the lease of work that is under way.
//
// A lease is short, and the process that does the work renews it with [Every]. So work may
// take long, and soon after the death of its process another one may take it over.
package renew

import (
	"context"
	"time"
)

// Every calls renew at every interval until stop is called or ctx ends. The context of
// renew ends with stop. When stop returns, no call is running: renew must not wait for
// something that the caller of stop holds, such as a row of its transaction.
func Every(ctx context.Context, interval time.Duration, renew func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				renew(ctx)
			}
		}
	}()
	return func() { cancel(); <-done }
}
