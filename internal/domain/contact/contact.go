// SPDX-License-Identifier: Apache-2.0

// Package contact keeps the phones and e-mail addresses of users: their normal forms,
// their roles, and the one-time codes that confirm them. Begin with New and Book.Add.
// Codes makes one-time codes for other purposes. The package does not send messages: it
// orders them from notify.
//
// Phones and e-mail addresses differ only in the values of their [Kind]: they have one
// book, one table and one set of rules.
package contact

import (
	"context"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// Type is the name of a kind of contact in the specification.
type Type string

// The types.
const (
	PhoneNumber  Type = "PhoneNumber"
	EmailAddress Type = "EmailAddress"
)

// Kind has everything that depends on the type.
type Kind struct {
	Type    Type
	Channel notify.Channel // how one-time codes reach it
	Method  string         // authentication method whose codes go to it
	Invalid string         // fault code of an invalid value
	Taken   string         // fault code of a value that is taken

	// normal returns the value as it is shown and its normal form; see Normal.
	normal func(value string) (shown, normal string, err error)
}

// The kinds.
var (
	Phone = Kind{PhoneNumber, notify.SMS, "otpviasms", fault.InvalidPhone, fault.DuplicatePhone, normalPhone}
	Email = Kind{EmailAddress, notify.Email, "otpviaemail", fault.InvalidEmail, fault.DuplicateEmail, normalEmail}
)

// Normal returns the form by which values are compared. The fault has the code Invalid.
func (k Kind) Normal(value string) (string, error) {
	_, normal, err := k.normal(value)
	return normal, err
}

// New is Normal for a value that is to be stored, or that something is sent to. It also refuses phone
// numbers that may be read in two ways.
func (k Kind) New(value string) (string, error) {
	_, normal, err := k.fresh(value)
	return normal, err
}

// fresh is New, which also returns the value as it is shown.
func (k Kind) fresh(value string) (shown, normal string, err error) {
	shown, normal, err = k.normal(value)
	if err == nil && k.Type == PhoneNumber {
		err = ambiguous(value, normal)
	}
	if err != nil {
		return "", "", err
	}
	return shown, normal, nil
}

// Stored returns the normal form of a stored value. That of a phone number is the value itself, by whatever
// rules it was read when it was stored.
func (k Kind) Stored(value string) (string, error) {
	if k.Type == PhoneNumber {
		if normal, ok := stored(value); ok {
			return normal, nil
		}
	}
	return k.Normal(value)
}

// Forms returns the normal forms of the stored values that a caller may mean by value: the one by the
// rules of today, and for digits also these themselves. The fault has the code Invalid.
func (k Kind) Forms(value string) ([]string, error) {
	normal, err := k.Normal(value)
	if err != nil {
		return nil, err
	}
	forms := []string{normal}
	if k.Type == PhoneNumber {
		if kept, ok := stored(strings.TrimSpace(value)); ok && kept != normal {
			forms = append(forms, kept)
		}
	}
	return forms, nil
}

// Kind returns the kind of a type.
func (t Type) Kind() Kind {
	if t == EmailAddress {
		return Email
	}
	return Phone
}

// KindOf returns the kind of a value: an e-mail address contains an @, a phone number
// does not.
func KindOf(value string) Kind {
	for _, c := range value {
		if c == '@' {
			return Email
		}
	}
	return Phone
}

// Contact is a phone or an e-mail address of a user.
type Contact struct {
	UserID        string
	Type          Type
	Value         string // as shown: digits with the country code, or an address
	Confirmed     bool   // proved by a code or set by an operator
	Primary       bool   // the user signs in with it; unique in the installation
	Notification  bool   // receives notifications
	SecondaryAuth bool   // receives one-time codes and passwords
	CreatedAt     time.Time
}

// Unique reports whether a value may become an identifier.
type Unique struct {
	Data     string // as given
	IsUnique bool
	Required bool // true: identifiers are always unique
}

// Reach decides whether an operator may act on a user. Package reach satisfies it.
type Reach interface {
	// Reach returns nil or the fault user_not_found; see package reach.
	Reach(ctx context.Context, who audit.Principal, userID string) error
}

// Methods are the authentication methods of users. [session.Service] satisfies it.
type Methods interface {
	// MethodUsesContact reports whether the user has the method, whose codes go to
	// a contact.
	MethodUsesContact(ctx context.Context, userID, method string) (bool, error)
	// ContactGone is called when the contact that got the codes of the method was
	// deleted, in the transaction of ctx.
	ContactGone(ctx context.Context, userID, method string) error
}

// Confirmations cancels what a user has begun to confirm. [confirm.Canceller] satisfies it.
type Confirmations interface {
	// CancelAll cancels the open confirmations of a user, in the transaction of ctx. reason
	// is a short sentence for clients.
	CancelAll(ctx context.Context, who audit.Principal, userID, reason string) error
}

// Notices sends codes and notices of changes. *notify.Service satisfies it.
type Notices interface {
	Order(ctx context.Context, d notify.Direct) error
	Emit(ctx context.Context, e notify.Event) error
}

// Role is something a contact is used for.
type Role int

// The roles.
const (
	RolePrimary Role = iota + 1
	RoleNotification
	RoleSecondaryAuth
)

// Code is a one-time code as it is stored.
type Code struct {
	UserID, Purpose string
	Type            Type
	Normal          string // the contact it was sent to
	Key             []byte // sealed key of the MAC
	MAC             []byte // HMAC-SHA-256 over purpose, user, contact and code
	IssuedAt        time.Time
	ExpiresAt       time.Time
}

// Store keeps contacts. Contacts are named by their normal form.
type Store interface {
	// Atomic locks the set, then runs fn in one transaction. A nested Atomic joins the
	// transaction and may name only what is locked already.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error

	// AddContact adds a contact. It reports false when the user has it already, when
	// unique is set and any user has it, or when it would be primary and is the primary
	// contact of another user. SetRole gives the other roles.
	AddContact(ctx context.Context, c Contact, normal string, unique bool) (bool, error)
	Contacts(ctx context.Context, userID string, t Type) ([]Contact, error) // the oldest first, at most MaxContacts
	Contact(ctx context.Context, userID string, t Type, normal string) (c Contact, found bool, err error)
	ContactByRole(ctx context.Context, userID string, t Type, r Role) (c Contact, found bool, err error) // the oldest that has it
	ConfirmContact(ctx context.Context, userID string, t Type, normal string) error
	// SetRole gives or removes a role. RolePrimary and RoleSecondaryAuth move from the
	// contact of the same user and type that has them. It reports false when the contact
	// would be primary and is the primary contact of another user.
	SetRole(ctx context.Context, userID string, t Type, normal string, r Role, has bool) (bool, error)
	DeleteContact(ctx context.Context, userID string, t Type, normal string) error
	DeleteContacts(ctx context.Context, userID string) error

	// PrimaryOwner returns the user whose primary contact it is, or "".
	PrimaryOwner(ctx context.Context, t Type, normal string) (userID string, err error)
	// HasContact reports whether any user has the contact.
	HasContact(ctx context.Context, t Type, normal string) (bool, error)
}

// CodeStore keeps one-time codes. A code belongs to a user, a purpose and a contact.
type CodeStore interface {
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error

	// IssueCode stores a code in place of the previous one for the same user, purpose and
	// contact. It reports false when the previous code is younger than notBefore.
	IssueCode(ctx context.Context, c Code, notBefore time.Time) (bool, error)
	// TryCode counts an attempt and returns the code with the attempts counted so far,
	// this one included. found is false when there is no valid code.
	TryCode(ctx context.Context, userID, purpose string, t Type, normal string, now time.Time) (c Code, attempts int, found bool, err error)
	// SpendCode spends a code if its MAC is mac and no more than limit attempts were
	// counted. It is one atomic statement and reports true once.
	SpendCode(ctx context.Context, userID, purpose string, t Type, normal string, mac []byte, limit int, now time.Time) (bool, error)
	SweepCodes(ctx context.Context, now time.Time) error
}

// MaxContacts is the most contacts of one type that a user may have.
const MaxContacts = 100
