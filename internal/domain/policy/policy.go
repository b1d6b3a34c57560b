// SPDX-License-Identifier: Apache-2.0

// Package policy decides what is allowed: which actions a user may perform and which need
// a confirmation, which notifications a user gets, which types of signature the
// installation makes, and which time-stamp services it uses. Begin with Service.Permit
// for an action of a user, and Service.PermitType and Service.TSPAddress for a signature.
// The package decides only and carries nothing out.
package policy

import (
	"context"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// Store keeps the policies of users and groups, and the time-stamp services that
// were registered while the service ran.
type Store interface {
	// Atomic locks the set, then runs fn in one transaction. A nested Atomic joins the
	// transaction and may name only what is locked already.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error

	// Settings reads the settings of the user and of the user's group; nil for one that
	// was not set. A user who does not exist has no settings.
	Settings(ctx context.Context, userID string, k Kind) (own, group *Setting, err error)
	// SetOwn replaces the setting of the user; nil removes it. The fault is
	// user_not_found, unless the setting is nil.
	SetOwn(ctx context.Context, userID string, k Kind, s *Setting) error
	// GroupSetting reads the setting of a group, or nil.
	GroupSetting(ctx context.Context, group string, k Kind) (*Setting, error)
	// GroupKinds reads which kinds of settings each of the groups has, in the order of Kinds.
	GroupKinds(ctx context.Context, groups []string) (map[string][]Kind, error)
	// SetGroup replaces the setting of a group; nil removes it. The fault is
	// object_not_found.
	SetGroup(ctx context.Context, group string, k Kind, s *Setting) error

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

// Service makes the decisions. Its fields must not change once it is in use.
type Service struct {
	Store    Store
	Rules    Rules
	Defaults map[Kind]Setting // of the installation; a missing kind has the zero Setting
}

// PermitType returns nil when the installation makes signatures of this type. With hash
// set, signing a hash must be allowed too. The fault is access_denied.
func (s *Service) PermitType(name string, hash bool) error {
	allowed := false
	for _, t := range s.Rules.AllowedSignatureTypes {
		allowed = allowed || strings.EqualFold(t, name)
	}
	if !allowed {
		return fault.Newf(fault.AccessDenied, "signatures of type %q are not allowed; allowed: %s",
			name, strings.Join(s.Rules.AllowedSignatureTypes, ", "))
	}
	if hash && !s.Rules.AllowHashSigning {
		return fault.New(fault.AccessDenied, "signing a hash is not allowed: send the document")
	}
	return nil
}
