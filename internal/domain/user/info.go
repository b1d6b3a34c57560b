// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"errors"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
)

// Info is a user as operators see them.
type Info struct {
	ID             string
	Login          string // "" for none
	PhoneNumber    string // the one to sign in with, otherwise the first; "" for none
	PhoneConfirmed bool
	Email          string // likewise
	EmailConfirmed bool
	DisplayName    string
	Name           string // the distinguished name as text; see [Naming.Text]
	Locked         bool   // when read: by an operator, by a delayed lock, for missing approval, or for wrong passwords
	Unapproved     bool   // for missing approval, among others
	Group          string
	Operator       bool
	CreatedAt      time.Time
	LockedAt       time.Time // start of the lock, past or future; zero without one
	LastLoginAt    time.Time // zero for never
}

// ByID finds a user within the reach of the operator. The fault is user_not_found.
func (s *Service) ByID(ctx context.Context, who audit.Principal, userID string) (Info, error) {
	// The right and the record are read by one query, so no transaction is needed.
	info, err := s.SearchStore.InfoByID(ctx, who.UserID, userID, s.now())
	return info, notFound(err)
}

// ByIDs finds those of the users that are within the reach of the operator.
func (s *Service) ByIDs(ctx context.Context, who audit.Principal, ids []string) (map[string]Info, error) {
	list, err := s.SearchStore.InfosByID(ctx, who.UserID, ids, s.now())
	found := make(map[string]Info, len(list))
	for _, i := range list {
		found[i.ID] = i
	}
	return found, err
}

// Find finds a user within the reach of the operator by an identifier. issuer is
// the identity provider a login belongs to, "" or [Service.LocalIssuer] for this
// one. The fault is user_not_found, also for a value no user could have.
func (s *Service) Find(ctx context.Context, who audit.Principal, kind IdentifierType, value, issuer string) (Info, error) {
	id, err := s.owner(ctx, kind, value, issuer)
	if err != nil {
		return Info{}, err
	}
	return s.ByID(ctx, who, id) // also without a user: the same work for both answers
}

// owner returns the user who has an identifier, or "".
func (s *Service) owner(ctx context.Context, kind IdentifierType, value, issuer string) (string, error) {
	if kind == Login {
		if s.local(issuer) {
			return absent(s.LoginStore.OwnerOfLogin(ctx, FoldLogin(value)))
		}
		return absent(s.LoginStore.OwnerOfExternal(ctx, FoldIssuer(issuer), FoldLogin(value)))
	}
	contactKind, ok := kind.contact()
	if !ok {
		return "", fault.Newf(fault.InvalidParameters, "type: unknown, want Login, PhoneNumber or Email")
	}
	forms, err := contactKind.Forms(value)
	if err != nil {
		return "", nil // no user has it
	}
	for _, normal := range forms {
		if id, err := s.Contacts.PrimaryOf(ctx, contactKind, normal); err != nil || id != "" {
			return id, err
		}
	}
	return "", nil
}

// absent turns "not found" into the empty identifier.
func absent(id string, err error) (string, error) {
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return id, err
}

// IdentifierType is a kind of identifier of users. The numbers are those of the
// specification.
type IdentifierType int

// The identifier types.
const (
	Login IdentifierType = iota
	PhoneNumber
	Email
)

// identifierNames holds the name of type i at index i.
var identifierNames = [...]string{"Login", "PhoneNumber", "Email"}

// String returns the name on the wire.
func (t IdentifierType) String() string {
	if t < 0 || int(t) >= len(identifierNames) {
		return "unknown"
	}
	return identifierNames[t]
}

// IdentifierTypes returns the types in the order of their numbers.
func IdentifierTypes() []IdentifierType { return []IdentifierType{Login, PhoneNumber, Email} }

// ParseIdentifierType reads a name, without regard to letter case, or a number. The
// fault is invalid_parameters.
func ParseIdentifierType(text string) (IdentifierType, error) {
	for _, t := range IdentifierTypes() {
		if strings.EqualFold(text, identifierNames[t]) || text == string(rune('0'+int(t))) {
			return t, nil
		}
	}
	return 0, fault.New(fault.InvalidParameters, "type: unknown identifier type, want Login, PhoneNumber or Email")
}

// contact returns the kind of contact for the type, or false for Login.
func (t IdentifierType) contact() (contact.Kind, bool) {
	switch t {
	case PhoneNumber:
		return contact.Phone, true
	case Email:
		return contact.Email, true
	}
	return contact.Kind{}, false
}
