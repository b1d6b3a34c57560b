// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"

	"tamga/internal/domain/audit"
)

// Issuer is an identity provider whose logins users may have.
type Issuer struct {
	Name        string // on the wire, such as "realsts"
	DisplayName string
	Description string
}

// Description is the configuration of user management in the installation, for operators.
type Description struct {
	Identifiers []IdentifierType
	Components  []Component // of distinguished names, in their order
	Groups      []string    // of the operator, sorted
	Issuers     []Issuer    // the local one first
	UniqueNames bool        // whether two users may not share a distinguished name
}

// Policy returns the Description for an operator. The fault is access_denied.
func (s *Service) Policy(ctx context.Context, who audit.Principal) (Description, error) {
	groups, err := s.GroupsOf(ctx, who, 0)
	if err != nil {
		return Description{}, err
	}
	return Description{
		Identifiers: IdentifierTypes(),
		Components:  s.Naming.Components(),
		Groups:      groups,
		Issuers:     append([]Issuer{{Name: s.LocalIssuer, DisplayName: s.LocalIssuer, Description: "Tamga"}}, s.Issuers...),
		UniqueNames: s.Naming.Unique(),
	}, nil
}
