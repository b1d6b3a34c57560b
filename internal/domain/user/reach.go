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

// GroupsOf returns the first of the current groups of the caller, sorted, at most limit, or all with
// the limit 0. An operator may have thousands. The fault is access_denied for a caller who is not
// an operator (any more).
func (s *Service) GroupsOf(ctx context.Context, who audit.Principal, limit int) ([]string, error) {
	groups, err := s.Store.ActingGroups(ctx, who.UserID, limit, s.now())
	if err == nil && len(groups) == 0 {
		err = fault.New(fault.AccessDenied, "the caller is not an operator of any group")
	}
	return groups, err
}

// groupOf returns the group for a user: the named one, which must be the operator's, or
// the only one the operator has.
func (s *Service) groupOf(ctx context.Context, who audit.Principal, named string) (string, error) {
	groups, err := s.GroupsOf(ctx, who, 0)
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
