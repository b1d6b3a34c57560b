// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"maps"
	"slices"
	"strings"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
)

// Differences returns the Fields of an account in which an existing user differs from it; none
// if Add would have made this user. What the account leaves open is not compared. Contacts that
// the user has beside those of the account do not count. A value that the account may not have
// is an error as of Add.
func (s *Service) Differences(ctx context.Context, u User, a Account) (fields []string, err error) {
	if FoldLogin(u.Login) != FoldLogin(a.Login) {
		fields = append(fields, "login")
	}
	if a.DisplayName != "" && u.DisplayName != a.DisplayName {
		fields = append(fields, "name")
	}
	if u.Group != a.Group {
		fields = append(fields, "group")
	}
	if u.Locked != a.Locked {
		fields = append(fields, "locked")
	}
	if u.Operator != a.Operator {
		fields = append(fields, "operator")
	}
	if len(a.Components) > 0 {
		want, err := s.nameOf(a)
		if err != nil {
			return nil, inField("dn", err)
		}
		have, err := s.NameStore.NameOf(ctx, u.ID)
		if err != nil {
			return nil, err
		}
		if !maps.Equal(have, want.Values) {
			fields = append(fields, "dn")
		}
	}
	count := map[contact.Type]int{}
	for _, c := range a.Contacts {
		count[c.Type]++
		field := ContactField(c.Type, count[c.Type])
		same, err := s.hasContact(ctx, u.ID, c)
		if err != nil {
			return nil, inField(field, err)
		}
		if !same {
			fields = append(fields, field)
		}
	}
	return fields, nil
}

// hasContact reports whether a user has a contact in at least the roles of c.
func (s *Service) hasContact(ctx context.Context, userID string, c contact.Contact) (bool, error) {
	kind := c.Type.Kind()
	forms, err := kind.Forms(c.Value)
	if err != nil {
		return false, err
	}
	list, err := s.Contacts.Of(ctx, userID, kind)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(have contact.Contact) bool {
		other, err := kind.Stored(have.Value)
		return err == nil && slices.Contains(forms, other) && (have.Confirmed || !c.Confirmed) && (have.Primary || !c.Primary) &&
			(have.Notification || !c.Notification) && (have.SecondaryAuth || !c.SecondaryAuth)
	}), nil
}

// Unlike returns the fault for a user who exists and differs from the account to be added.
func Unlike(fields []string) error {
	return fault.Newf(fault.InvalidObjectState, "the user exists and differs in: %s; nothing was changed", strings.Join(fields, ", "))
}
