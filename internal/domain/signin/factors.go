// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/passkey"
)

// provedFor is how long people may change their factors after a confirmation.
const provedFor = 10 * time.Minute

// Factors is what people sign in and confirm with. Blocked ones count, so that a stolen
// session cannot replace them.
type Factors struct {
	Devices  int // that were verified: others confirm nothing yet
	Contacts []contact.Contact
	Token    bool // makes one-time passwords
	Passkeys int
}

// of reports whether one of the factors is for a method, by its stored name.
func (f *Factors) of(method string) bool {
	switch method {
	case device.Method:
		return f.Devices > 0
	case oath.Method:
		return f.Token
	case passkey.Method:
		return f.Passkeys > 0
	}
	return slices.ContainsFunc(f.Contacts, func(c contact.Contact) bool {
		return c.SecondaryAuth && c.Confirmed && c.Type.Kind().Method == method
	})
}

// MayChangeFactors returns nil if the callers may change their own factors: just after a
// confirmation, whose time is proved, or while they have nothing to confirm with. prove
// reports that a confirmation would allow it. The fault is access_denied.
func (s *Service) MayChangeFactors(ctx context.Context, who audit.Principal, f Factors, proved time.Time) (prove bool, err error) {
	switch {
	case who.Actor != "":
		return false, fault.New(fault.AccessDenied, "only the user changes the own devices and contacts")
	case s.now().Sub(proved) < provedFor:
		return false, nil
	}
	// A phone for codes confirms nothing while the person has only the method of devices.
	if ways := slices.DeleteFunc(confirm.Rows(), func(r confirm.Row) bool { return !f.of(r.Assigned) }); len(ways) > 0 {
		had, err := s.had(ctx, who.UserID)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(ways, func(r confirm.Row) bool { _, has := had[r.Assigned]; return has }) {
			return true, fault.New(fault.AccessDenied, "confirm first that it is you: the page of devices has a button for it")
		}
	}
	if !s.settings.FirstFactor {
		return false, fault.New(fault.AccessDenied, "the first device or contact is added by an operator here")
	}
	return false, nil
}
