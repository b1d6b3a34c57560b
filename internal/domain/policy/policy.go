// Package policy owns what is allowed: which actions a user may perform, which
// types of signature the installation makes, and which time-stamp services it
// may be sent to. Decisions only; nothing is done here.
package policy

import (
	"context"
	"strings"

	"tamga/internal/domain/fault"
)

// Store keeps the access policies of users and the time-stamp services that
// were registered while the service ran.
type Store interface {
	// DeniedActions is the set the user may not perform; 0 when none was set.
	DeniedActions(ctx context.Context, userID string) (Action, error)
	// SetDeniedActions replaces the set. The fault is user_not_found.
	SetDeniedActions(ctx context.Context, userID string, denied Action) error

	// TSPServices reads the registered services in the order they were added.
	TSPServices(ctx context.Context) ([]TSPService, error)
	// AddTSPService adds one. It reports false when the name or the address is
	// taken; normal is the address as NormalAddress writes it.
	AddTSPService(ctx context.Context, t TSPService, normal string) (added bool, err error)
	// RemoveTSPService removes one by name. It reports false when there is none.
	RemoveTSPService(ctx context.Context, name string) (removed bool, err error)
}

// Rules are the policy of the installation. The zero value allows no signature
// at all.
type Rules struct {
	AllowedSignatureTypes []string     // names of the interface: XMLDSig, GOST3410, CAdES, PDF, MSOffice, CMS
	AllowHashSigning      bool         // sign a hash sent by the client, without its document
	AllowThirdPartyTSP    bool         // use a time-stamp service that is not registered
	TSPServices           []TSPService // registered by the configuration, before those of the Store
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
