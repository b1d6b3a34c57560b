// SPDX-License-Identifier: Apache-2.0

// Package evidence fetches over HTTP the evidence for signatures: time stamps (RFC 3161),
// revocation data (OCSP, RFC 6960; CRL, RFC 5280) and certificates of issuers. It
// implements [sig.Evidence].
//
// Begin with New, then use Source.TimeStamp, Source.Revocation and Source.Issuer. Examine
// tests a time-stamp service. The package does not decide which services a user may use
// (package policy does).
//
// No answer is trusted. Every address is checked before its name is resolved, and every
// resolved network address is checked too. Redirects are refused, the size and time of
// answers are limited, and answers are checked completely before they are used.
//
// Services of others may fail at any time. Registered time-stamp services of one class
// replace each other, requests are repeated with growing pauses, a second service is
// asked if the first one is slow, and answers about revocation are kept until their
// nextUpdate.
//
// Files: fetch.go has one bounded request, local.go requests to this program itself,
// failure.go the texts of failures, endpoint.go back-off and quotas, stamp.go and race.go time stamps, examine.go the test of a
// service, revocation.go, ocsp.go and crl.go revocation, issuer.go issuers, cache.go the
// cache.
package evidence

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/singleflight"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/policy"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Config has the sources and limits of a Source. Zero values mean the defaults named at
// each field.
type Config struct {
	// Services reads the registered time-stamp services. It is called for every stamp.
	// Required.
	Services func(ctx context.Context) ([]policy.TSPService, error)
	// AllowThirdPartyTSP allows stamps from an address that is not registered. The policy
	// of the user must allow it too and is checked before.
	AllowThirdPartyTSP bool
	// Anchors reads the trusted certificates (roots) and the known authorities
	// (intermediates). The path of a time-stamping authority must lead to a root.
	// Required.
	Anchors func(ctx context.Context) (roots, intermediates []*x509gost.Certificate, err error)

	// Exceptions are networks and hosts that may be reached although they are not on the
	// public internet.
	Exceptions []guard.Exception
	// Proxy is the HTTP proxy; nil connects directly. Environment variables are ignored.
	// A proxy resolves names itself, so only it can keep requests out of private
	// networks. Numeric addresses are still checked here.
	Proxy *url.URL
	// TLS is the configuration for https; nil trusts the roots of the system.
	TLS *tls.Config
	// Local has the services of this program, which are asked without a connection; optional.
	Local *Local
	// Resolver turns names into addresses; nil means the system's.
	Resolver guard.Resolver

	// Now is the clock. Rand is the source of nonces and of the jitter of pauses, and
	// must be safe for concurrent use. Defaults time.Now and crypto/rand.
	Now  func() time.Time
	Rand io.Reader
	// Observe is called after every request and every answer from the cache, if it is not
	// nil. It must be fast.
	Observe func(Event)

	// ClockTolerance is the maximum difference between our clock and the time of a stamp,
	// or of an answer about revocation from the future. Default 5 minutes.
	ClockTolerance time.Duration
	// Tries is the maximum number of requests for one stamp, over all services. Pause is
	// the first pause before the same service is asked again. Each further pause is twice
	// as long, minus a random part. Defaults 4 and 200 ms.
	Tries int
	Pause time.Duration
	// HedgeAfter is how long a time-stamp service may take before a second one of its
	// class is asked too. Default 1.5 s; negative: never.
	HedgeAfter time.Duration
	// QuotaWait is how long a stamp waits for the quota of a service. Default 2 s.
	QuotaWait time.Duration
	// FreshWait is how long Revocation waits for an OCSP responder whose answers are
	// slightly older than requested: times in answers are whole seconds, and clocks
	// differ. Default 5 s.
	FreshWait time.Duration
	// StampTimeout limits one request to a time-stamp service, StatusTimeout one to an
	// OCSP responder or for a certificate, ListTimeout one download of a CRL. Defaults 5
	// s, 5 s, 1 minute.
	StampTimeout, StatusTimeout, ListTimeout time.Duration
	// TotalTimeout limits a whole TimeStamp. Default 20 s. A Revocation or Issuer takes
	// at most TotalTimeout plus ListTimeout.
	TotalTimeout time.Duration

	// RequireStampRevocation refuses a stamp if the revocation status of its authority
	// cannot be determined. Otherwise only a revoked authority is refused.
	RequireStampRevocation bool
	// RequireOCSPNonce refuses answers without our nonce. Answers with another nonce are
	// always refused. Answers without a nonce are common, because they were made in
	// advance.
	RequireOCSPNonce bool
	// OCSPHash is the digest that names certificates in OCSP requests. Default SHA-1, the
	// only one that every responder supports. Security does not depend on it.
	OCSPHash *suite.Hash

	// MaxStamp limits a TSP answer, in bytes. Default 64 KiB. OCSP answers are limited to
	// 1 MiB, CRLs to 64 MiB, bundles of certificates to 1 MiB.
	MaxStamp int64
	// CachedAnswers and CachedAnswerBytes limit the cache of OCSP answers and issuers,
	// CachedLists and CachedListBytes that of CRLs. Defaults 10000 and 32 MiB, 64 and 256
	// MiB.
	CachedAnswers, CachedLists         int
	CachedAnswerBytes, CachedListBytes int64
}

