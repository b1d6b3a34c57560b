// Package evidence fetches over HTTP what proves a signature: time stamps (RFC
// 3161), revocation data (OCSP, RFC 6960; CRL, RFC 5280) and certificates of
// issuers. It implements [sig.Evidence].
//
// It trusts nobody: every address is checked before and every address of the
// network after its name was resolved, redirects are refused, answers and time
// are bounded, and what comes back is checked to the last octet before anyone
// sees it. It expects other people's services to fail: registered time-stamp
// services of one class stand in for one another, requests are tried again with
// growing pauses, a second service is asked when the first is slow, and answers
// about revocation are kept until their nextUpdate.
//
// What each file owns: address.go which addresses may be reached, fetch.go one
// bounded request, failure.go how a failure is told, endpoint.go health and
// quotas, stamp.go and race.go time stamps, examine.go the trial of a service,
// revocation.go with ocsp.go and crl.go revocation, issuer.go issuers, cache.go
// what is kept.
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

// Config says whom to ask and how patiently. Zero values mean the defaults named
// at each field.
type Config struct {
	// Services reads the registered time-stamp services; it is asked for every
	// stamp. Required.
	Services func(ctx context.Context) ([]policy.TSPService, error)
	// AllowThirdPartyTSP lets a stamp come from an address that is not
	// registered. The policy decides first; this is the second lock of the door.
	AllowThirdPartyTSP bool
	// Anchors reads the certificates that are trusted as they are (roots) and the
	// authorities that are known here (intermediates). A time-stamping
	// authority's path must lead to a root. Required.
	Anchors func(ctx context.Context) (roots, intermediates []*x509gost.Certificate, err error)

	// Exceptions are networks and hosts that may be reached although they are
	// private, loopback and the like.
	Exceptions []guard.Exception
	// Proxy is the HTTP proxy to go through; nil goes directly. The environment
	// is not asked. Behind a proxy names are resolved by the proxy, so only it can
	// keep requests out of private networks; addresses given as numbers are still
	// checked here.
	Proxy *url.URL
	// TLS is the configuration for https; nil trusts the roots of the system.
	TLS *tls.Config
	// Resolver turns names into addresses; nil means the system's.
	Resolver guard.Resolver

	// Now is the clock, Rand the source of nonces and of the jitter of pauses,
	// safe for concurrent use. Defaults time.Now and crypto/rand.
	Now  func() time.Time
	Rand io.Reader
	// Observe is called after every request and every answer from the cache; nil
	// for nobody. It must be quick.
	Observe func(Event)

	// ClockTolerance is how far the time of a stamp, or of an answer about
	// revocation that lies in the future, may be from ours. Default 5 minutes.
	ClockTolerance time.Duration
	// Tries is how many requests one stamp may cost, over all services, and
	// Pause the first pause before asking the same service again; each next one
	// is twice as long, less a random part. Defaults 4 and 200 ms.
	Tries int
	Pause time.Duration
	// HedgeAfter is how long a time-stamp service may keep us waiting before a
	// second one of its class is asked too. Default 1.5 s; negative: never.
	HedgeAfter time.Duration
	// QuotaWait is how long a stamp waits for the quota of a service. Default 2 s.
	QuotaWait time.Duration
	// FreshWait is how long Revocation waits for an OCSP responder whose answers
	// are a moment older than asked for: times in answers are whole seconds, and
	// clocks differ. Default 5 s.
	FreshWait time.Duration
	// StampTimeout and StatusTimeout bound one request to a time-stamp service,
	// and to an OCSP responder or for a certificate; ListTimeout one download of
	// a CRL. Defaults 5 s, 5 s, 1 minute.
	StampTimeout, StatusTimeout, ListTimeout time.Duration
	// TotalTimeout bounds a whole TimeStamp. Default 20 s. A Revocation or Issuer
	// takes at most that and ListTimeout.
	TotalTimeout time.Duration

	// RequireStampRevocation refuses a stamp when the revocation of its authority
	// cannot be found out. Otherwise only a revoked authority is refused.
	RequireStampRevocation bool
	// RequireOCSPNonce refuses answers without our nonce. Answers with another
	// nonce are refused always; those without are common: they were made ahead.
	RequireOCSPNonce bool
	// OCSPHash names certificates in OCSP requests. Default SHA-1, the one every
	// responder knows; nothing rests on it.
	OCSPHash *suite.Hash

	// MaxStamp bounds a TSP answer, in octets. Default 64 KiB. OCSP answers are
	// bounded by 1 MiB, CRLs by 64 MiB, bundles of certificates by 1 MiB.
	MaxStamp int64
	// CachedAnswers and CachedAnswerBytes bound what is kept of OCSP and issuers,
	// CachedLists and CachedListBytes of CRLs. Defaults 10000 and 32 MiB, 64 and
	// 256 MiB.
	CachedAnswers, CachedLists         int
	CachedAnswerBytes, CachedListBytes int64
}

// Event is one request that ended, or one answer that was at hand.
type Event struct {
	Kind     string // tsp, ocsp, crl, issuer
	Host     string // that was asked; empty for an answer from the cache
	Outcome  string // ok, failed, canceled, cached
	Hedged   bool   // a second request beside one that was slow
	Duration time.Duration
}

// Source fetches evidence. It is safe for concurrent use.
type Source struct {
	Config
	client   *http.Client
	slots    map[*kind]chan struct{}
	services *endpoints // registered time-stamp services
	hosts    *endpoints // everybody else who is asked
	answers  *cache     // OCSP and issuers
	lists    *cache     // CRLs
	flights  singleflight.Group
	base     context.Context // of requests that several callers wait for
	stop     context.CancelFunc
	guard    *guard.Guard
}

var _ sig.Evidence = (*Source)(nil)

// New returns a source. Close it when done.
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

// Close ends requests under way that nobody but the cache waits for, and idle
// connections.
func (s *Source) Close() {
	s.stop()
	s.client.CloseIdleConnections()
}

func (s *Source) observe(e Event) {
	if s.Observe != nil {
		s.Observe(e)
	}
}

// random returns n random octets.
func (s *Source) random(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.Rand, b); err != nil {
		return nil, errors.New("evidence: the source of randomness failed")
	}
	return b, nil
}

// jitter shortens a pause by a random part of up to a half, so that callers who
// failed together do not come back together.
func (s *Source) jitter(d time.Duration) time.Duration {
	b, err := s.random(8)
	if err != nil || d < 2 {
		return d
	}
	return d - time.Duration(binary.BigEndian.Uint64(b)%uint64(d/2))
}

// sleep waits, unless ctx ends first.
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
