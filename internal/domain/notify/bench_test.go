// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/notify"
)

// BenchmarkOrder is many callers that order messages for one operator, each in a
// transaction of its own as a request has it; BenchmarkDeliver is the other end.
func BenchmarkOrder(b *testing.B) {
	for _, engine := range engines(b) {
		for _, callers := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%s/callers=%d", engine.name, callers), func(b *testing.B) {
				o := &office{db: engine.open(b)}
				o.Service = bench(b, o)
				var n atomic.Int64
				b.ResetTimer()
				var done sync.WaitGroup
				for range callers {
					done.Go(func() {
						for {
							i := n.Add(1)
							if i > int64(b.N) {
								return
							}
							err := o.db.Atomic(context.Background(), func(ctx context.Context) error {
								return o.Order(ctx, direct(fmt.Sprintf("7%010d", i*100_003%10_000_000_000), "123456"))
							})
							if err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				done.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}

func BenchmarkDeliver(b *testing.B) {
	for _, engine := range engines(b) {
		b.Run(engine.name, func(b *testing.B) {
			o := &office{db: engine.open(b)}
			o.Service = bench(b, o)
			for i := range b.N {
				if err := o.Order(b.Context(), direct(fmt.Sprintf("7%010d", i*100_003%10_000_000_000), "123456")); err != nil {
					b.Fatal(err)
				}
			}
			o.sms.arrived = make(chan struct{}, b.N)
			ctx, stop := context.WithCancel(b.Context())
			b.ResetTimer()
			var loop sync.WaitGroup
			loop.Go(func() { o.Run(ctx) })
			for range b.N {
				<-o.sms.arrived
			}
			b.StopTimer()
			stop()
			loop.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

type benchEngine struct {
	name string
	open func(b *testing.B) *store.DB
}

func engines(b *testing.B) []benchEngine {
	cluster := storetest.PostgreSQL(b)
	return []benchEngine{
		{"SQLite", func(b *testing.B) *store.DB { return storetest.SQLite(b) }},
		{"PostgreSQL", func(b *testing.B) *store.DB { return storetest.Open(b, cluster.Database(b)) }},
	}
}

func bench(b *testing.B, o *office) *notify.Service {
	b.Helper()
	furnish(b, o)
	s := notify.DefaultSettings()
	for channel, budget := range s.Budgets {
		budget.Actor, budget.Prefix = 1<<30, 1<<30 // counted, never used up
		s.Budgets[channel] = budget
	}
	service, err := notify.New(s, o.deps)
	if err != nil {
		b.Fatal(err)
	}
	return service
}
