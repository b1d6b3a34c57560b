// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics counts requests. Labels are names of routes, never addresses, so clients cannot
// create new ones.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	inFlight prometheus.Gauge
	signIns  *prometheus.CounterVec

	mu   sync.RWMutex
	seen map[answered]*counters
}

// answered says which counters count a request. The names of routes and the statuses of this
// program are few.
type answered struct {
	route  string
	status int
}

// counters are the metrics of requests with the same labels.
type counters struct {
	requests prometheus.Counter
	duration prometheus.Observer
	in, out  prometheus.Counter
}

// signInRoutes are the routes whose outcomes are counted as sign-ins.
var signInRoutes = []string{"Token", "Authorize", "Login", "AuthorizeCertificate", "ExternalReturn"}

// NewMetrics registers the metrics with reg. It panics if they are registered already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		seen: map[answered]*counters{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tamga_http_requests_total", Help: "Requests answered, by route and status.",
		}, []string{"route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tamga_http_request_duration_seconds", Help: "Time from the headers to the end of the answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tamga_http_body_bytes_total", Help: "Bytes of bodies, by route and direction (in, out).",
		}, []string{"route", "direction"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tamga_http_requests_in_flight", Help: "Requests being served now.",
		}),
		signIns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tamga_sign_ins_total", Help: "Requests of sign-in and for tokens, by route and outcome (ok or a code of a refusal).",
		}, []string{"route", "outcome"}),
	}
	reg.MustRegister(m.requests, m.duration, m.bytes, m.inFlight, m.signIns)
	return m
}

// outcome counts a request of sign-in. Outcomes are codes of this program, so they are few.
func (m *Metrics) outcome(route string, status int, outcome string) {
	if !slices.Contains(signInRoutes, route) {
		return
	}
	if outcome == "" && status < 400 {
		outcome = "ok"
	}
	m.signIns.WithLabelValues(route, cmp.Or(outcome, strconv.Itoa(status))).Inc()
}

func (m *Metrics) done(route string, status int, took time.Duration, in, out int64) {
	c := m.counters(answered{route, status})
	c.requests.Inc()
	c.duration.Observe(took.Seconds())
	c.in.Add(float64(in))
	c.out.Add(float64(out))
}

// counters finds the counters once for all requests with the same labels.
func (m *Metrics) counters(of answered) *counters {
	m.mu.RLock()
	c := m.seen[of]
	m.mu.RUnlock()
	if c != nil {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c = m.seen[of]; c == nil {
		c = &counters{
			requests: m.requests.WithLabelValues(of.route, strconv.Itoa(of.status)),
			duration: m.duration.WithLabelValues(of.route),
			in:       m.bytes.WithLabelValues(of.route, "in"),
			out:      m.bytes.WithLabelValues(of.route, "out"),
		}
		m.seen[of] = c
	}
	return c
}

// MetricsPage serves the metrics registered with reg to Prometheus.
func MetricsPage(reg prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}
