package user

import (
	"context"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Reach returns nil when the operator may act on the user. A user of a group that is not
// the operator's gets the same fault user_not_found as a missing one, by the same single
// query.
//
// Rights are read in the transaction of ctx: call it first in the transaction that acts.
// An operator may act on another operator only with all groups of that one, since the act
// must not give the caller more rights.
func (s *Service) Reach(ctx context.Context, who audit.Principal, userID string) error {
	ok, err := s.Store.Reachable(ctx, who.UserID, userID, s.now())
	if err == nil && !ok {
		err = fault.New(fault.UserNotFound, notFoundText)
	}
	return err
}

// notFoundText is the only text about a user out of reach.
const notFoundText = "User not found"

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
