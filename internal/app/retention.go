// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/retention"
)

// makeRetention makes the service that keeps stored documents and renews their signatures.
func (m *serverMaker) makeRetention(context.Context) error {
	m.retention = &retention.Service{
		Store: store.Retentions{DB: m.DB}, Documents: m.documents, Operations: m.Operations, Signer: m.signer, Events: m.Messages,
		Services: m.timeStampServices, Now: m.DB.Now, Rand: rand.Reader, Settings: m.Config.Retention.Settings(),
		Counted: countRenewals(m.metrics),
		Failed:  func(err error) { m.log.Error("renewing archive time stamps", "error", err) },
	}
	m.server.retention = m.retention
	if len(m.Config.Retention.Groups) > 0 {
		m.documents.KeepFor = func(who audit.Principal) time.Duration { return m.Config.Retention.KeepFor(who.Group) }
		m.documents.Kept = m.retention.Kept
	}
	return m.Operations.Add(m.retention.OperationKind())
}

// timeStampServices returns the addresses of the registered services in their order.
func (b *Base) timeStampServices(ctx context.Context) (list []string, err error) {
	services, err := b.Policies.TSPServices(ctx)
	for _, t := range services {
		list = append(list, t.URL)
	}
	return list, err
}

// countRenewals returns a function that counts attempts to renew archive time stamps.
func countRenewals(registry prometheus.Registerer) func(outcome string) {
	made := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tamga_renewals_total", Help: "Attempts to renew archive time stamps of stored documents, by outcome.",
	}, []string{"outcome"})
	registry.MustRegister(made)
	for _, outcome := range retention.Outcomes {
		made.WithLabelValues(outcome)
	}
	return func(outcome string) { made.WithLabelValues(outcome).Inc() }
}

var (
	renewalsDesc  = prometheus.NewDesc("tamga_retained_documents", "Stored documents with a retention, at most 10000 of each state (kept, due, overdue, refused).", []string{"state"}, nil)
	renewalsDelay = prometheus.NewDesc("tamga_renewals_delay_seconds", "How long the first archive time stamp has been due for renewal.", nil, nil)
)

// Renewals returns the figures of renewals.
func (b *Base) Renewals(ctx context.Context) (retention.Figures, error) {
	return (&retention.Service{Store: store.Retentions{DB: b.DB}, Now: b.DB.Now}).Figures(ctx)
}

// collectRenewals adds the figures of renewals.
func (s *state) collectRenewals(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	f := &s.renewals
	for state, n := range map[string]int64{"kept": f.Retained, "due": f.Due, "overdue": f.Overdue, "refused": f.Refused} {
		gauge(renewalsDesc, float64(n), state)
	}
	delay := 0.0
	if !f.Oldest.IsZero() {
		delay = max(0, s.services.DB.Now().Sub(f.Oldest).Seconds())
	}
	gauge(renewalsDelay, delay)
}
