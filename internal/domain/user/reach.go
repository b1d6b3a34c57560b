// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/reach"
)

// Reach returns nil when the operator may act on the user; see [reach.Service.Reach].
func (s *Service) Reach(ctx context.Context, who audit.Principal, userID string) error {
	return (&reach.Service{Store: s.Store, Now: s.now}).Reach(ctx, who, userID)
}

// operatorGroups returns the current groups of the caller, sorted. The fault is
// access_denied for a caller who is not an operator (any more).
func (s *Service) operatorGroups(ctx context.Context, who audit.Principal) ([]string, error) {
	groups, err := s.Store.ActingGroups(ctx, who.UserID, s.now())
	if err == nil && len(groups) == 0 {
		err = fault.New(fault.AccessDenied, "the caller is not an operator of any group")
	}
	return groups, err
}

// groupOf returns the group for a user: the named one, which must be the operator's, or
// the only one the operator has.
func (s *Service) groupOf(ctx context.Context, who audit.Principal, named string) (string, error) {
	groups, err := s.operatorGroups(ctx, who)
	switch {
	case err != nil:
		return "", err
	case named != "" && !slices.Contains(groups, named):
		return "", fault.New(fault.InvalidParameters, "groupName: unknown, want the name of a group of yours")
	case named != "":
		return named, nil
	case len(groups) > 1:
		return "", fault.New(fault.WrongOperation, "you are an operator of several groups: name one of them in the query as groupName")
	}
	return groups[0], nil
}