// Event is one finished request, or one answer from the cache.
type Event struct {
	Kind     string // tsp, ocsp, crl, issuer
	Host     string // of the request; empty for an answer from the cache
	Outcome  string // ok, failed, canceled, cached
	Err      error  // of a request that failed
	Hedged   bool   // a second request in addition to a slow one
	Duration time.Duration
}

// Source fetches evidence. It is safe for concurrent use.
type Source struct {
	Config
	client   *http.Client
	slots    map[*kind]chan struct{}
	services *endpoints // registered time-stamp services
	hosts    *endpoints // all other hosts
	answers  *cache     // OCSP and issuers
	lists    *cache     // CRLs
	flights  singleflight.Group
	base     context.Context // of requests that several callers share
	stop     context.CancelFunc
	guard    *guard.Guard
}

var _ sig.Evidence = (*Source)(nil)

// New returns a source. The caller must Close it.
func New(c Config) (*Source, error) {
	if c.Services == nil || c.Anchors == nil {
		return nil, errors.New("evidence: want Services and Anchors")
	}
	if c.Proxy != nil && (c.Proxy.Scheme != "http" && c.Proxy.Scheme != "https" || c.Proxy.Hostname() == "") {
		return nil, errors.New("evidence: proxy: want an http or https address")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.OCSPHash == nil {
		c.OCSPHash = suite.SHA1
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&c.ClockTolerance, 5 * time.Minute},
		{&c.Pause, 200 * time.Millisecond},
		{&c.HedgeAfter, 1500 * time.Millisecond},
		{&c.QuotaWait, 2 * time.Second},
		{&c.FreshWait, 5 * time.Second},
		{&c.StampTimeout, 5 * time.Second},
		{&c.StatusTimeout, 5 * time.Second},
		{&c.ListTimeout, time.Minute},
		{&c.TotalTimeout, 20 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.standard
		}
		if *d.field < 0 && d.field != &c.HedgeAfter {
			return nil, errors.New("evidence: a negative time")
		}
	}
	for _, n := range []struct {
		field    *int64
		standard int64
	}{{&c.MaxStamp, 64 << 10}, {&c.CachedAnswerBytes, 32 << 20}, {&c.CachedListBytes, 256 << 20}} {
		if *n.field <= 0 {
			*n.field = n.standard
		}
	}
	for _, n := range []struct {
		field    *int
		standard int
	}{{&c.Tries, 4}, {&c.CachedAnswers, 10000}, {&c.CachedLists, 64}} {
		if *n.field <= 0 {
			*n.field = n.standard
		}
	}
	s := &Source{
		Config:   c,
		services: newEndpoints(maxEndpoints),
		hosts:    newEndpoints(maxEndpoints),
		answers:  newCache(c.CachedAnswers, c.CachedAnswerBytes),
		lists:    newCache(c.CachedLists, c.CachedListBytes),
		slots:    map[*kind]chan struct{}{},
		guard:    guard.New(guard.Config{Exceptions: c.Exceptions, Resolver: c.Resolver, Proxy: c.Proxy}),
	}
	for _, k := range kinds {
		s.slots[k] = make(chan struct{}, k.atOnce)
	}
	s.base, s.stop = context.WithCancel(context.Background())
	s.client = newClient(c, s.guard)
	return s, nil
}

// Close cancels requests that serve only the cache, and closes idle connections.
func (s *Source) Close() {
	s.stop()
	s.client.CloseIdleConnections()
}

func (s *Source) observe(e Event) {
	if s.Observe != nil {
		s.Observe(e)
	}
}

// random returns n random bytes.
func (s *Source) random(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.Rand, b); err != nil {
		return nil, errors.New("evidence: the source of randomness failed")
	}
	return b, nil
}

// jitter shortens a pause by a random part of up to a half, so that callers that failed
// together do not retry together.
func (s *Source) jitter(d time.Duration) time.Duration {
	b, err := s.random(8)
	if err != nil || d < 2 {
		return d
	}
	return d - time.Duration(binary.BigEndian.Uint64(b)%uint64(d/2))
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
