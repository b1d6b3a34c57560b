package app

import (
	"context"
	"sync"
	"time"
)

// task is work that is due now and then.
type task struct {
	name string
	do   func(context.Context) error
}

// Work delivers messages and does what is due now and then, until ctx ends.
func (h *Rooms) Work(ctx context.Context) {
	var delivering sync.WaitGroup
	defer delivering.Wait()
	delivering.Go(func() { h.Messages.Run(ctx) })
	delivering.Go(func() {
		h.refusals.Run(ctx, func(err error) { h.log.Error("writing refused sign-ins to the audit log", "error", err) })
	})
	if h.operations != nil {
		delivering.Go(func() { h.operations.Run(ctx) })
	}
	// Asking other authorities may take long; nothing else waits for it.
	delivering.Go(func() { h.repeat(ctx, task{"asking other authorities about their certificates", h.Keys.Refresh}) })
	h.repeat(ctx, h.tasks...)
}

// repeat does tasks every minute, one after the other.
func (h *Rooms) repeat(ctx context.Context, tasks ...task) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, t := range tasks {
				if err := t.do(ctx); err != nil && ctx.Err() == nil {
					h.log.Error(t.name, "error", err)
				}
			}
		}
	}
}
