// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"tamga/internal/domain/fault"
)

// task is work that is done every minute.
type task struct {
	name string
	do   func(context.Context) error
}

// work delivers messages and audit entries, carries out operations, synchronizes directories and runs the tasks until ctx ends. It does nothing
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
	for _, d := range s.directories {
		delivering.Go(func() { d.Run(ctx) })
	}
	if s.exporter != nil {
		delivering.Go(func() { s.exporter.Run(ctx) })
	}
	delivering.Go(func() { s.services.watchKeys(ctx) })
	// Requests to other authorities and to the holders of keys may take long. Nothing else waits for them.
	delivering.Go(func() {
		s.repeat(ctx, task{"asking other authorities about their certificates", s.services.Keys.Refresh})
	})
	delivering.Go(func() {
		s.repeat(ctx, task{"fetching the list of accredited authorities", s.services.TrustList.Refresh})
	})
	delivering.Go(func() { s.repeat(ctx, task{"renewing archive time stamps", s.retention.RenewDue}) })
	delivering.Go(func() { s.repeat(ctx, task{"destroying deleted keys", s.services.Keys.DestroyDeleted}) })
	s.repeat(ctx, s.tasks...)
}

// ended notes the result of a task. An outage is the outage of what is away, not of each task.
func (s *Server) ended(task string, err error) {
	var outage *fault.Outage
	if errors.As(err, &outage) {
		s.services.log.Warn(task, "error", err)
		return
	}
	if err != nil { // once a minute, with the tasks
		s.services.log.Error(task, "error", err)
		s.services.watch.mark(part{"task", task}, err)
		return
	}
	s.services.watch.note(part{"task", task}, nil)
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
				err := t.do(ctx)
				if ctx.Err() != nil {
					return
				}
				s.ended(t.name, err)
			}
		}
	}
}
