// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"errors"
	"maps"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// Follow gives a user the login, the display name, the group and the distinguished name of an account, in a transaction of its
// own or that of ctx. Contacts and locks stay as they are, and so does what the account leaves open. It reports whether the user
// changed. Faults: user_not_found, invalid_parameters, duplicate_login, duplicate_distinguished_name.
func (s *Service) Follow(ctx context.Context, id string, a Account) (changed bool, err error) {
	if err := errors.Join(checkLogin(a.Login), checkName("display name", a.DisplayName, 0, MaxDisplayName)); err != nil {
		return false, err
	}
	err = s.Store.Atomic(ctx, Follows(id, a), func(ctx context.Context) error {
		changed, err = s.follow(ctx, id, a)
		if err == nil && changed {
			err = s.emit(ctx, notify.UserAccountChanged, audit.Principal{}, id)
		}
		return fault.Rollback(err)
	})
	return changed, err
}

// Follows returns what Follow locks.
func Follows(id string, a Account) lock.Set { return lock.User(id).And(loginLocks(a.Login)) }

func (s *Service) follow(ctx context.Context, id string, a Account) (changed bool, err error) {
	u, err := s.Store.UserByID(ctx, id)
	if err != nil {
		return false, notFound(err)
	}
	if u.Login != a.Login {
		err := s.freeLogin(ctx, id, a.Login)
		if err == nil {
			err = s.LoginStore.SetLogin(ctx, id, a.Login, FoldLogin(a.Login))
		}
		if errors.Is(err, ErrDuplicate) {
			return false, loginTaken(a.Login).With(err)
		}
		if err != nil {
			return false, err
		}
		changed = true
	}
	if a.DisplayName != "" && u.DisplayName != a.DisplayName {
		if err := s.Store.SetDisplayName(ctx, id, a.DisplayName); err != nil {
			return false, err
		}
		changed = true
	}
	if u.Group != a.Group {
		if err := noGroup(s.Store.SetGroup(ctx, id, a.Group)); err != nil {
			return false, err
		}
		// The policies of the new group may differ.
		if err := s.Confirmations.CancelAll(ctx, audit.Principal{}, id, "the group of the user was changed"); err != nil {
			return false, err
		}
		changed = true
	}
	if len(a.Components) == 0 {
		return changed, nil
	}
	want, err := s.wholeName(a.Components)
	if err != nil {
		return false, err
	}
	have, err := s.NameStore.NameOf(ctx, id)
	if err != nil || maps.Equal(have, want.Values) {
		return changed, err
	}
	return true, s.setName(ctx, id, want)
}
