// SPDX-License-Identifier: Apache-2.0

// Package authority is the built-in certificate authority: two hierarchies of a root and
// an issuing authority, the certificates they issue, revocation and revocation lists,
// OCSP answers and time stamps. Begin with New and Service.Bootstrap, then Service.Issue.
// Peers checks the certificates of TLS clients. The package does not decide who gets a
// certificate: its callers do.
//
// The GOST hierarchy certifies keys of the three GOST suites. Keys of ECDSA and
// RSA get certificates of a second hierarchy on P-256, so that a program without
// GOST can build and check their whole path.
//
// All state is in the database: any number of processes on one database are one
// authority. A process caches only certificates, which never change, and what a
// revocation list determines: the list and revocations. It reads the numbers of the
// lists each time.
package authority

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Errors that callers distinguish.
var (
	ErrNotIssued      = errors.New("authority: no certificate with this serial number was issued here")
	ErrAlreadyRevoked = errors.New("authority: the certificate is revoked already")
	ErrNotOnHold      = errors.New("authority: the certificate is not on hold")
)

// Table is the table authority keys belong to: the first half of their vault.Key.ID.
const Table = "authorities"

// Store keeps the authorities, what they issued and their current CRLs.
type Store interface {
	// Atomic runs fn in one serializable transaction. It may run fn more than once.
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// Authority reads one authority by name.
	Authority(ctx context.Context, name string) (Record, bool, error)
	// AddAuthority adds one. It reports false when the name is taken.
	AddAuthority(ctx context.Context, r Record) (added bool, err error)
	// States reads the changing state of all authorities.
	States(ctx context.Context) ([]State, error)
	// ReplaceCRL replaces the list with number seen by one with number seen+1. It reports
	// false when the current number is not seen.
	ReplaceCRL(ctx context.Context, name string, seen int64, crl []byte, at time.Time) (bool, error)

	// AddIssued records an issued certificate. It reports false when the serial number is
	// taken.
	AddIssued(ctx context.Context, i Issued) (added bool, err error)
	// Issued reads the record of a serial number.
	Issued(ctx context.Context, serial []byte) (Issued, bool, error)
	// MarkRevoked records a revocation, which may replace a hold. It reports false when
	// there was nothing to change. The same transaction must replace the CRL of the
	// authority, because records are kept as long as the CRL is the same one. That holds
	// for LiftHold, too.
	MarkRevoked(ctx context.Context, serial []byte, reason int, at time.Time) (bool, error)
	// LiftHold makes a certificate on hold valid again. It reports false when it was not
	// on hold.
	LiftHold(ctx context.Context, serial []byte) (bool, error)
	// Revoked reads all revocations of one authority, ordered by serial number.
	Revoked(ctx context.Context, authority string) ([]Issued, error)

	// Delegate reads the delegate of this name with the highest generation.
	Delegate(ctx context.Context, name string) (DelegateRecord, bool, error)
	// AddDelegate adds one. It reports false when the name has this generation already.
	AddDelegate(ctx context.Context, r DelegateRecord) (added bool, err error)
}

// GenerationStore keeps what renewals and rollovers make.
type GenerationStore interface {
	// ReplaceCertificate replaces the certificate of an authority that is still old. It reports
	// false if it is another one.
	ReplaceCertificate(ctx context.Context, name string, old, certificate []byte) (bool, error)
	// AddCross adds a cross certificate.
	AddCross(ctx context.Context, c Cross) error
	// Crosses reads all cross certificates, ordered by name.
	Crosses(ctx context.Context) ([]Cross, error)
	// HasUserCertificates reports whether an authority issued a certificate that is not of one of its
	// delegates.
	HasUserCertificates(ctx context.Context, authority string) (bool, error)
}

// Record is an authority as stored.
type Record struct {
	State
	Suite       string // name of its key's suite
	Holder      string // vault.Key.Holder of the key
	Sealed      []byte // vault.Key.Sealed of the key "authorities:NAME"
	Certificate []byte // DER
	CRL         []byte // DER of the current list
	CreatedAt   time.Time
}

