// SPDX-License-Identifier: Apache-2.0

// Package reach decides whether an operator may act on a user and runs changes that operators
// make. Begin with Service.Reach and Changes.Run. What the operator may do to the user is not
// decided here.
package reach

import (
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// NotFound is the text of the fault for a user who is missing or out of reach.
const NotFound = "User not found"

// Store knows the groups of operators and users.
type Store interface {
	// Reachable reports whether the user is in a group of the operator; see
	// [Service.Reach] for users who are operators. One query does the same work
	// whatever the answer.
	Reachable(ctx context.Context, operatorID, userID string, now time.Time) (bool, error)
}

// Service decides by the groups of operators and users.
type Service struct {
	Store Store
	Now   func() time.Time // time.Now when nil
}

// Reach returns nil when the operator may act on the user. The fault is user_not_found. It is
// the same for a missing user and for a user of another group, and the same single query finds
// both.
//
// Rights are those of the transaction in ctx. Call Reach first in the transaction that acts.
// An operator reaches another operator only if all groups of the other are the operator's own.
// Otherwise acting on the other would lend the rights of more groups.
func (s *Service) Reach(ctx context.Context, who audit.Principal, userID string) error {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	ok, err := s.Store.Reachable(ctx, who.UserID, userID, now())
	if err == nil && !ok {
		err = fault.New(fault.UserNotFound, NotFound)
	}
	return err
}

// Self lets users act on themselves and on no other user. Services that people use for their
// own account have it in place of a Service. An operator who acts as a user is not that user.
type Self struct{}

// Reach returns nil when the caller is the user. The fault is that of Service.Reach.
func (Self) Reach(_ context.Context, who audit.Principal, userID string) error {
	if userID == "" || who.UserID != userID || who.Actor != "" {
		return fault.New(fault.UserNotFound, NotFound)
	}
	return nil
}
