// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"
)

// task is work that is done every minute.
type task struct {
	name string
	do   func(context.Context) error
}

// work delivers messages, carries out operations and runs the tasks until ctx ends. It does nothing
// while the service is closed.
func (s *Server) work(ctx context.Context) {
	if !s.closed.wait(ctx) {
		return
	}
	var delivering sync.WaitGroup
	defer delivering.Wait()
	delivering.Go(func() { s.services.Messages.Run(ctx) })
	delivering.Go(func() {
		s.refusals.Run(ctx, func(err error) { s.services.log.Error("writing refused sign-ins to the audit log", "error", err) })
	})
	delivering.Go(func() { s.operations.Run(ctx) })
	delivering.Go(func() { s.services.watchKeys(ctx) })
	// Requests to other authorities and to the holders of keys may take long. Nothing else waits for them.
	delivering.Go(func() {
		s.repeat(ctx, task{"asking other authorities about their certificates", s.services.Keys.Refresh})
	})
	delivering.Go(func() { s.repeat(ctx, task{"destroying deleted keys", s.services.Keys.DestroyDeleted}) })
	s.repeat(ctx, s.tasks...)
}

// repeat runs the tasks every minute, one after the other, and logs their errors.
func (s *Server) repeat(ctx context.Context, tasks ...task) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, t := range tasks {
				if err := t.do(ctx); err != nil && ctx.Err() == nil {
					s.services.log.Error(t.name, "error", err)
				}
			}
		}
	}
}
