// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/adapter/evidence"
	"tamga/internal/adapter/guard"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/web/pages/operator"
	"tamga/internal/web/pkiapi"
	"tamga/internal/web/rest"
)

// OpenEvidence makes another source of evidence from the network, with other settings. The
// caller closes it.
func (b *Base) OpenEvidence(e config.Evidence) (*evidence.Source, error) {
	return openEvidence(b.Config, e, b.Policies, b.anchors, b.DB.Now, b.sources.note, nil)
}

// openEvidence makes a source of evidence from the network. observe and local may be nil.
func openEvidence(c *config.Config, e config.Evidence, policies *policy.Service, trusted *anchors, now func() time.Time, observe func(evidence.Event), local *evidence.Local) (*evidence.Source, error) {
	allowed, err := evidenceGuard(c, e)
	if err != nil {
		return nil, err
	}
	return evidence.New(evidence.Config{
		Services:               policies.TSPServices,
		AllowThirdPartyTSP:     policies.Rules.AllowThirdPartyTSP,
		Anchors:                trusted.all,
		Now:                    now,
		Exceptions:             allowed.Exceptions,
		Proxy:                  allowed.Proxy,
		Observe:                observe,
		Local:                  local,
		ClockTolerance:         e.ClockTolerance,
		HedgeAfter:             e.HedgeAfter,
		StampTimeout:           e.StampTimeout,
		StatusTimeout:          e.StatusTimeout,
		ListTimeout:            e.ListTimeout,
		TotalTimeout:           e.TotalTimeout,
		RequireStampRevocation: e.RequireTSPRevocation,
		RequireOCSPNonce:       e.RequireOCSPNonce,
		CachedAnswerBytes:      int64(e.CacheAnswers),
		CachedListBytes:        int64(e.CacheLists),
	})
}

// evidenceGuard returns which addresses requests for evidence may go to, and their proxy.
func evidenceGuard(c *config.Config, e config.Evidence) (allowed guard.Config, err error) {
	if allowed.Exceptions, err = e.Exceptions(); err != nil {
		return allowed, err
	}
	own, err := ownAddress(c.BaseURL())
	if err != nil {
		return allowed, err
	}
	allowed.Exceptions = append(allowed.Exceptions, own...)
	if e.Proxy != "" {
		if allowed.Proxy, err = url.Parse(e.Proxy); err != nil {
			return allowed, errors.New("evidence.proxy: want http:// or https:// and a host")
		}
	}
	return allowed, nil
}

// localAuthority returns the services of the built-in authority for requests of this process to its
// own public address. Several processes may share this address: any of them gives the same answer. The
// routes and the audit log are those of the server. There is no line in the log of requests, and the
// audit entries have the address 127.0.0.1.
func localAuthority(c *config.Config, a *authority.Service, to audit.Log, log *slog.Logger) (*evidence.Local, error) {
	u, err := url.Parse(c.BaseURL())
	if err != nil {
		return nil, fmt.Errorf("public_url: %w", err)
	}
	mux := http.NewServeMux()
	rest.Mount(mux, "", &rest.Gate{Audit: to, Log: log}, pkiapi.New(a, nil).Routes())
	return &evidence.Local{URL: u, Path: pkiapi.Path, Handler: rest.Identifiable(rest.Recovered(rest.Routed(mux), log))}, nil
}

// ownAddress returns the exception for the public address of this service. Certificates of the
// built-in authority name it, and it is often private. The result is empty if the address has no
// host or no port to connect to.
func ownAddress(public string) ([]guard.Exception, error) {
	u, err := url.Parse(public)
	if err != nil {
		return nil, fmt.Errorf("public_url: %w", err)
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]), 10, 16)
	if err != nil || port == 0 || u.Hostname() == "" {
		return nil, nil
	}
	x := guard.Exception{Host: strings.ToLower(u.Hostname()), Port: uint16(port)}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		a = a.Unmap()
		x.Host, x.Network = "", netip.PrefixFrom(a, a.BitLen())
	}
	return []guard.Exception{x}, nil
}

// countEvidence returns a function that counts requests for evidence to outside services.
func countEvidence(registry prometheus.Registerer) func(evidence.Event) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tamga_evidence_requests_total",
		Help: "Time stamps, OCSP answers, CRLs and issuers asked for, by kind and outcome.",
	}, []string{"kind", "outcome"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tamga_evidence_request_seconds",
		Help: "How long the services of others took, by kind.",
	}, []string{"kind"})
	registry.MustRegister(requests, seconds)
	return func(e evidence.Event) {
		requests.WithLabelValues(e.Kind, e.Outcome).Inc()
		if e.Host != "" {
			seconds.WithLabelValues(e.Kind).Observe(e.Duration.Seconds())
		}
	}
}

// sourceStates remembers how the outside services of this process answered last.
type sourceStates struct {
	now  func() time.Time
	mu   sync.Mutex
	list []operator.SourceState
}

// maxSources is the most services that are remembered: untrusted certificates may name any
// number of them.
const maxSources = 200

// note remembers a request. Answers from the cache and requests that their caller gave up say
// nothing about a service.
func (s *sourceStates) note(e evidence.Event) {
	if s == nil || e.Outcome != "ok" && e.Outcome != "failed" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(x operator.SourceState) bool { return x.Kind == e.Kind && x.Host == e.Host })
	if i < 0 {
		if len(s.list) == maxSources { // the one that was not asked for the longest time
			oldest := 0
			for j := range s.list {
				if s.list[j].Asked.Before(s.list[oldest].Asked) {
					oldest = j
				}
			}
			s.list = slices.Delete(s.list, oldest, oldest+1)
		}
		s.list = append(s.list, operator.SourceState{Kind: e.Kind, Host: e.Host})
		i = len(s.list) - 1
	}
	x := &s.list[i]
	x.Asked, x.Took = s.now(), e.Duration
	if e.Outcome == "ok" {
		x.Answered, x.Failures, x.Error = x.Asked, 0, ""
		return
	}
	x.Failures++
	x.Error = notify.OneLine(e.Err.Error())
}

// states returns what note remembers, sorted.
func (s *sourceStates) states() []operator.SourceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.list)
	slices.SortFunc(list, func(a, b operator.SourceState) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Host, b.Host))
	})
	return list
}
