// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
)

// provedFor is how long people may change their factors after a confirmation.
const provedFor = 10 * time.Minute

// owns reports whether a user has what a method needs. That is a factor: something that the user
// signs in or confirms with. It counts as long as it exists, also while it is blocked or has
// expired. Otherwise a block would open the way to a new factor without a delay or a
// confirmation. Identification only needs nothing, so it is none.
func (s *Service) owns(ctx context.Context, userID string, m Method) (bool, error) {
	switch {
	case m.Name == methodIDOnly:
		return false, nil
	case m.exists != nil:
		return m.exists(s, ctx, userID)
	case m.ready == nil: // a login at another provider
		return true, nil
	}
	has, _, err := m.ready(s, ctx, userID)
	return has, err
}

// hasFactor reports whether a user has a factor, of some methods.
func (s *Service) hasFactor(ctx context.Context, userID string, of func(Method) bool) (bool, error) {
	had, err := s.had(ctx, userID)
	if err != nil {
		return false, err
	}
	for _, m := range methods {
		if _, has := had[m.Name]; !has || !of(m) {
			continue
		}
		if owns, err := s.owns(ctx, userID, m); err != nil || owns {
			return owns, err
		}
	}
	return false, nil
}

// HasFactor reports whether a user has something to sign in or confirm with, also something that
// is blocked or has expired, and the method for it.
func (s *Service) HasFactor(ctx context.Context, userID string) (bool, error) {
	return s.hasFactor(ctx, userID, func(Method) bool { return true })
}

// MayChangeFactors returns nil if the callers may change their own factors: just after a
// confirmation, whose time is proved, or while they have nothing to confirm with. prove
// reports that a confirmation would allow it. The fault is access_denied.
func (s *Service) MayChangeFactors(ctx context.Context, who audit.Principal, proved time.Time) (prove bool, err error) {
	switch {
	case who.Actor != "":
		return false, fault.New(fault.AccessDenied, "only the user changes the own devices and contacts")
	case s.now().Sub(proved) < provedFor:
		return false, nil
	}
	has, err := s.hasFactor(ctx, who.UserID, confirms)
	switch {
	case err != nil:
		return false, err
	case has:
		return true, fault.New(fault.AccessDenied, "confirm first that it is you: the page of devices has a button for it")
	case !s.settings.FirstFactor:
		return false, fault.New(fault.AccessDenied, "the first device or contact is added by an operator here")
	}
	return false, nil
}

// confirms reports whether users confirm with what a method needs. A phone for codes confirms
// nothing while the person has only the method of devices.
func confirms(m Method) bool {
	return slices.ContainsFunc(confirm.Rows(), func(r confirm.Row) bool { return r.Assigned == m.Name })
}
