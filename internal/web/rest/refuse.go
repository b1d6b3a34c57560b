// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"time"
)

// A caller that a guard refuses waits for the answer. One that comes again at once, whatever the answer says,
// would otherwise keep a processor busy with refusals.
const (
	refusalWait   = 500 * time.Millisecond
	refusalsAwait = 1024 // at the same time; others are refused at once
)

// refusals has a value for each caller that waits for a refusal.
var refusals = make(chan struct{}, refusalsAwait)

// awaitRefusal waits before a refusal by a guard, not longer than ctx lasts.
func awaitRefusal(ctx context.Context) {
	select {
	case refusals <- struct{}{}:
	default:
		return
	}
	defer func() { <-refusals }()
	timer := time.NewTimer(refusalWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
