// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// Registration describes a new user that an operator registers.
type Registration struct {
	Identifiers map[IdentifierType]string // at least one
	Group       string                    // "" for the only group of the operator
}

// Register adds a user to a group of the operator and returns the identifier. The user
// has no authentication method yet, so no token is issued. The distinguished name is CN
// with the login, e-mail or phone number until another is set. Faults:
// invalid_parameters; wrong_operation when no group is named and the operator has
// several; duplicate_login, and the faults of contacts.
func (s *Service) Register(ctx context.Context, who audit.Principal, r Registration) (string, error) {
	if err := checkIdentifiers(r.Identifiers); err != nil {
		return "", err
	}
	id, err := s.newID()
	if err != nil {
		return "", err
	}
	u := User{ID: id, Login: r.Identifiers[Login], CreatedAt: s.now()}
	for _, kind := range []IdentifierType{Login, Email, PhoneNumber} {
		if u.DisplayName == "" {
			u.DisplayName = r.Identifiers[kind]
		}
	}
	locked := lock.User(id).And(loginLocks(u.Login))
	for _, kind := range []IdentifierType{PhoneNumber, Email} {
		if value, given := r.Identifiers[kind]; given {
			contactKind, _ := kind.contact()
			locked = locked.And(contactKind.Lock(u.ID, value))
		}
	}
	err = s.Store.Atomic(ctx, locked, func(ctx context.Context) error {
		var err error
		if u.Group, err = s.groupOf(ctx, who, r.Group); err != nil {
			return err
		}
		if err := s.add(ctx, u, Name{}, nil); err != nil {
			return fault.Rollback(err)
		}
		for _, kind := range []IdentifierType{PhoneNumber, Email} {
			value, given := r.Identifiers[kind]
			if !given {
				continue
			}
			contactKind, _ := kind.contact()
			if err := s.Contacts.Register(ctx, u.ID, contactKind, value); err != nil {
				return fault.Rollback(err)
			}
		}
		return fault.Rollback(s.emit(ctx, notify.UserCreated, who, u.ID))
	})
	if err != nil {
		return "", err
	}
	return u.ID, nil
}

// checkIdentifiers refuses malformed identifiers.
func checkIdentifiers(identifiers map[IdentifierType]string) error {
	if len(identifiers) == 0 {
		return fault.New(fault.InvalidParameters, "identifiers: want at least one of Login, PhoneNumber, Email")
	}
	for kind, value := range identifiers {
		if err := checkIdentifier(kind, value); err != nil {
			return err
		}
	}
	return nil
}

func checkIdentifier(kind IdentifierType, value string) error {
	if kind == Login {
		return checkLogin(value)
	}
	contactKind, known := kind.contact()
	if !known {
		return fault.New(fault.InvalidParameters, "identifiers: unknown type, want Login, PhoneNumber or Email")
	}
	_, err := contactKind.New(value)
	if err == nil && !utf8.ValidString(value) {
		err = fault.Newf(contactKind.Invalid, "%s: want UTF-8", kind)
	}
	return err
}

// emit sends an event caused by the caller.
func (s *Service) emit(ctx context.Context, event notify.EventType, who audit.Principal, userID string) error {
	return s.Events.Emit(ctx, notify.Event{Type: event, UserID: userID, Actor: who.UserID})
}

// Unique is the result of CheckUnique for an identifier.
type Unique struct {
	Data     string // as given
	IsUnique bool
	Required bool // whether it must be unique in the installation
}

// CheckUnique predicts whether Register and SetLogin would accept these identifiers;
// issuer is the identity provider of a login, "" for this one. It reveals whether a value
// is taken, never by whom. Identifiers are unique in the installation, so an answer about
// the operator's groups only would be wrong. Faults: access_denied, invalid_parameters,
// invalid_phone, invalid_email.
func (s *Service) CheckUnique(ctx context.Context, who audit.Principal, issuer string, identifiers map[IdentifierType]string) (map[IdentifierType]Unique, error) {
	if err := checkIdentifiers(identifiers); err != nil {
		return nil, err
	}
	if err := s.checkIssuer(issuer); err != nil {
		return nil, err
	}
	if _, err := s.GroupsOf(ctx, who, 1); err != nil {
		return nil, err
	}
	answers := make(map[IdentifierType]Unique, len(identifiers))
	for kind, value := range identifiers {
		if kind != Login {
			u, err := s.Contacts.IsUnique(ctx, value)
			if err != nil {
				return nil, err
			}
			answers[kind] = Unique{Data: value, IsUnique: u.IsUnique, Required: u.Required}
			continue
		}
		owner, err := s.owner(ctx, Login, value, issuer)
		if err != nil {
			return nil, err
		}
		free := owner == ""
		if free && s.local(issuer) {
			err := s.freeLogin(ctx, "", value)
			if err != nil && !errors.Is(err, ErrDuplicate) {
				return nil, err
			}
			free = err == nil
		}
		answers[kind] = Unique{Data: value, IsUnique: free, Required: true}
	}
	return answers, nil
}

