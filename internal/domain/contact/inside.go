// SPDX-License-Identifier: Apache-2.0

package contact

import (
	"context"
	"slices"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// The methods of this file are for packages that have their own transaction and have
// checked the rights of the caller.

// Register makes a value an identifier of a user who is being registered and has no
// contact of the kind yet: the primary one, not confirmed. The word of the operator is
// enough for that role. Roles that send messages need a confirmed contact. Faults:
// invalid_phone, invalid_email, duplicate_phone, duplicate_email.
func (b *Book) Register(ctx context.Context, userID string, kind Kind, value string) error {
	_, err := b.put(ctx, userID, kind, Contact{Value: value, Primary: true})
	return err
}

// Place gives a user who is being added a contact with its roles, on the word of an
// administrator. before are the contacts that the user has already. It sets the time of the
// contact and ignores its user. Faults: those of Add; contact_confirmation_required for roles
// that need a confirmed contact; wrong_operation for a second contact in a role that one
// contact of a kind has.
func (b *Book) Place(ctx context.Context, userID string, before []Contact, c Contact) error {
	if (c.Notification || c.SecondaryAuth) && !c.Confirmed {
		return unconfirmed()
	}
	have := 0
	for _, other := range before {
		if other.Type != c.Type {
			continue
		}
		have++
		if other.Primary && c.Primary || other.SecondaryAuth && c.SecondaryAuth {
			return fault.New(fault.WrongOperation, "the user has another contact of this type to sign in with or for one-time codes: only one may have the role")
		}
	}
	if have >= MaxContacts {
		return tooMany()
	}
	_, err := b.put(ctx, userID, c.Type.Kind(), c)
	return err
}

// Of returns the contacts of one kind of a user, the oldest first.
func (b *Book) Of(ctx context.Context, userID string, kind Kind) ([]Contact, error) {
	return b.deps.Store.Contacts(ctx, userID, kind.Type)
}

// PrimaryOf returns the user who signs in with a contact, or "". normal is what
// kind.Normal returned.
func (b *Book) PrimaryOf(ctx context.Context, kind Kind, normal string) (userID string, err error) {
	return b.deps.Store.PrimaryOwner(ctx, kind.Type, normal)
}

// ForOneTime returns the contact that one-time codes and passwords of a kind go to. found
// is false when there is none or it is not confirmed.
func (b *Book) ForOneTime(ctx context.Context, userID string, kind Kind) (c Contact, found bool, err error) {
	c, found, err = b.deps.Store.ContactByRole(ctx, userID, kind.Type, RoleSecondaryAuth)
	return c, found && c.Confirmed, err
}

// Confirmed returns the normal form of a confirmed contact of the user, so that something may be sent
// there. It reports false if the value is none. The fault for an invalid value is invalid_phone or
// invalid_email.
func (b *Book) Confirmed(ctx context.Context, userID string, kind Kind, value string) (normal string, confirmed bool, err error) {
	c, normal, found, err := b.lookup(ctx, userID, kind, value)
	return normal, found && c.Confirmed, err
}

// MainOf returns the contact of the legacy view; see [Book.Main].
func (b *Book) MainOf(ctx context.Context, userID string, kind Kind) (c Contact, found bool, err error) {
	for _, r := range []Role{RolePrimary, RoleSecondaryAuth} {
		if c, found, err = b.deps.Store.ContactByRole(ctx, userID, kind.Type, r); found || err != nil {
			return c, found, err
		}
	}
	list, err := b.deps.Store.Contacts(ctx, userID, kind.Type)
	if err != nil || len(list) == 0 {
		return Contact{}, false, err
	}
	return list[0], true, nil
}

// DeleteAll removes the contacts and codes of a user who is being deleted.
func (b *Book) DeleteAll(ctx context.Context, userID string) error {
	return b.deps.Store.DeleteContacts(ctx, userID)
}

// Codes returns the one-time codes of the book, for other purposes.
func (b *Book) Codes() *Codes { return b.codes }

// Sweep deletes expired codes. The server calls it from time to time.
func (b *Book) Sweep(ctx context.Context) error {
	return b.deps.Codes.SweepCodes(ctx, b.now())
}

// AddressStore reads the contacts that messages are sent to.
type AddressStore interface {
	Contacts(ctx context.Context, userID string, t Type) ([]Contact, error)             // the oldest first, at most MaxContacts
	NotificationContacts(ctx context.Context, userID string, t Type) ([]Contact, error) // confirmed ones
}

// Addresses satisfies notify.Recipients. It is separate from the Book, which needs the
// service that needs it.
type Addresses struct{ Store AddressStore }

// NotificationAddresses implements notify.Recipients.
func (a Addresses) NotificationAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	return valuesOf(ctx, userID, channel, a.Store.NotificationContacts)
}

// ConfirmedAddresses implements notify.Recipients.
func (a Addresses) ConfirmedAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	return valuesOf(ctx, userID, channel, func(ctx context.Context, userID string, t Type) ([]Contact, error) {
		list, err := a.Store.Contacts(ctx, userID, t)
		return slices.DeleteFunc(list, func(c Contact) bool { return !c.Confirmed }), err
	})
}

// valuesOf returns the contacts of a channel that list finds, or nil for a channel
// without contacts.
func valuesOf(ctx context.Context, userID string, channel notify.Channel, list func(ctx context.Context, userID string, t Type) ([]Contact, error)) ([]string, error) {
	for _, kind := range []Kind{Phone, Email} {
		if kind.Channel.Info().To != channel.Info().To {
			continue
		}
		contacts, err := list(ctx, userID, kind.Type)
		if err != nil {
			return nil, err
		}
		values := make([]string, len(contacts))
		for i, c := range contacts {
			values[i] = c.Value
		}
		return values, nil
	}
	return nil, nil
}
