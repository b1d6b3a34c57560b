// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/fault"
)

// TSPService is a time-stamp service registered by the installation, in its
// configuration or while it ran.
type TSPService struct {
	Name  string // short, unique, in lower case
	Title string // for people
	URL   string // http or https
	// Class groups services that may replace each other: when a service is down, another
	// one of its class may stamp. Empty: no other service replaces it.
	Class string
	// Policy is the TSA policy that requests ask for and answers must have, an object
	// identifier in dots. Empty: any policy.
	Policy string
	// PerMinute limits the requests of each process to the service, with bursts of the
	// same size. 0: no limit.
	PerMinute int
}

// Limits of the texts of a registration, in characters.
const (
	maxServiceName  = 64
	maxServiceTitle = 256
	maxAddress      = 2048
	maxPolicyArcs   = 32
)

// maxServices limits the list of registered services, which every signature with a time
// stamp reads.
const maxServices = 256

// Check returns nil when the registration is well formed. The fault is
// invalid_parameters.
func (t TSPService) Check() error {
	switch {
	case !isName(t.Name):
		return fault.Newf(fault.InvalidParameters, "name of a time-stamp service: want 1 to %d lower-case letters, digits, dots, hyphens or underscores", maxServiceName)
	case t.Class != "" && !isName(t.Class):
		return fault.Newf(fault.InvalidParameters, "class of a time-stamp service: want at most %d lower-case letters, digits, dots, hyphens or underscores", maxServiceName)
	case !isLine(t.Title) || utf8.RuneCountInString(t.Title) > maxServiceTitle:
		return fault.Newf(fault.InvalidParameters, "title of a time-stamp service: want one line of at most %d characters", maxServiceTitle)
	case t.Policy != "" && !isOID(t.Policy):
		return fault.New(fault.InvalidParameters, "policy of a time-stamp service: want an object identifier in dots, such as 1.2.643.2.2.38.4")
	case t.PerMinute < 0:
		return fault.New(fault.InvalidParameters, "quota of a time-stamp service: want requests per minute, 0 for no limit")
	}
	if _, ok := NormalAddress(t.URL); !ok {
		return fault.New(fault.InvalidParameters, "address of a time-stamp service: "+wantAddress)
	}
	return nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxServiceName && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	})
}

func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// isOID reports whether the text is an object identifier in dots whose numbers fit 31
// bits.
func isOID(s string) bool {
	arcs := strings.Split(s, ".")
	if len(arcs) < 2 || len(arcs) > maxPolicyArcs {
		return false
	}
	for _, a := range arcs {
		if _, err := strconv.ParseUint(a, 10, 31); err != nil || len(a) > 1 && a[0] == '0' {
			return false
		}
	}
	return arcs[0] == "2" || len(arcs[0]) == 1 && arcs[0] < "2" && (len(arcs[1]) == 1 || len(arcs[1]) == 2 && arcs[1] < "40")
}

// TSPServices are the registered services: those of the configuration, then those of the
// store. The store is read on each call, so a change by another process has effect at
// once. A stored service that repeats a name or an address of the configuration is
// ignored.
func (s *Service) TSPServices(ctx context.Context) ([]TSPService, error) {
	stored, err := s.Store.TSPServices(ctx)
	if err != nil {
		return nil, err
	}
	list := slices.Clone(s.Rules.TSPServices)
	for _, t := range stored {
		if !slices.ContainsFunc(list, t.same) {
			list = append(list, t)
		}
	}
	return list, nil
}

// same reports whether two registrations have the same name or the same address.
func (t TSPService) same(o TSPService) bool {
	a, _ := NormalAddress(t.URL)
	b, _ := NormalAddress(o.URL)
	return t.Name == o.Name || a == b
}

// AddTSPService registers a service. The faults are invalid_parameters for a
// malformed one and invalid_object_state when its name or address is taken or
// the list is full.
func (s *Service) AddTSPService(ctx context.Context, t TSPService) error {
	if err := t.Check(); err != nil {
		return err
	}
	list, err := s.TSPServices(ctx)
	switch {
	case err != nil:
		return err
	case len(list) >= maxServices:
		return fault.Newf(fault.InvalidObjectState, "%d time-stamp services are registered, which is the limit: remove one first", len(list))
	}
	added := false
	normal, _ := NormalAddress(t.URL) // checked by Check
	if !slices.ContainsFunc(list, t.same) {
		if added, err = s.Store.AddTSPService(ctx, t, normal); err != nil {
			return err
		}
	}
	if !added {
		return fault.Newf(fault.InvalidObjectState, "a time-stamp service of the name %s or with this address is registered already", t.Name)
	}
	return nil
}

// RemoveTSPService removes a service from the store. The faults are
// object_not_found, and invalid_object_state for one that the configuration
// registers.
func (s *Service) RemoveTSPService(ctx context.Context, name string) error {
	if slices.ContainsFunc(s.Rules.TSPServices, func(t TSPService) bool { return t.Name == name }) {
		return fault.Newf(fault.InvalidObjectState, "the time-stamp service %s is registered in the configuration: remove it there", name)
	}
	removed, err := s.Store.RemoveTSPService(ctx, name)
	if err == nil && !removed {
		return fault.New(fault.NotFound, "no time-stamp service of this name is registered")
	}
	return err
}

// TSPAddress turns the TSPAddress parameter of a request into the address to use: present
// and empty means the first registered service; absent is invalid_signature_params, since
// only levels that need a time stamp ask; an address that is not registered is
// access_denied unless third parties are allowed. It returns the address as it is
// registered.
func (s *Service) TSPAddress(ctx context.Context, requested string, present bool) (string, error) {
	if !present {
		return "", fault.New(fault.InvalidSignatureParams,
			"TSPAddress: missing; give the address of a time-stamp service, or an empty value for the default one")
	}
	want, ok := NormalAddress(requested)
	if requested != "" && !ok {
		return "", fault.New(fault.InvalidSignatureParams, "TSPAddress: "+wantAddress)
	}
	services, err := s.TSPServices(ctx)
	if err != nil {
		return "", err
	}
	if requested == "" {
		if len(services) == 0 {
			return "", fault.New(fault.InvalidSignatureParams,
				"TSPAddress: empty, but no time-stamp service is registered; give an address")
		}
		return services[0].URL, nil
	}
	if t, found := ServiceAt(services, want); found {
		return t.URL, nil
	}
	if !s.Rules.AllowThirdPartyTSP {
		return "", fault.New(fault.AccessDenied, "TSPAddress: only registered time-stamp services are allowed here")
	}
	return requested, nil
}

// ServiceAt finds the registered service of an address in normal form.
func ServiceAt(services []TSPService, normal string) (t TSPService, found bool) {
	for _, t := range services {
		if have, ok := NormalAddress(t.URL); ok && have == normal {
			return t, true
		}
	}
	return t, false
}

const wantAddress = "want an http or https address without user name and fragment, at most 2048 characters"

// NormalAddress returns the form in which addresses of services are compared: scheme and
// host in lower case, no default port, no final slash. It reports false for an address
// that is not http or https, has a user name or a fragment, or is longer than 2048 bytes.
func NormalAddress(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxAddress || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return "", false
	}
	defaultPort := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	if defaultPort == "" {
		return "", false
	}
	u.Host = strings.TrimSuffix(strings.ToLower(u.Host), defaultPort)
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = strings.TrimSuffix(u.RawPath, "/")
	return u.String(), true
}
