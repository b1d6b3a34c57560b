// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/syslog"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/lease"
)

// collector returns the collector of audit entries, nil if the configuration has none.
func collector(c *config.Config, version string) (*syslog.Collector, error) {
	e := &c.Audit.Export
	if e.Address == "" {
		return nil, nil
	}
	var secure *tls.Config
	if e.Security == "tls" {
		pool, err := roots(c, e.AuthoritiesFile)
		if err != nil {
			return nil, fmt.Errorf("audit.export.authorities_file: %w", err)
		}
		secure = &tls.Config{RootCAs: pool}
		if e.CertificateFile != "" {
			own, err := keyPair(c, "audit.export", e.CertificateFile, e.KeyFile)
			if err != nil {
				return nil, err
			}
			secure.Certificates = []tls.Certificate{own}
		}
	}
	to, err := syslog.New(syslog.Config{
		Address: e.Address, TLS: secure, Format: syslog.Format(e.Format), Facility: e.Facility, Enterprise: e.Enterprise,
		Host: cmp.Or(e.Host, c.Host()), Version: cmp.Or(version, "0"), Timeout: e.Timeout, RequireEnd: e.RequireEnd,
	})
	if err != nil {
		return nil, fmt.Errorf("audit.export: %w", err)
	}
	return to, nil
}

// exportLease is how long the export waits for a process that was killed.
const exportLease = 10 * time.Second

// exporter returns what delivers audit entries to the collector, nil without one.
func (s *Services) exporter() (*audit.Exporter, error) {
	to, err := collector(s.Config, s.version)
	if err != nil || to == nil {
		return nil, err
	}
	failed := func(err error) { s.log.Error("exporting the audit log", "error", err) }
	return &audit.Exporter{
		Store: store.NewAuditExport(s.DB, s.Config.Audit.Export.From == "new"), Collector: to,
		Leases: lease.Rules{Life: exportLease, Now: s.DB.Now, Rand: rand.Reader, Failed: failed},
		// A series of its own: a collector that accepts connections may take no entries.
		Noted:  func(err error) { s.watch.note(exportEntries, err) },
		Ended:  func() { s.watch.forget(exportEntries) },
		Failed: failed,
	}, nil
}

// auditExport is the part of the collector of audit entries.
const auditExport = "audit_export"

// exportEntries is the part of the entries that this process delivers.
var exportEntries = part{auditExport, "entries"}

var (
	exportLag   = prometheus.NewDesc("tamga_audit_export_lag", "Audit entries that the collector has not taken yet; numbers that were never used count, too.", nil, nil)
	exportDelay = prometheus.NewDesc("tamga_audit_export_delay_seconds", "Age of the oldest audit entry that the collector has not taken yet.", nil, nil)
)

// collectExport adds the figures of the export, if there is one.
func (s *state) collectExport(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	f := &s.figures
	if s.services.Config.Audit.Export.Address == "" || !f.Exported {
		return
	}
	gauge(exportLag, float64(f.ExportLag))
	delay := 0.0
	if !f.ExportOldest.IsZero() {
		delay = max(0, s.services.DB.Now().Sub(f.ExportOldest).Seconds())
	}
	gauge(exportDelay, delay)
}

// exportDependency returns the collector as a dependency; ok is false without one.
func (b *Base) exportDependency() (d Dependency, ok bool, err error) {
	to, err := collector(b.Config, b.version)
	if err != nil || to == nil {
		return d, false, err
	}
	return Dependency{auditExport, "", "audit.export.address", func(ctx context.Context) error { return to.Probe(ctx) }}, true, nil
}
