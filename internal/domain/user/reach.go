package user

import (
	"context"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Reach returns nil when the operator may act on the user. A user of a group that
// is not the operator's is the same fault user_not_found as one that does not
// exist, found out by the same single query.
//
// Rights are those of the transaction in ctx: call it first in the unit that acts.
// An operator is reached by another only if all groups of the one are groups of
// the other, since acting on somebody must not lend the rights of somebody else.
func (s *Service) Reach(ctx context.Context, who audit.Principal, userID string) error {
	ok, err := s.Store.Reachable(ctx, who.UserID, userID, s.now())
	if err == nil && !ok {
		err = fault.New(fault.UserNotFound, notFoundText)
	}
	return err
}

// notFoundText is all that is ever said of a user one may not know of.
const notFoundText = "User not found"

// operatorGroups are the groups of the caller as they are now, sorted. The fault
// is access_denied for one who is no operator (any more).
func (s *Service) operatorGroups(ctx context.Context, who audit.Principal) ([]string, error) {
	groups, err := s.Store.ActingGroups(ctx, who.UserID, s.now())
	if err == nil && len(groups) == 0 {
		err = fault.New(fault.AccessDenied, "the caller is not an operator of any group")
	}
	return groups, err
}

// groupOf picks the group a user is put into: the one that was named, which has to
// be the operator's, or the only one the operator has.
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