// PropertyType is a property of a user, by its number in the specification.
type PropertyType int

// The properties.
const (
	DisplayName PropertyType = 0 // the name in lists
	LockedState PropertyType = 1 // a truth value as text
)

// SetProperty changes one property. Faults: user_not_found, invalid_parameters.
func (s *Service) SetProperty(ctx context.Context, who audit.Principal, userID string, p PropertyType, value string) error {
	switch p {
	case DisplayName:
		if err := checkName("Value", value, 1, MaxDisplayName); err != nil {
			return err
		}
		return s.change(ctx, who, userID, func(ctx context.Context) error {
			return s.Store.SetDisplayName(ctx, userID, value)
		})
	case LockedState:
		switch strings.ToLower(strings.TrimSpace(value)) {
		case "true", "1":
			return s.SetLocked(ctx, who, userID, true)
		case "false", "0":
			return s.SetLocked(ctx, who, userID, false)
		}
		return fault.New(fault.InvalidParameters, "Value: want True or False for the property AccountLockedState")
	}
	return fault.New(fault.InvalidParameters, "PropertyType: unknown, want 0 (DisplayName) or 1 (AccountLockedState)")
}

// change runs fn on a user within reach and sends a notice of the change, all in one
// transaction. A fault of fn rolls back.
func (s *Service) change(ctx context.Context, who audit.Principal, userID string, fn func(ctx context.Context) error) error {
	return s.changeLocked(ctx, lock.User(userID), who, userID, fn)
}

// changeLocked is change for fn that also needs locks of values.
func (s *Service) changeLocked(ctx context.Context, locked lock.Set, who audit.Principal, userID string, fn func(ctx context.Context) error) error {
	return s.Store.Atomic(ctx, locked, func(ctx context.Context) error {
		if err := s.Reach(ctx, who, userID); err != nil {
			return err
		}
		if err := notFound(fn(ctx)); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(s.emit(ctx, notify.UserAccountChanged, who, userID))
	})
}

// Delete removes a user and all data of the user. What was encrypted for certificates of the user becomes
// unreadable, so that destroyKeys must say that this is known. Faults: user_not_found, invalid_parameters without
// destroyKeys.
func (s *Service) Delete(ctx context.Context, who audit.Principal, userID string, destroyKeys bool) error {
	return s.Store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if err := s.Reach(ctx, who, userID); err != nil {
			return err
		}
		return s.remove(ctx, userID, who, destroyKeys)
	})
}

// remove deletes an existing user, with keys, methods and all other records that refer to
// the user. Certificates stay with the authority, which needs them for its revocation
// lists.
func (s *Service) remove(ctx context.Context, userID string, who audit.Principal, destroyKeys bool) error {
	if !destroyKeys && s.Messages != nil {
		readers, err := s.Messages.Readers(ctx, userID)
		if err != nil {
			return err
		}
		if len(readers) > 0 {
			return fault.Newf(fault.InvalidParameters, "destroyKey: the user has certificates for encryption: %s. Everything that was encrypted for them becomes unreadable: send true to delete the user", listed(readers))
		}
	}
	// Tokens are locked before messages. The notice is ordered while the contacts of the
	// user exist.
	err := s.end(ctx, who, userID, "the account was deleted")
	if err == nil {
		err = s.emit(ctx, notify.UserDeleted, who, userID)
	}
	if err == nil {
		err = s.Contacts.DeleteAll(ctx, userID)
	}
	if err == nil {
		err = notFound(s.Store.DeleteUser(ctx, userID))
	}
	return fault.Rollback(err)
}

// listed returns the first of some names.
func listed(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
