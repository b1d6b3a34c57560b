// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"errors"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// SetDN replaces the distinguished name. Keys are component numbers, object identifiers
// or names of the installation's [Naming]; an empty value means none. Faults:
// user_not_found, invalid_parameters, duplicate_distinguished_name.
func (s *Service) SetDN(ctx context.Context, who audit.Principal, userID string, components map[string]string) error {
	name, err := s.wholeName(components)
	if err != nil {
		return err
	}
	return s.change(ctx, who, userID, func(ctx context.Context) error { return s.setName(ctx, userID, name) })
}

// wholeName makes a complete name from components.
func (s *Service) wholeName(components map[string]string) (Name, error) {
	values, err := s.Naming.resolve(components)
	if err == nil {
		values, err = s.Naming.complete(values)
	}
	if err != nil {
		return Name{}, err
	}
	return s.Naming.name(values), nil
}

func (s *Service) setName(ctx context.Context, userID string, n Name) error {
	return nameTaken(s.NameStore.SetName(ctx, userID, n))
}

// nameTaken returns the fault of a name that another user has.
func nameTaken(err error) error {
	if errors.Is(err, ErrDuplicate) {
		return fault.New(fault.DuplicateName, "components: another user has this distinguished name").With(err)
	}
	return err
}

// DN reads the distinguished name by component number. The fault is user_not_found.
func (s *Service) DN(ctx context.Context, who audit.Principal, userID string) (map[int]string, error) {
	if err := s.Reach(ctx, who, userID); err != nil {
		return nil, err
	}
	values, err := s.NameStore.NameOf(ctx, userID)
	if err != nil {
		return nil, err
	}
	return s.Naming.numbered(values), nil
}

// CheckDNUnique predicts what SetDN would say of a name for a new user. If names need not
// be unique, only users within the operator's reach are compared. Data is the name as
// text. Faults: access_denied, invalid_parameters.
func (s *Service) CheckDNUnique(ctx context.Context, who audit.Principal, components map[string]string) (Unique, error) {
	name, err := s.wholeName(components)
	if err != nil {
		return Unique{}, err
	}
	if _, err := s.GroupsOf(ctx, who, 1); err != nil {
		return Unique{}, err
	}
	among := who.UserID
	if name.Unique {
		among = ""
	}
	taken, err := s.NameStore.NameTaken(ctx, name.Key, among, s.now())
	if err != nil {
		return Unique{}, err
	}
	return Unique{Data: name.Text, IsUnique: !taken, Required: name.Unique}, nil
}

// SetGroup moves a user to another group of the operator and sets the given
// components of the name in the same transaction: they replace those of the same
// key, an empty value removes one, others stay. Faults: user_not_found,
// invalid_parameters, duplicate_distinguished_name.
func (s *Service) SetGroup(ctx context.Context, who audit.Principal, userID, group string, components map[string]string) error {
	changed, err := s.Naming.resolve(components)
	if err != nil {
		return err
	}
	if group == "" {
		return fault.New(fault.InvalidParameters, "groupName: missing, want the name of a group of yours")
	}
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		if _, err := s.groupOf(ctx, who, group); err != nil {
			return err
		}
		if err := noGroup(s.Store.SetGroup(ctx, userID, group)); err != nil {
			return err
		}
		// The policies of the new group may differ.
		if err := s.Confirmations.CancelAll(ctx, who, userID, "the group of the user was changed"); err != nil || len(changed) == 0 {
			return err
		}
		values, err := s.NameStore.NameOf(ctx, userID)
		if err != nil {
			return err
		}
		for oid, value := range changed {
			values[oid] = value
		}
		if values, err = s.Naming.complete(values); err != nil {
			return err
		}
		return s.setName(ctx, userID, s.Naming.name(values))
	})
}

// GroupOf reads the group of a user. The fault is user_not_found.
func (s *Service) GroupOf(ctx context.Context, who audit.Principal, userID string) (string, error) {
	info, err := s.ByID(ctx, who, userID)
	return info.Group, err
}
