// Package policy owns what is allowed: which actions a user may perform, which
// types of signature the installation makes, and which time-stamp services it
// may be sent to. Decisions only; nothing is done here.
package policy

import (
	"context"
	"net/url"
	"strings"

	"tamga/internal/domain/fault"
)

// Store keeps the access policies of users.
type Store interface {
	// DeniedActions is the set the user may not perform; 0 when none was set.
	DeniedActions(ctx context.Context, userID string) (Action, error)
	// SetDeniedActions replaces the set. The fault is user_not_found.
	SetDeniedActions(ctx context.Context, userID string, denied Action) error
}

// TSPService is a time-stamp service registered by the installation.
type TSPService struct {
	Name  string // short, unique
	Title string // for people
	URL   string // http or https
}

// Rules are the policy of the installation. The zero value allows no signature
// at all.
type Rules struct {
	AllowedSignatureTypes []string     // names of the interface: XMLDSig, GOST3410, CAdES, PDF, MSOffice, CMS
	AllowHashSigning      bool         // sign a hash sent by the client, without its document
	AllowThirdPartyTSP    bool         // use a time-stamp service that is not in TSPServices
	TSPServices           []TSPService // the first one is the default
}

// Service decides.
type Service struct {
	Store Store
	Rules Rules
}

// Permit returns nil when the user may perform every action in a, otherwise the
// fault access_denied.
func (s *Service) Permit(ctx context.Context, userID string, a Action) error {
	denied, err := s.Store.DeniedActions(ctx, userID)
	if err != nil {
		return err
	}
	if denied &= a; denied != 0 {
		return fault.Newf(fault.AccessDenied, "the access policy of the user does not allow %s", denied)
	}
	return nil
}

// Deny replaces the set of actions the user may not perform.
func (s *Service) Deny(ctx context.Context, userID string, denied Action) error {
	if denied&^All != 0 {
		return fault.Newf(fault.InvalidParameters, "action: unknown bits in %d, want at most %d", uint32(denied), uint32(All))
	}
	return s.Store.SetDeniedActions(ctx, userID, denied)
}

// PermitType returns nil when the installation makes signatures of this type,
// over a hash when hash is set. The fault is access_denied.
func (s *Service) PermitType(name string, hash bool) error {
	allowed := false
	for _, t := range s.Rules.AllowedSignatureTypes {
		allowed = allowed || strings.EqualFold(t, name)
	}
	if !allowed {
		return fault.Newf(fault.AccessDenied, "signatures of type %q are not allowed here; allowed: %s",
			name, strings.Join(s.Rules.AllowedSignatureTypes, ", "))
	}
	if hash && !s.Rules.AllowHashSigning {
		return fault.New(fault.AccessDenied, "signing a hash is not allowed here, send the document")
	}
	return nil
}

// TSPAddress turns the TSPAddress parameter of a request into the address to
// use: present and empty means the first registered service; absent is
// invalid_signature_params, since only levels that need a time stamp ask; an
// address that is not registered is access_denied unless third parties are
// allowed.
func (s *Service) TSPAddress(requested string, present bool) (string, error) {
	if !present {
		return "", fault.New(fault.InvalidSignatureParams,
			"TSPAddress: missing; give the address of a time-stamp service, or an empty value for the default one")
	}
	if requested == "" {
		if len(s.Rules.TSPServices) == 0 {
			return "", fault.New(fault.InvalidSignatureParams,
				"TSPAddress: empty, but no time-stamp service is registered; give an address")
		}
		return s.Rules.TSPServices[0].URL, nil
	}
	want, ok := normalURL(requested)
	if !ok {
		return "", fault.New(fault.InvalidSignatureParams,
			"TSPAddress: want an http or https address without user name and fragment, at most 2048 characters")
	}
	for _, t := range s.Rules.TSPServices {
		if have, ok := normalURL(t.URL); ok && have == want {
			return t.URL, nil
		}
	}
	if !s.Rules.AllowThirdPartyTSP {
		return "", fault.New(fault.AccessDenied, "TSPAddress: only registered time-stamp services are allowed here")
	}
	return requested, nil
}

// normalURL is the form in which addresses are compared: scheme and host in
// lower case, without a default port and without a final slash.
func normalURL(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || len(text) > 2048 || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
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