// State is the changing state of an authority.
type State struct {
	Name      string // as in the addresses of its certificate and list
	CRLNumber int64  // of the current list, 1 and up
	CRLAt     time.Time
}

// Issued is an issued certificate and its revocation.
type Issued struct {
	Serial    []byte // content of the DER INTEGER; unique over all authorities
	Authority string
	NotAfter  time.Time
	IssuedAt  time.Time
	RevokedAt time.Time // zero: not revoked
	Reason    int       // CRLReason (RFC 5280, section 5.3.1); 0 unless revoked
}

// Config configures the authority.
type Config struct {
	// BaseURL is the address of the service, without a trailing slash; revocation
	// lists, certificates and OCSP answers are offered under it at CRLPath,
	// CertificatePath and OCSPPath. Empty: certificates name no addresses.
	BaseURL string
	// Holder is the name of the holder that new keys go to; "" means vault.SoftwareName.
	Holder string
	// Organization is the O in the names of authorities, time-stamping services and responders that are made from now
	// on, and Name begins their common names. Default "Tamga".
	Organization, Name string
	// RootYears and IssuingYears are the lifetimes of certificates that roots and issuing authorities get from now on, in
	// years. An issuing authority never outlives its root. Default 20 and 15.
	RootYears, IssuingYears int
	// Life is the life of a user's certificate. Default 15 months.
	Life time.Duration
	// CRLLife is the time from one revocation list to its nextUpdate; a list is
	// renewed at half of it. Default 7 days.
	CRLLife time.Duration
	// Policies go into the certificatePolicies of users' certificates. The Russian
	// profile has classes of protection here (1.2.643.100.113.1 and so on). Only
	// certified products may claim one, so the default is none.
	Policies []x509gost.OID
	// OCSPLife is the time from an OCSP answer to its nextUpdate: how long relying
	// parties may reuse the answer. Default 10 minutes.
	OCSPLife time.Duration
	// TSAPolicy is the policy of time stamps. The default, 2.25.1846093372, promises
	// nothing beyond the content of the token.
	TSAPolicy x509gost.OID
	// ClockJump is the largest jump of the clock after which time stamps are still made.
	// Default 1 second, the accuracy that a token promises.
	ClockJump time.Duration
	// Elapsed is a monotonic clock with any origin, which the wall clock is compared
	// with. Default: the monotonic reading in the times of the service's clock, as in
	// those of time.Now.
	Elapsed func() time.Duration
	// Generations keeps renewed certificates and cross certificates. Without it there are none.
	Generations GenerationStore
}

// Lifetimes. NotBefore and thisUpdate are skew in the past, for readers whose clock is
// slow.
const (
	defaultRootYears    = 20
	defaultIssuingYears = 15
	defaultLife         = 456 * 24 * time.Hour // 15 months
	defaultCRLLife      = 7 * 24 * time.Hour
	defaultOCSP         = 10 * time.Minute
	defaultJump         = time.Second
	skew                = 5 * time.Minute
)

// CRLPath is the path of the revocation list of an authority under BaseURL.
func CRLPath(name string) string { return "/pki/" + name + ".crl" }

// CertificatePath is the path of the certificate of an authority under BaseURL.
func CertificatePath(name string) string { return "/pki/" + name + ".crt" }

// hierarchies are all hierarchies of authorities.
var hierarchies = []hierarchy{
	{
		root: "gost-root", issuing: "gost", title: "GOST", suite: suite.GOST2012x256,
		certifies: []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.GOST2012x512},
		stamps:    stampsGOST,
	},
	{
		root: "ecdsa-root", issuing: "ecdsa", title: "ECDSA", suite: suite.ECDSAP256,
		certifies: []*suite.Suite{suite.ECDSAP256, suite.RSASHA256},
		stamps:    stampsSHA2,
	},
}

type hierarchy struct {
	root, issuing string // names of the two authorities
	title         string
	suite         *suite.Suite
	certifies     []*suite.Suite
	stamps        []*suite.Hash // digests that its time-stamping service accepts
}

