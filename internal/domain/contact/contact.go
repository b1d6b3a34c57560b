// Package contact owns the phones and e-mail addresses of users: their normal
// forms, the roles they have, and the codes that prove that somebody has them.
//
// Phones and e-mail addresses differ in the values of their [Kind] and in nothing
// else: one book, one table, one set of rules.
package contact

import (
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// Type names a kind of contact as the interface does.
type Type string

// The types.
const (
	PhoneNumber  Type = "PhoneNumber"
	EmailAddress Type = "EmailAddress"
)

// Kind is everything in which the types differ.
type Kind struct {
	Type    Type
	Channel notify.Channel // how one-time codes reach it
	Method  string         // authentication method whose codes go to it
	Invalid string         // fault code of a value that is none
	Taken   string         // fault code of a value that somebody has

	// normal gives the value as it is shown and its normal form; see Normal.
	normal func(value string) (shown, normal string, err error)
}

// The kinds.
var (
	Phone = Kind{PhoneNumber, notify.SMS, "otpviasms", fault.InvalidPhone, fault.DuplicatePhone, normalPhone}
	Email = Kind{EmailAddress, notify.Email, "otpviaemail", fault.InvalidEmail, fault.DuplicateEmail, normalEmail}
)

// Normal returns the form by which values are compared. Applied to its own result
// it changes nothing. The fault has the code Invalid.
func (k Kind) Normal(value string) (string, error) {
	_, normal, err := k.normal(value)
	return normal, err
}

// KindOf tells a value's kind: an e-mail address has an @, a phone number has none.
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
	Confirmed     bool   // somebody proved or an operator said that the user has it
	Primary       bool   // the user signs in with it; unique in the installation
	Notification  bool   // receives notifications
	SecondaryAuth bool   // receives one-time codes and passwords
	CreatedAt     time.Time
}

// Unique is the answer to whether a value may become an identifier.
type Unique struct {
	Data     string // as given
	IsUnique bool
	Required bool // identifiers are always to be unique
}

// Reach decides whether an operator may act on a user. The room user satisfies
// it.
type Reach interface {
	// Reach returns nil or the fault user_not_found; see package user.
	Reach(ctx context.Context, who audit.Principal, userID string) error
}

// Methods are the authentication methods of users. [session.Service] satisfies it.
type Methods interface {
	// MethodUsesContact reports whether the user has the method, whose codes go to
	// a contact.
	MethodUsesContact(ctx context.Context, userID, method string) (bool, error)
	// ContactGone tells that the contact that codes of the method went to is no
	// more, in the transaction of ctx.
	ContactGone(ctx context.Context, userID, method string) error
}

// Notices are told of changes. *notify.Service satisfies it.
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
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// AddContact adds a contact; false when the user has it already or, with
	// unique, anybody has it, or when it is to be primary and somebody's primary
	// is the same. Other roles are given with SetRole.
	AddContact(ctx context.Context, c Contact, normal string, unique bool) (bool, error)
	Contacts(ctx context.Context, userID string, t Type) ([]Contact, error) // the oldest first, at most MaxContacts
	Contact(ctx context.Context, userID string, t Type, normal string) (c Contact, found bool, err error)
	ContactByRole(ctx context.Context, userID string, t Type, r Role) (c Contact, found bool, err error) // the oldest that has it
	ConfirmContact(ctx context.Context, userID string, t Type, normal string) error
	// SetRole gives or takes a role. RolePrimary and RoleSecondaryAuth move from
	// the contact of the same user and type that has them. False: the contact would
	// be primary and somebody else's primary is the same.
	SetRole(ctx context.Context, userID string, t Type, normal string, r Role, has bool) (bool, error)
	DeleteContact(ctx context.Context, userID string, t Type, normal string) error
	DeleteContacts(ctx context.Context, userID string) error

	// PrimaryOwner is the user whose primary contact it is; "" for nobody.
	PrimaryOwner(ctx context.Context, t Type, normal string) (userID string, err error)
	// HasContact reports whether anybody has the contact.
	HasContact(ctx context.Context, t Type, normal string) (bool, error)
}

// CodeStore keeps one-time codes. A code belongs to a user, a purpose and a contact.
type CodeStore interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// IssueCode stores a code in the place of a former one for the same user,
	// purpose and contact; false when that one is younger than notBefore.
	IssueCode(ctx context.Context, c Code, notBefore time.Time) (bool, error)
	// TryCode counts an attempt and returns the code with the attempts counted so
	// far, this one included; found is false when there is none that lives.
	TryCode(ctx context.Context, userID, purpose string, t Type, normal string, now time.Time) (c Code, attempts int, found bool, err error)
	// SpendCode removes a code if its MAC is this one and no more than limit
	// attempts were counted. One statement decides; true is told once.
	SpendCode(ctx context.Context, userID, purpose string, t Type, normal string, mac []byte, limit int, now time.Time) (bool, error)
	SweepCodes(ctx context.Context, now time.Time) error
}

// MaxContacts is how many contacts of one type a user may have.
const MaxContacts = 100
