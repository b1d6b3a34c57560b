// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/retention"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/sig/budget"
)

// countSignatures returns a function that counts signatures. The types and suites are those of this
// program.
func countSignatures(registry prometheus.Registerer) func(string, *suite.Suite) {
	made := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tamga_signatures_total", Help: "Signatures that were made, by type and suite.",
	}, []string{"type", "suite"})
	registry.MustRegister(made)
	return func(signatureType string, su *suite.Suite) { made.WithLabelValues(signatureType, su.Name).Inc() }
}

// measure registers what is read at each scrape.
func (s *Services) measure(version string) {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, x := range info.Settings {
			if x.Key == "vcs.revision" {
				commit = x.Value
			}
		}
	}
	s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tamga_build_info", Help: "1, with the version of the program in the labels.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "go": runtime.Version()},
	}, func() float64 { return 1 }), &state{services: s})
}

// stateTime bounds what a scrape asks the database, and stateLife is how long an answer serves: several
// servers may scrape.
const (
	stateTime = 2 * time.Second
	stateLife = 10 * time.Second
)

// state collects the state of the database and of certificates. If the database does not answer, its
// figures are missing in the scrape.
type state struct {
	services *Services

	mu      sync.Mutex
	at      time.Time
	figures store.Figures
	known   bool                 // figures were read
	ends    map[string]time.Time // ends of validity, by name
	holders []vault.HolderState

	renewals  retention.Figures
	trustList time.Time // date of the list of authorities; zero: no list is stored
}