// Service is the built-in authority. It is safe for concurrent use.
type Service struct {
	config  Config
	store   Store
	holders *vault.Holders
	rand    io.Reader
	now     func() time.Time
	clock   *clockWatch

	mu          sync.Mutex
	authorities map[string]*authority // by name; an entry never changes
	seen        map[string][]byte     // by name: the last certificate (DER), which Forget keeps
	changes     atomic.Uint64         // see Changes
	delegates   map[string]*authority // by name: the last one seen
	crls        map[string]parsedCRL  // by name: the last one seen
	tried       map[string]time.Time  // by name: last failed renewal of the list
	grouped     grouped               // the last ones asked for
	records     records
}

// authority is a stored authority ready for use.
type authority struct {
	name        string
	certificate *x509gost.Certificate
	key         vault.Key
}

// parsedCRL is a cached revocation list with the state it was read at.
type parsedCRL struct {
	of   State
	list *x509gost.RevocationList
}

// New makes the service. rand must be a secure source that is safe for
// concurrent use.
func New(c Config, s Store, h *vault.Holders, rand io.Reader, now func() time.Time) (*Service, error) {
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.HasSuffix(c.BaseURL, "/") {
			return nil, errors.New("authority: BaseURL: want http:// or https:// with a host and no trailing slash")
		}
	}
	c.Organization, c.Name, c.Holder = cmp.Or(c.Organization, "Tamga"), cmp.Or(c.Name, "Tamga"), cmp.Or(c.Holder, vault.SoftwareName)
	c.RootYears, c.IssuingYears = cmp.Or(c.RootYears, defaultRootYears), cmp.Or(c.IssuingYears, defaultIssuingYears)
	if c.Life == 0 {
		c.Life = defaultLife
	}
	if c.CRLLife == 0 {
		c.CRLLife = defaultCRLLife
	}
	if c.OCSPLife == 0 {
		c.OCSPLife = defaultOCSP
	}
	if c.TSAPolicy == nil {
		c.TSAPolicy = defaultTSAPolicy
	}
	if c.ClockJump == 0 {
		c.ClockJump = defaultJump
	}
	if c.RootYears < 0 || c.IssuingYears < 0 {
		return nil, errors.New("authority: RootYears and IssuingYears: want a positive number of years")
	}
	if c.Life < 0 || c.CRLLife < time.Minute {
		return nil, errors.New("authority: Life and CRLLife: want a positive life, and a minute at least for a revocation list")
	}
	if c.OCSPLife < time.Second || c.ClockJump < 0 {
		return nil, errors.New("authority: OCSPLife and ClockJump: want a second at least for an OCSP answer, and a jump that is not negative")
	}
	return &Service{
		config: c, store: s, holders: h, rand: rand, now: now,
		clock:       newClockWatch(now, c.Elapsed, c.ClockJump),
		authorities: map[string]*authority{},
		seen:        map[string][]byte{},
		delegates:   map[string]*authority{},
		crls:        map[string]parsedCRL{},
		tried:       map[string]time.Time{},
	}, nil
}

// Certificate returns the certificate (DER) of the authority of this name, such
// as "gost" or "gost-root". An unknown name is the fault object_not_found.
func (s *Service) Certificate(ctx context.Context, name string) ([]byte, error) {
	if strings.Contains(name, crossInfix) {
		return s.crossCertificate(ctx, name)
	}
	if !known(name) {
		return nil, unknownAuthority()
	}
	a, err := s.authority(ctx, name)
	if _, generation, _ := splitName(name); errors.Is(err, errAbsent) && generation > 1 {
		return nil, unknownAuthority()
	}
	if err != nil {
		return nil, err
	}
	return a.certificate.Raw, nil
}

// Roots returns the root certificates of all generations, GOST first, and of each hierarchy the newest
// first.
func (s *Service) Roots(ctx context.Context) ([]*x509gost.Certificate, error) {
	roots, _, err := s.Anchors(ctx)
	return roots, err
}

