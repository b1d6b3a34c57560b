// SPDX-License-Identifier: Apache-2.0

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

// Evidence configures where time stamps, revocation data and certificates of other authorities may
// be fetched from, and which roots are trusted in addition to the built-in authority.
type Evidence struct {
	// Registered time-stamp services. After them come the built-in one and those of `tamga tsp
	// add`. The first one is the default.
	TSPServices []TSPService `yaml:"tsp_services"`
	// Trusted root certificates (PEM, DER or PKCS #7) in addition to those of the built-in
	// authority. Other time-stamping authorities lead to them.
	RootFiles []string `yaml:"root_files"`
	// Further certificates of authorities in addition to the built-in ones. They are not trusted by
	// themselves.
	AuthorityFiles []string `yaml:"authority_files"`
	// Private, loopback or link-local networks and hosts that may be reached: `10.1.0.0/16`,
	// `10.1.2.3`, `10.1.2.3:318`, `tsp.example.org:80`. Our own public address is always allowed.
	AllowNetworks []string `yaml:"allow_networks"`
	// HTTP proxy for all these requests; proxy settings of the environment are ignored. The proxy
	// resolves names, so Tamga cannot check the addresses of names: it refuses private, loopback
	// and link-local addresses in any spelling (`127.1`, `0x7f000001`, `2130706433`) and names of
	// the machine itself (`localhost`). **The proxy must refuse names of internal addresses**.
	Proxy string `yaml:"proxy" rule:"url"`
	// Whether a stamp is refused if the revocation status of its authority is unknown. Otherwise
	// only a stamp of a revoked authority is refused.
	RequireTSPRevocation bool `yaml:"require_tsp_revocation"`
	// Whether OCSP answers without our nonce are refused. Many responders make their answers in
	// advance.
	RequireOCSPNonce bool `yaml:"require_ocsp_nonce"`
	// Largest difference between the clocks of other services and ours.
	ClockTolerance time.Duration `yaml:"clock_tolerance" default:"5m" above:"0s"`
	// Time for one request to a time-stamp service.
	StampTimeout time.Duration `yaml:"stamp_timeout" default:"5s" above:"0s"`
	// Time for one request to an OCSP responder.
	StatusTimeout time.Duration `yaml:"status_timeout" default:"5s" above:"0s"`
	// Time for one download of a CRL.
	ListTimeout time.Duration `yaml:"list_timeout" default:"1m" above:"0s"`
	// Time for a whole time stamp with all retries.
	TotalTimeout time.Duration `yaml:"total_timeout" default:"20s" above:"0s"`
	// Time without an answer after which a second service of the same class is asked too; `-1s`:
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
	// Name that people see.
	Title string `yaml:"title"`
	// Address of the service. Default: none, required.
	URL string `yaml:"url"`
	// Services of the same class replace each other. A service without a class has no replacement.
	Class string `yaml:"class"`
	// TSA policy to request, an object identifier. Default: that of the service.
	Policy string `yaml:"policy"`
	// Requests per minute that each process may send; 0: no limit.
	PerMinute int `yaml:"per_minute"`
}

// Services returns the registered time-stamp services.
func (e *Evidence) Services() (list []policy.TSPService) {
	for _, t := range e.TSPServices {
		list = append(list, policy.TSPService(t))
	}
	return list
}

// check returns all faults.
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
			faults = append(faults, fmt.Errorf("evidence.tsp_services[%d]: want a unique name and a unique address", i))
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

// Exceptions returns the addresses outside of the public internet that may be reached.
func (e *Evidence) Exceptions() ([]guard.Exception, error) {
	return guard.ParseExceptions(e.AllowNetworks)
}
