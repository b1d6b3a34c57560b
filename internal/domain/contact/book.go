// SPDX-License-Identifier: Apache-2.0

package contact

import (
	"context"
	"io"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// Settings of the book.
type Settings struct {
	// Unique allows a contact for one user only, whatever its roles. Otherwise only
	// primary contacts are unique, since they are identifiers.
	Unique bool
	Codes  CodeSettings
}

// DefaultSettings returns the values of the specifications and, where they have none, our
// own.
func DefaultSettings() Settings {
	return Settings{Codes: CodeSettings{Digits: 6, Life: 300 * time.Second, Attempts: 5, Resend: 60 * time.Second}}
}

// Deps are what a Book works with.
type Deps struct {
	Store         Store
	Codes         CodeStore // in the same database
	Reach         Reach
	Methods       Methods
	Confirmations Confirmations
	Notices       Notices
	Vault         notify.Sealer
	Now           func() time.Time
	Rand          io.Reader // of codes; safe for concurrent use
}

// Book keeps the contacts of all users. Methods with the argument who act for an operator
// and fail with user_not_found for users out of reach. An invalid value, and a contact
// that the user does not have, fail with invalid_phone or invalid_email.
type Book struct {
	settings Settings
	deps     Deps
	codes    *Codes
}

// New checks the settings.
func New(s Settings, d Deps) (*Book, error) {
	codes, err := NewCodes(s.Codes, d.Codes, d.Vault, d.Now, d.Rand)
	if err != nil {
		return nil, err
	}
	return &Book{settings: s, deps: d, codes: codes}, nil
}

// List returns the contacts of one kind, the oldest first.
func (b *Book) List(ctx context.Context, who audit.Principal, userID string, kind Kind) (list []Contact, err error) {
	if err := b.deps.Reach.Reach(ctx, who, userID); err != nil {
		return nil, err
	}
	return b.deps.Store.Contacts(ctx, userID, kind.Type)
}

// Add gives a user a contact without roles. Faults: duplicate_phone or duplicate_email
// when the user has it already or, where contacts are unique, any user has it;
// wrong_operation above MaxContacts.
func (b *Book) Add(ctx context.Context, who audit.Principal, userID string, kind Kind, value string) (c Contact, err error) {
	err = b.within(ctx, kind.Lock(userID, value), who, userID, func(ctx context.Context) error {
		if c, err = b.add(ctx, userID, kind, Contact{Value: value}); err != nil {
			return err
		}
		return b.changed(ctx, who, userID)
	})
	return c, err
}

// add adds a contact, inside a transaction. Of given it takes the value and the roles.
func (b *Book) add(ctx context.Context, userID string, kind Kind, given Contact) (Contact, error) {
	have, err := b.deps.Store.Contacts(ctx, userID, kind.Type)
	if err != nil {
		return Contact{}, err
	}
	if len(have) >= MaxContacts {
		return Contact{}, tooMany()
	}
	return b.put(ctx, userID, kind, given)
}

func tooMany() error {
	return fault.Newf(fault.WrongOperation, "the user has %d contacts of this type, which is the limit: delete one first", MaxContacts)
}

// put is add for a user who has few contacts.
func (b *Book) put(ctx context.Context, userID string, kind Kind, c Contact) (Contact, error) {
	shown, normal, err := kind.fresh(c.Value)
	if err != nil {
		return Contact{}, err
	}
	c.UserID, c.Type, c.Value, c.CreatedAt = userID, kind.Type, shown, b.now()
	added, err := b.deps.Store.AddContact(ctx, c, normal, b.settings.Unique)
	if err == nil && !added {
		err = fault.New(kind.Taken, "the contact is taken by this user, or by another user where contacts must be unique")
	}
	return c, err
}

// IsUnique predicts whether a value may become the identifier of a user: whether
// Register, SetPrimary and SetMain will take it. The fault is invalid_phone or
// invalid_email. It does not reveal who has it.
func (b *Book) IsUnique(ctx context.Context, value string) (Unique, error) {
	kind := KindOf(value)
	normal, err := kind.New(value)
	if err != nil {
		return Unique{}, err
	}
	taken := false
	if b.settings.Unique {
		taken, err = b.deps.Store.HasContact(ctx, kind.Type, normal)
	} else {
		var owner string
		owner, err = b.deps.Store.PrimaryOwner(ctx, kind.Type, normal)
		taken = owner != ""
	}
	return Unique{Data: value, IsUnique: !taken, Required: true}, err
}

// Confirm marks the contact as confirmed, on the word of the operator.
func (b *Book) Confirm(ctx context.Context, who audit.Principal, userID string, kind Kind, value string) (Contact, error) {
	return b.change(ctx, lock.User(userID), who, userID, kind, value, func(ctx context.Context, normal string, _ Contact) error {
		return b.deps.Store.ConfirmContact(ctx, userID, kind.Type, normal)
	})
}

// purposeContact is the purpose of codes that confirm a contact.
const purposeContact = "contact"

// RequireConfirmation sends a code to the contact. A previous code becomes invalid.
// Faults: too_many_requests before the resend time is over or when a budget is used up;
// wrong_operation when the channel is not configured.
func (b *Book) RequireConfirmation(ctx context.Context, who audit.Principal, userID string, kind Kind, value string) error {
	return b.within(ctx, lock.User(userID), who, userID, func(ctx context.Context) error {
		c, normal, err := b.find(ctx, userID, kind, value)
		if err != nil {
			return err
		}
		code, expires, err := b.codes.Issue(ctx, userID, purposeContact, kind, normal)
		if err != nil {
			return err
		}
		return fault.Rollback(b.deps.Notices.Order(ctx, notify.Direct{
			Channel: kind.Channel, To: c.Value, Template: notify.TemplateContactCode,
			Data:   map[string]string{"Code": code, "Minutes": b.codes.minutes()},
			UserID: userID, Actor: who.UserID, Expires: expires,
		}))
	})
}

// SubmitConfirmation confirms the contact if the code is right. Faults:
// invalid_confirmation_code for a code that is wrong, spent, expired or was never sent
// (the answer does not say which); max_attempts_exceeded once the attempts are used up,
// for any code, until another code is sent.
func (b *Book) SubmitConfirmation(ctx context.Context, who audit.Principal, userID string, kind Kind, value, code string) (Contact, error) {
	return b.change(ctx, lock.User(userID), who, userID, kind, value, func(ctx context.Context, normal string, _ Contact) error {
		if err := b.codes.Spend(ctx, userID, purposeContact, kind, normal, code); err != nil {
			return err
		}
		return b.deps.Store.ConfirmContact(ctx, userID, kind.Type, normal)
	})
}

// SetPrimary makes a confirmed contact the one that the user signs in with, in place of
// the previous one of its kind, or removes that role. Faults:
// contact_confirmation_required; duplicate_phone or duplicate_email when it is an
// identifier of another user.
func (b *Book) SetPrimary(ctx context.Context, who audit.Principal, userID string, kind Kind, value string, primary bool) (Contact, error) {
	return b.setRole(ctx, who, userID, kind, value, RolePrimary, primary)
}

// SetNotification starts or stops notifications to a confirmed contact. Any number of
// contacts may have the role. The fault is contact_confirmation_required.
func (b *Book) SetNotification(ctx context.Context, who audit.Principal, userID string, kind Kind, value string, notification bool) (Contact, error) {
	return b.setRole(ctx, who, userID, kind, value, RoleNotification, notification)
}

// SetSecondaryAuth has one-time codes and passwords sent to a confirmed contact, in place
// of the previous one of its kind. The fault is contact_confirmation_required.
func (b *Book) SetSecondaryAuth(ctx context.Context, who audit.Principal, userID string, kind Kind, value string) error {
	_, err := b.setRole(ctx, who, userID, kind, value, RoleSecondaryAuth, true)
	return err
}

func (b *Book) setRole(ctx context.Context, who audit.Principal, userID string, kind Kind, value string, r Role, has bool) (Contact, error) {
	locked := lock.User(userID)
	if has && r == RolePrimary {
		locked = kind.Lock(userID, value)
	}
	return b.change(ctx, locked, who, userID, kind, value, func(ctx context.Context, normal string, c Contact) error {
		if has && !c.Confirmed {
			return unconfirmed()
		}
		ok, err := b.deps.Store.SetRole(ctx, userID, kind.Type, normal, r, has)
		if err == nil && !ok {
			err = fault.Rollback(takenByOther(kind))
		}
		if err != nil || r != RoleSecondaryAuth || c.SecondaryAuth == has {
			return err
		}
		if err := b.cancel(ctx, who, userID); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(b.deps.Notices.Emit(ctx, notify.Event{
			Type: notify.UserFactorChanged, UserID: userID, Actor: who.UserID, Factor: notify.FactorContact, Except: c.Value,
		}))
	})
}

// Delete deletes a contact of a user, with its roles. If codes of an authentication
// method went to it, [Methods] is called.
func (b *Book) Delete(ctx context.Context, who audit.Principal, userID string, kind Kind, value string) error {
	return b.within(ctx, lock.User(userID), who, userID, func(ctx context.Context) error {
		c, normal, err := b.find(ctx, userID, kind, value)
		if err != nil {
			return err
		}
		return b.delete(ctx, who, kind, c, normal)
	})
}

// delete removes a contact, inside a transaction. The notice is ordered before that, so
// that it still reaches a contact that an attacker deletes. Tokens are locked before
// messages.
func (b *Book) delete(ctx context.Context, who audit.Principal, kind Kind, c Contact, normal string) error {
	if c.SecondaryAuth {
		if err := b.deps.Methods.ContactGone(ctx, c.UserID, kind.Method); err != nil {
			return fault.Rollback(err)
		}
		if err := b.cancel(ctx, who, c.UserID); err != nil {
			return fault.Rollback(err)
		}
	}
	if err := b.changed(ctx, who, c.UserID); err != nil {
		return fault.Rollback(err)
	}
	return b.deps.Store.DeleteContact(ctx, c.UserID, kind.Type, normal)
}

// cancel cancels confirmations by codes to a contact that codes go to no more.
func (b *Book) cancel(ctx context.Context, who audit.Principal, userID string) error {
	return b.deps.Confirmations.CancelAll(ctx, who, userID, "the contact for one-time codes was changed")
}

// Main returns the contact of the legacy view, which has one of each kind: the primary
// one, otherwise the one for one-time codes, otherwise the oldest. found is false when
// the user has none.
func (b *Book) Main(ctx context.Context, who audit.Principal, userID string, kind Kind) (c Contact, found bool, err error) {
	if err := b.deps.Reach.Reach(ctx, who, userID); err != nil {
		return Contact{}, false, err
	}
	return b.MainOf(ctx, userID, kind)
}

// SetMain makes a value the primary contact of its kind, adding it if the user does not
// have it. As at registration, the word of the operator is enough for the role. It does
// not confirm the contact. The previous primary contact stays without the role. Faults:
// duplicate_phone, duplicate_email.
func (b *Book) SetMain(ctx context.Context, who audit.Principal, userID string, kind Kind, value string) error {
	return b.within(ctx, kind.Lock(userID, value), who, userID, func(ctx context.Context) error {
		if err := b.makeMain(ctx, userID, kind, value); err != nil {
			return fault.Rollback(err)
		}
		return b.changed(ctx, who, userID)
	})
}

// makeMain makes a value the primary contact, inside a transaction.
func (b *Book) makeMain(ctx context.Context, userID string, kind Kind, value string) error {
	_, normal, found, err := b.lookup(ctx, userID, kind, value)
	if err != nil {
		return err
	}
	if found {
		ok, err := b.deps.Store.SetRole(ctx, userID, kind.Type, normal, RolePrimary, true)
		if err == nil && !ok {
			err = takenByOther(kind)
		}
		return err
	}
	former, has, err := b.deps.Store.ContactByRole(ctx, userID, kind.Type, RolePrimary)
	if err != nil {
		return err
	}
	if has {
		formerNormal, err := kind.Stored(former.Value)
		if err != nil {
			return err
		}
		if _, err := b.deps.Store.SetRole(ctx, userID, kind.Type, formerNormal, RolePrimary, false); err != nil {
			return err
		}
	}
	_, err = b.add(ctx, userID, kind, Contact{Value: value, Primary: true})
	return err
}

// DeleteMain deletes the contact of the legacy view. Without one it does nothing. The
// fault is wrong_operation while the authentication method that uses contacts of the kind
// is on.
func (b *Book) DeleteMain(ctx context.Context, who audit.Principal, userID string, kind Kind) error {
	return b.within(ctx, lock.User(userID), who, userID, func(ctx context.Context) error {
		used, err := b.deps.Methods.MethodUsesContact(ctx, userID, kind.Method)
		if err != nil {
			return err
		}
		if used {
			return fault.Newf(fault.WrongOperation, "the authentication method %s of the user is on: delete the method first", kind.Method)
		}
		c, found, err := b.MainOf(ctx, userID, kind)
		if err != nil || !found {
			return err
		}
		normal, err := kind.Stored(c.Value)
		if err != nil {
			return err
		}
		return b.delete(ctx, who, kind, c, normal)
	})
}

// Lock locks a user and a value that may become a contact of the user. It locks only the
// user if the value is invalid.
func (k Kind) Lock(userID, value string) lock.Set {
	set := lock.User(userID)
	forms, err := k.Forms(value)
	if err != nil {
		return set
	}
	for _, normal := range forms {
		set = set.Contact(string(k.Type), normal)
	}
	return set
}

// within runs fn in one transaction that first checks the right to act on the user.
func (b *Book) within(ctx context.Context, locked lock.Set, who audit.Principal, userID string, fn func(ctx context.Context) error) error {
	return b.deps.Store.Atomic(ctx, locked, func(ctx context.Context) error {
		if err := b.deps.Reach.Reach(ctx, who, userID); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// change changes one contact and returns the result.
func (b *Book) change(ctx context.Context, locked lock.Set, who audit.Principal, userID string, kind Kind, value string, fn func(ctx context.Context, normal string, c Contact) error) (c Contact, err error) {
	err = b.within(ctx, locked, who, userID, func(ctx context.Context) error {
		before, normal, err := b.find(ctx, userID, kind, value)
		if err != nil {
			return err
		}
		if err := fn(ctx, normal, before); err != nil {
			return err
		}
		if c, _, err = b.deps.Store.Contact(ctx, userID, kind.Type, normal); err != nil {
			return err
		}
		return b.changed(ctx, who, userID)
	})
	return c, err
}

// find finds a contact of the user.
func (b *Book) find(ctx context.Context, userID string, kind Kind, value string) (Contact, string, error) {
	c, normal, found, err := b.lookup(ctx, userID, kind, value)
	if err == nil && !found {
		err = fault.New(kind.Invalid, "the user has no such contact")
	}
	return c, normal, err
}

// lookup looks for a contact of the user by all forms of a value. normal is that of the contact, and if
// there is none, the one by the rules of today.
func (b *Book) lookup(ctx context.Context, userID string, kind Kind, value string) (c Contact, normal string, found bool, err error) {
	forms, err := kind.Forms(value)
	if err != nil {
		return Contact{}, "", false, err
	}
	for _, normal = range forms {
		if c, found, err = b.deps.Store.Contact(ctx, userID, kind.Type, normal); err != nil || found {
			return c, normal, found, err
		}
	}
	return Contact{}, forms[0], false, nil
}

func unconfirmed() error {
	return fault.New(fault.ContactUnconfirmed, "the contact is not confirmed: confirm it first, then give it a role")
}

func takenByOther(kind Kind) error {
	return fault.New(kind.Taken, "the contact is an identifier of another user")
}

// changed notifies the user of a change of the account.
func (b *Book) changed(ctx context.Context, who audit.Principal, userID string) error {
	return b.deps.Notices.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID})
}

// now returns the time with the precision of stores.
func (b *Book) now() time.Time { return b.deps.Now().UTC().Truncate(time.Millisecond) }
