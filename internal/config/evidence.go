package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/policy"
	"tamga/internal/setting"
)

// Evidence says where time stamps, revocation data and issuers of others
// may be fetched from, and whom to trust beside the built-in authority.
type Evidence struct {
	// Registered time-stamp services. The built-in one follows them, then those of
	// `tamga tsp add`. The first one is the default.
	TSPServices []TSPService `yaml:"tsp_services"`
	// Trusted root certificates (PEM, DER or PKCS #7) beside those of the built-in authority.
	// Time-stamping authorities of others lead to them.
	RootFiles []string `yaml:"root_files"`
	// Further certificates of authorities, beside the built-in ones. They are not trusted by
	// themselves.
	AuthorityFiles []string `yaml:"authority_files"`
	// Private, loopback or link-local networks and hosts that may be reached: `10.1.0.0/16`,
	// `10.1.2.3`, `10.1.2.3:318`, `tsp.example.org:80`. Our own public address always may.
	AllowNetworks []string `yaml:"allow_networks"`
	// HTTP proxy for all of it; the environment is not asked. The proxy resolves names, so Tamga
	// cannot look at the addresses they lead to: it refuses private, loopback and link-local
	// addresses in any spelling (`127.1`, `0x7f000001`, `2130706433`) and names of the machine
	// itself (`localhost`). **The proxy must refuse names that lead to the inside**.
	Proxy string `yaml:"proxy" rule:"url"`
	// Whether a stamp is refused when nobody can say whether its authority was revoked. Otherwise
	// only a revoked one is refused.
	RequireTSPRevocation bool `yaml:"require_tsp_revocation"`
	// Whether OCSP answers without our nonce are refused. Many responders make their answers
	// ahead.
	RequireOCSPNonce bool `yaml:"require_ocsp_nonce"`
	// How far the clocks of others may be from ours.
	ClockTolerance time.Duration `yaml:"clock_tolerance" default:"5m" above:"0s"`
	// Time for one request to a time-stamp service.
	StampTimeout time.Duration `yaml:"stamp_timeout" default:"5s" above:"0s"`
	// Time for one request to an OCSP responder.
	StatusTimeout time.Duration `yaml:"status_timeout" default:"5s" above:"0s"`
	// Time for one download of a CRL.
	ListTimeout time.Duration `yaml:"list_timeout" default:"1m" above:"0s"`
	// Time for a whole time stamp with all repetitions.
	TotalTimeout time.Duration `yaml:"total_timeout" default:"20s" above:"0s"`
	// After how long without an answer a second service of the same class is asked too; `-1s`:
	// never.
	HedgeAfter time.Duration `yaml:"hedge_after" default:"1500ms"`
	// Memory for OCSP answers until their nextUpdate.
	CacheAnswers setting.Size `yaml:"cache_answers" default:"32MiB" above:"0"`
	// Memory for CRLs until their nextUpdate.
	CacheLists setting.Size `yaml:"cache_lists" default:"256MiB" above:"0"`
}

// TSPService is one registered time-stamp service.
type TSPService struct {
	// Short, unique name in lower case. Default: none, required.
	Name string `yaml:"name"`
	// Name for people.
	Title string `yaml:"title"`
	// Address of the service. Default: none, required.
	URL string `yaml:"url"`
	// Services of one class stand in for one another. Without a class none does.
	Class string `yaml:"class"`
	// TSA policy to ask for, an object identifier. Default: that of the service.
	Policy string `yaml:"policy"`
	// Requests in a minute each process may send; 0 is no bound.
	PerMinute int `yaml:"per_minute"`
}

// Services returns the registered time-stamp services.
func (e *Evidence) Services() (list []policy.TSPService) {
	for _, t := range e.TSPServices {
		list = append(list, policy.TSPService(t))
	}
	return list
}

// check reports every fault.
func (e *Evidence) check() (faults []error) {
	list := e.Services()
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
	if _, err := e.Exceptions(); err != nil {
		faults = append(faults, fmt.Errorf("evidence.allow_networks: %w", err))
	}
	if e.HedgeAfter == 0 {
		faults = append(faults, errors.New("evidence.hedge_after: want more than 0, or -1s for never"))
	}
	return faults
}

// Exceptions returns the addresses off the public internet that may be reached.
func (e *Evidence) Exceptions() ([]guard.Exception, error) {
	return guard.ParseExceptions(e.AllowNetworks)
}