var (
	waitingDesc    = prometheus.NewDesc("tamga_waiting", "Records that wait, at most 10000 of each kind (messages, dead_messages, callbacks, operations, confirmations).", []string{"kind"}, nil)
	oldestDesc     = prometheus.NewDesc("tamga_outbox_delay_seconds", "How long the first message has been due.", nil, nil)
	poolDesc       = prometheus.NewDesc("tamga_database_connections", "Connections of this process to the database (open, in_use, most).", []string{"state"}, nil)
	poolWaits      = prometheus.NewDesc("tamga_database_waits_total", "How often a caller waited for a connection (PostgreSQL).", nil, nil)
	poolWaitTime   = prometheus.NewDesc("tamga_database_wait_seconds_total", "How long callers waited for connections (PostgreSQL).", nil, nil)
	commitQueue    = prometheus.NewDesc("tamga_committer_queue", "Units of work that wait for the committer (SQLite).", nil, nil)
	commitBatches  = prometheus.NewDesc("tamga_committer_batches_total", "Transactions of the committer (SQLite).", nil, nil)
	commitUnits    = prometheus.NewDesc("tamga_committer_units_total", "Units of work in these transactions (SQLite).", nil, nil)
	certificateEnd = prometheus.NewDesc("tamga_certificate_not_after_seconds", "End of validity as Unix time, of authorities and of the TLS certificate.", []string{"name"}, nil)
	userEnds       = prometheus.NewDesc("tamga_user_certificates_ending", "Valid certificates of users by the built-in authority that end within a time, at most 10000 of each (1d, 7d, 30d).", []string{"within"}, nil)
	tokenKeyMade   = prometheus.NewDesc("tamga_token_key_created_seconds", "When the newest key that signs tokens was made, as Unix time.", nil, nil)
	backupTaken    = prometheus.NewDesc("tamga_backup_taken_seconds", "Time of the state that the newest backup has, as Unix time; 0 without a backup.", nil, nil)
	trustListDated = prometheus.NewDesc("tamga_trust_list_dated_seconds", "Date of the stored list of accredited authorities, as Unix time; 0 without one.", nil, nil)
	holderReady    = prometheus.NewDesc("tamga_key_holder_ready", "1 if a holder of private keys can be used, otherwise 0.", []string{"holder"}, nil)
	closedDesc     = prometheus.NewDesc("tamga_closed", "1 while a restored service waits for its release.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *state) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{waitingDesc, oldestDesc, poolDesc, poolWaits, poolWaitTime, commitQueue, commitBatches, commitUnits, certificateEnd, userEnds, tokenKeyMade, backupTaken, trustListDated, holderReady, closedDesc, exportLag, exportDelay, renewalsDesc, renewalsDelay} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *state) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	p := s.services.DB.Pool()
	gauge(poolDesc, float64(p.Open), "open")
	gauge(poolDesc, float64(p.InUse), "in_use")
	gauge(poolDesc, float64(p.Most), "most")
	counter(poolWaits, float64(p.Waits))
	counter(poolWaitTime, p.WaitTime.Seconds())
	gauge(commitQueue, float64(p.Queue))
	counter(commitBatches, float64(p.Batches))
	counter(commitUnits, float64(p.Units))

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || s.services.DB.Now().Sub(s.at) > stateLife {
		s.read()
	}
	for name, end := range s.ends {
		gauge(certificateEnd, float64(end.Unix()), name)
	}
	for _, h := range s.holders {
		ready := 1.0
		if h.Err != nil {
			ready = 0
		}
		gauge(holderReady, ready, h.Name)
	}
	if !s.known {
		return
	}
	for _, w := range []struct {
		kind string
		n    int64
	}{
		{"messages", s.figures.Messages}, {"dead_messages", s.figures.Dead}, {"callbacks", s.figures.Callbacks},
		{"operations", s.figures.Operations}, {"confirmations", s.figures.Confirmations},
	} {
		gauge(waitingDesc, float64(w.n), w.kind)
	}
	for i, within := range store.EndingWithin {
		gauge(userEnds, float64(s.figures.Ending[i]), fmt.Sprintf("%.0fd", within.Hours()/24))
	}
	if !s.figures.TokenKey.IsZero() {
		gauge(tokenKeyMade, float64(s.figures.TokenKey.Unix()))
	}
	taken := 0.0
	if !s.figures.Backup.IsZero() {
		taken = float64(s.figures.Backup.Unix())
	}
	gauge(backupTaken, taken)
	dated := 0.0
	if !s.trustList.IsZero() {
		dated = float64(s.trustList.Unix())
	}
	gauge(trustListDated, dated)
	delay := 0.0
	if !s.figures.Oldest.IsZero() {
		delay = max(0, s.services.DB.Now().Sub(s.figures.Oldest).Seconds())
	}
	gauge(oldestDesc, delay)
	s.collectExport(gauge)
	s.collectRenewals(gauge)
	closed := 0.0
	if s.figures.Closed {
		closed = 1
	}
	gauge(closedDesc, closed)
}

// read reads everything that is kept for stateLife.
func (s *state) read() {
	s.at, s.ends = s.services.DB.Now(), map[string]time.Time{}
	asking, stop := context.WithTimeout(context.Background(), stateTime)
	s.holders = s.services.holders.States(asking)
	stop()
	for _, h := range s.holders {
		s.services.watch.note(part{"holder", h.Name}, h.Err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stateTime)
	defer cancel()
	var err error
	s.figures, err = s.services.DB.Figures(ctx)
	s.known = err == nil
	if err != nil {
		s.services.log.Warn("reading metrics from the database", "error", err)
		return
	}
	if s.renewals, err = s.services.Renewals(ctx); err != nil {
		s.services.log.Warn("reading retentions for metrics", "error", err)
	}
	list, _, err := s.services.TrustList.Info(ctx)
	if err != nil {
		s.services.log.Warn("reading the date of the list of authorities for metrics", "error", err)
	} else {
		s.trustList = list.Date
	}
	ends, err := s.services.Authority.Ends(ctx)
	if err != nil {
		s.services.log.Warn("reading the certificates of the authorities for metrics", "error", err)
	}
	for name, end := range ends {
		s.ends[name] = end
	}
	if end, ok := certificateEndOf(s.services.Config.Path(s.services.Config.TLS.CertificateFile)); ok && s.services.Config.TLS.CertificateFile != "" {
		s.ends["tls"] = end
	}
}

// certificateEndOf returns the end of the first certificate of a PEM file.
func certificateEndOf(file string) (time.Time, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, false
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}, false
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return c.NotAfter, true
}

// documentMemory collects the state of the memory for documents.
type documentMemory struct{ pool *budget.Pool }

var (
	memoryBytes   = prometheus.NewDesc("tamga_document_memory_bytes", "Memory for documents (most, used: by all; anonymous: of it by callers without a token).", []string{"state"}, nil)
	memoryWaiting = prometheus.NewDesc("tamga_document_memory_waiting", "Documents that wait for memory.", nil, nil)
	memoryRefused = prometheus.NewDesc("tamga_document_memory_refused_total", "Documents that were sent away because others held the memory.", nil, nil)
)

// Describe implements prometheus.Collector.
func (d documentMemory) Describe(out chan<- *prometheus.Desc) {
	out <- memoryBytes
	out <- memoryWaiting
	out <- memoryRefused
}

// Collect implements prometheus.Collector.
func (d documentMemory) Collect(out chan<- prometheus.Metric) {
	u := d.pool.Usage()
	for state, n := range map[string]int64{"most": u.Most, "used": u.Used, "anonymous": u.UsedByAnonymous} {
		out <- prometheus.MustNewConstMetric(memoryBytes, prometheus.GaugeValue, float64(n), state)
	}
	out <- prometheus.MustNewConstMetric(memoryWaiting, prometheus.GaugeValue, float64(u.Waiting))
	out <- prometheus.MustNewConstMetric(memoryRefused, prometheus.CounterValue, float64(u.Refused))
}