// Issuing returns the certificates of the issuing authorities of all generations, in the order of
// Roots.
func (s *Service) Issuing(ctx context.Context) ([]*x509gost.Certificate, error) {
	_, issuing, err := s.Anchors(ctx)
	return issuing, err
}

// Anchors returns Roots and Issuing. The store is asked once for both.
func (s *Service) Anchors(ctx context.Context) (roots, issuing []*x509gost.Certificate, err error) {
	states, err := s.store.States(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s.AnchorsAt(ctx, states)
}

// States returns the state of each authority, for AnchorsAt and CRLsAt.
func (s *Service) States(ctx context.Context) ([]State, error) { return s.store.States(ctx) }

// AnchorsAt is Anchors for states that the caller has read.
func (s *Service) AnchorsAt(ctx context.Context, states []State) (roots, issuing []*x509gost.Certificate, err error) {
	of := s.generationsOf(ctx, states)
	for _, h := range hierarchies {
		for _, to := range []struct {
			base string
			list *[]*x509gost.Certificate
		}{{h.root, &roots}, {h.issuing, &issuing}} {
			generations, err := of(to.base)
			if err != nil {
				return nil, nil, err
			}
			for _, a := range generations {
				*to.list = append(*to.list, a.certificate)
			}
		}
	}
	return roots, issuing, nil
}

// authority returns an authority from memory or from the store.
func (s *Service) authority(ctx context.Context, name string) (*authority, error) {
	s.mu.Lock()
	a := s.authorities[name]
	s.mu.Unlock()
	if a != nil {
		return a, nil
	}
	record, found, err := s.store.Authority(ctx, name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%w: %s", errAbsent, name)
	}
	if a, err = load(record); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authorities[name] = a
	if before, known := s.seen[name]; known && !bytes.Equal(before, a.certificate.Raw) {
		s.changes.Add(1)
	}
	s.seen[name] = a.certificate.Raw
	return a, nil
}

// Changes counts how often this process read another certificate of an authority than before. A caller
// that keeps paths reads it before it builds one, and drops the path when it has changed.
func (s *Service) Changes() uint64 { return s.changes.Load() }

// Reread reads the authorities again, since another process may have replaced a certificate.
func (s *Service) Reread(ctx context.Context) error {
	s.Forget()
	_, err := s.All(ctx)
	return err
}

// Forget drops the authorities in memory. They are read again, with their keys as they are sealed now.
func (s *Service) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.authorities)
	clear(s.delegates)
	s.grouped = grouped{}
}

func load(r Record) (*authority, error) {
	su, ok := suite.ByName(r.Suite)
	if !ok {
		return nil, fmt.Errorf("authority: %s has a key of suite %q, which this program does not know", r.Name, r.Suite)
	}
	cert, err := x509gost.ParseCertificate(r.Certificate)
	if err != nil {
		return nil, fmt.Errorf("authority: the certificate of %s: %w", r.Name, err)
	}
	return &authority{
		name:        r.Name,
		certificate: cert,
		key:         vault.Key{ID: keyID(r.Name), Holder: r.Holder, Suite: su, Sealed: r.Sealed},
	}, nil
}

func keyID(name string) string { return Table + ":" + name }

// sign returns the signing function of an authority's key.
func (s *Service) sign(ctx context.Context, k vault.Key) x509gost.SignFunc {
	return func(d suite.Digest) ([]byte, error) {
		values, err := s.holders.Sign(ctx, k, nil, []suite.Digest{d})
		if err != nil {
			return nil, err
		}
		return values[0], nil
	}
}

func known(name string) bool {
	_, _, ok := splitName(name)
	return ok
}

func unknownAuthority() error {
	return fault.New(fault.NotFound, "there is no certificate authority of this name")
}

// Ends returns the end of validity of the certificates of all authorities, by their names.
func (s *Service) Ends(ctx context.Context) (map[string]time.Time, error) {
	ends := map[string]time.Time{}
	list, err := s.All(ctx)
	for _, a := range list {
		ends[a.Name] = a.Certificate.NotAfter
	}
	return ends, err
}
