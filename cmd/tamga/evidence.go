package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/adapter/evidence"
	"tamga/internal/adapter/guard"
	"tamga/internal/domain/policy"
	"tamga/pki/x509gost"
)

// EvidenceConfig says where time stamps, revocation data and issuers of others
// may be fetched from, and whom to trust beside the built-in authority.
type EvidenceConfig struct {
	// Registered time-stamp services. The first one is the default; those added
	// by "tamga tsp add" come after them.
	TSPServices []TSPServiceConfig `yaml:"tsp_services"`
	// Files with trusted root certificates (PEM, DER or PKCS #7) beside those of
	// the built-in authority: time-stamping authorities of others lead to them.
	RootFiles []string `yaml:"root_files"`
	// Files with further certificates of authorities, which are not trusted by
	// themselves.
	AuthorityFiles []string `yaml:"authority_files"`
	// Networks and hosts that may be reached although they are private, loopback
	// or link-local: 10.1.0.0/16, 10.1.2.3, 10.1.2.3:318, tsp.example.org:80. The
	// address of this service itself is always among them.
	AllowNetworks []string `yaml:"allow_networks"`
	// HTTP proxy. Empty: none; the environment is not asked.
	Proxy string `yaml:"proxy"`
	// Whether a stamp is refused when nobody can say whether its authority was
	// revoked. Default false: only a revoked one is refused.
	RequireTSPRevocation bool `yaml:"require_tsp_revocation"`
	// Whether OCSP answers without our nonce are refused. Default false: many
	// responders make their answers ahead.
	RequireOCSPNonce bool `yaml:"require_ocsp_nonce"`
	// How far the clocks of others may be from ours. Default 5m.
	ClockTolerance time.Duration `yaml:"clock_tolerance"`
	// Time for one request to a time-stamp service, to an OCSP responder, for one
	// download of a CRL, and for a whole time stamp with its repetitions. Defaults
	// 5s, 5s, 1m, 20s.
	StampTimeout  time.Duration `yaml:"stamp_timeout"`
	StatusTimeout time.Duration `yaml:"status_timeout"`
	ListTimeout   time.Duration `yaml:"list_timeout"`
	TotalTimeout  time.Duration `yaml:"total_timeout"`
	// After how long without an answer a second service of the same class is
	// asked too. Default 1.5s; -1s: never.
	HedgeAfter time.Duration `yaml:"hedge_after"`
	// Memory for OCSP answers and for CRLs that are kept until their nextUpdate.
	// Defaults 32MiB, 256MiB.
	CacheAnswers Size `yaml:"cache_answers"`
	CacheLists   Size `yaml:"cache_lists"`
}

// TSPServiceConfig is one registered time-stamp service.
type TSPServiceConfig struct {
	Name  string `yaml:"name"`  // short, unique, in lower case
	Title string `yaml:"title"` // for people
	URL   string `yaml:"url"`
	// Services of one class stand in for one another. Empty: none does.
	Class string `yaml:"class"`
	// TSA policy to ask for, an object identifier. Empty: that of the service.
	Policy string `yaml:"policy"`
	// Requests a minute each process may send. 0: no bound.
	PerMinute int `yaml:"per_minute"`
}

// defaultEvidence returns the settings of an empty file.
func defaultEvidence() EvidenceConfig {
	return EvidenceConfig{
		ClockTolerance: 5 * time.Minute,
		StampTimeout:   5 * time.Second, StatusTimeout: 5 * time.Second, ListTimeout: time.Minute, TotalTimeout: 20 * time.Second,
		HedgeAfter:   1500 * time.Millisecond,
		CacheAnswers: 32 << 20, CacheLists: 256 << 20,
	}
}

// services are the registered services as the policy knows them.
func (e *EvidenceConfig) services() (list []policy.TSPService) {
	for _, t := range e.TSPServices {
		list = append(list, policy.TSPService(t))
	}
	return list
}

// check reports every fault.
func (e *EvidenceConfig) check() (faults []error) {
	list := e.services()
	for i, t := range list {
		if err := t.Check(); err != nil {
			faults = append(faults, fmt.Errorf("evidence.tsp_services[%d]: %w", i, err))
		}
		normal, _ := policy.NormalAddress(t.URL)
		if slices.ContainsFunc(list[:i], func(o policy.TSPService) bool {
			other, _ := policy.NormalAddress(o.URL)
			return o.Name == t.Name || other == normal
		}) {
			faults = append(faults, fmt.Errorf("evidence.tsp_services[%d]: want a name and an address of its own", i))
		}
	}
	if _, err := e.exceptions(); err != nil {
		faults = append(faults, fmt.Errorf("evidence.allow_networks: %w", err))
	}
	if e.Proxy != "" && !isHTTP(e.Proxy) {
		faults = append(faults, errors.New("evidence.proxy: want http:// or https:// and a host"))
	}
	if min(e.ClockTolerance, e.StampTimeout, e.StatusTimeout, e.ListTimeout, e.TotalTimeout) <= 0 {
		faults = append(faults, errors.New("evidence: clock_tolerance, stamp_timeout, status_timeout, list_timeout and total_timeout: want more than 0"))
	}
	if e.HedgeAfter == 0 {
		faults = append(faults, errors.New("evidence.hedge_after: want more than 0, or -1s for never"))
	}
	if min(e.CacheAnswers, e.CacheLists) <= 0 {
		faults = append(faults, errors.New("evidence: cache_answers and cache_lists: want sizes above 0"))
	}
	return faults
}

func (e *EvidenceConfig) exceptions() ([]guard.Exception, error) {
	return guard.ParseExceptions(e.AllowNetworks)
}

// openEvidence makes the source of evidence from the network. observe may be nil.
func (h *house) openEvidence(e EvidenceConfig, observe func(evidence.Event)) (*evidence.Source, error) {
	exceptions, err := e.exceptions()
	if err != nil {
		return nil, err
	}
	own, err := ownAddress(h.config.publicURL())
	if err != nil {
		return nil, err
	}
	exceptions = append(exceptions, own...)
	var proxy *url.URL
	if e.Proxy != "" {
		if proxy, err = url.Parse(e.Proxy); err != nil {
			return nil, errors.New("evidence.proxy: want http:// or https:// and a host")
		}
	}
	anchors, err := h.anchors()
	if err != nil {
		return nil, err
	}
	return evidence.New(evidence.Config{
		Services:               h.policies.TSPServices,
		AllowThirdPartyTSP:     h.policies.Rules.AllowThirdPartyTSP,
		Anchors:                anchors,
		Exceptions:             exceptions,
		Proxy:                  proxy,
		Observe:                observe,
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

// ownAddress is the exception for our own public address, which certificates of
// the built-in authority name and which may well be private. There is none when
// the address names no host or port one could connect to.
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

// certificatesOf reads every certificate of some files of the configuration.
func (h *house) certificatesOf(files []string, what string) (list []*x509gost.Certificate, err error) {
	for _, file := range files {
		data, err := os.ReadFile(h.config.path(file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		certs, err := x509gost.ParseCertificates(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", what, file, err)
		}
		list = append(list, certs...)
	}
	return list, nil
}
