// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/adapter/store"
)

// checkClock returns an error if the clock of this machine is too far from the clock of the
// database.
func (s *Services) checkClock(context.Context) error { return s.DB.CheckClock(s.Config.ClockOffset) }

// measureClock registers the difference of the two clocks.
func measureClock(registry prometheus.Registerer, db *store.DB) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tamga_clock_offset_seconds",
		Help: "How far the clock of this machine is ahead of the clock of the database.",
	}, func() float64 { return db.ClockOffset().Seconds() }))
}

// elapsed returns a monotonic clock. The time of the database has no monotonic reading.
func elapsed() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
