// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"time"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/lock"
)

// Contacts implements contact.Store, contact.CodeStore and contact.AddressStore.
type Contacts struct{ *DB }

var (
	_ contact.Store        = Contacts{}
	_ contact.CodeStore    = Contacts{}
	_ contact.AddressStore = Contacts{}
)

// Atomic implements contact.Store; see DB.locked.
func (s Contacts) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

const contactColumns = "user_id, type, value, confirmed, is_primary, notification, secondary_auth, created_at"

func scanContact(r row) (c contact.Contact, err error) {
	err = r.Scan(&c.UserID, &c.Type, &c.Value, &c.Confirmed, &c.Primary, &c.Notification, &c.SecondaryAuth, (*timeField)(&c.CreatedAt))
	return c, err
}

// roleColumns maps roles to their columns.
var roleColumns = map[contact.Role]string{
	contact.RolePrimary:       "is_primary",
	contact.RoleNotification:  "notification",
	contact.RoleSecondaryAuth: "secondary_auth",
}

var addContacts = newInsertion(1, "contacts", "user_id, type, normal, value, confirmed, is_primary, notification, secondary_auth, created_at", ifFree)

// AddContact implements contact.Store. It does not matter which unique index refuses the
// row: the contact is taken.
func (s Contacts) AddContact(ctx context.Context, c contact.Contact, normal string, unique bool) (added bool, err error) {
	set := lock.User(c.UserID)
	if unique || c.Primary {
		set = set.Contact(string(c.Type), normal)
	}
	err = s.Atomic(ctx, set, func(ctx context.Context) error {
		if unique {
			if has, err := s.HasContact(ctx, c.Type, normal); err != nil || has {
				added = false
				return err
			}
		}
		n, err := s.insert(ctx, addContacts,
			c.UserID, string(c.Type), normal, c.Value, c.Confirmed, c.Primary, c.Notification, c.SecondaryAuth, millis(c.CreatedAt))
		if added = n == 1; err != nil || !added {
			return err
		}
		return s.addWords(ctx, c.UserID, sourceOf(c.Type, normal), contactWords(c.Type, normal))
	})
	return added && err == nil, err
}

// Contacts implements contact.Store.
func (s Contacts) Contacts(ctx context.Context, userID string, t contact.Type) ([]contact.Contact, error) {
	return all(ctx, s.DB, scanContact, "SELECT "+contactColumns+" FROM contacts WHERE user_id = $1 AND type = $2 ORDER BY created_at, normal LIMIT $3",
		userID, string(t), contact.MaxContacts)
}

// Contact implements contact.Store.
func (s Contacts) Contact(ctx context.Context, userID string, t contact.Type, normal string) (contact.Contact, bool, error) {
	return one(ctx, s.DB, scanContact, "SELECT "+contactColumns+" FROM contacts WHERE user_id = $1 AND type = $2 AND normal = $3",
		userID, string(t), normal)
}

// ContactByRole implements contact.Store.
func (s Contacts) ContactByRole(ctx context.Context, userID string, t contact.Type, r contact.Role) (c contact.Contact, found bool, err error) {
	column, err := roleColumn(r)
	if err != nil {
		return c, false, err
	}
	return one(ctx, s.DB, scanContact, "SELECT "+contactColumns+" FROM contacts WHERE user_id = $1 AND type = $2 AND "+column+" ORDER BY created_at, normal LIMIT 1",
		userID, string(t))
}

// NotificationContacts implements contact.AddressStore.
func (s Contacts) NotificationContacts(ctx context.Context, userID string, t contact.Type) ([]contact.Contact, error) {
	return all(ctx, s.DB, scanContact, "SELECT "+contactColumns+" FROM contacts WHERE user_id = $1 AND type = $2 AND notification AND confirmed ORDER BY created_at, normal LIMIT $3",
		userID, string(t), contact.MaxContacts)
}

// ConfirmContact implements contact.Store.
func (s Contacts) ConfirmContact(ctx context.Context, userID string, t contact.Type, normal string) error {
	_, err := s.exec(ctx, "UPDATE contacts SET confirmed = TRUE WHERE user_id = $1 AND type = $2 AND normal = $3", userID, string(t), normal)
	return err
}

// SetRole implements contact.Store.
func (s Contacts) SetRole(ctx context.Context, userID string, t contact.Type, normal string, r contact.Role, has bool) (done bool, err error) {
	column, err := roleColumn(r)
	if err != nil {
		return false, err
	}
	set := lock.User(userID)
	if has && r == contact.RolePrimary {
		set = set.Contact(string(t), normal)
	}
	err = s.Atomic(ctx, set, func(ctx context.Context) error {
		done = true
		if has && r == contact.RolePrimary {
			// Check first: a violated constraint would end a PostgreSQL transaction. The
			// contact is locked, so the result stays true.
			owner, err := s.PrimaryOwner(ctx, t, normal)
			if err != nil {
				return err
			}
			if owner != "" && owner != userID {
				done = false
				return nil
			}
		}
		if has && r != contact.RoleNotification {
			if _, err := s.exec(ctx, "UPDATE contacts SET "+column+" = FALSE WHERE user_id = $1 AND type = $2 AND normal <> $3 AND "+column, userID, string(t), normal); err != nil {
				return err
			}
		}
		_, err := s.exec(ctx, "UPDATE contacts SET "+column+" = $4 WHERE user_id = $1 AND type = $2 AND normal = $3", userID, string(t), normal, has)
		return err
	})
	return done && err == nil, err
}

func roleColumn(r contact.Role) (string, error) {
	column, ok := roleColumns[r]
	if !ok {
		return "", fmt.Errorf("store: contacts have no role %d", r)
	}
	return column, nil
}

// DeleteContact implements contact.Store. It also deletes the codes for the contact.
func (s Contacts) DeleteContact(ctx context.Context, userID string, t contact.Type, normal string) error {
	return s.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if _, err := s.exec(ctx, "DELETE FROM one_time_codes WHERE user_id = $1 AND type = $2 AND normal = $3", userID, string(t), normal); err != nil {
			return err
		}
		if _, err := s.exec(ctx, "DELETE FROM contacts WHERE user_id = $1 AND type = $2 AND normal = $3", userID, string(t), normal); err != nil {
			return err
		}
		return s.setWords(ctx, userID, sourceOf(t, normal), nil)
	})
}

// DeleteContacts implements contact.Store.
func (s Contacts) DeleteContacts(ctx context.Context, userID string) error {
	return s.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if _, err := s.exec(ctx, "DELETE FROM one_time_codes WHERE user_id = $1", userID); err != nil {
			return err
		}
		if _, err := s.exec(ctx, "DELETE FROM contacts WHERE user_id = $1", userID); err != nil {
			return err
		}
		return s.dropWords(ctx, userID, isContact)
	})
}

// PrimaryOwner implements contact.Store.
func (s Contacts) PrimaryOwner(ctx context.Context, t contact.Type, normal string) (string, error) {
	id, _, err := one(ctx, s.DB, scalar[string], "SELECT user_id FROM contacts WHERE normal = $1 AND type = $2 AND is_primary", normal, string(t))
	return id, err
}

// HasContact implements contact.Store.
func (s Contacts) HasContact(ctx context.Context, t contact.Type, normal string) (bool, error) {
	_, found, err := one(ctx, s.DB, scalar[string], "SELECT user_id FROM contacts WHERE normal = $1 AND type = $2 LIMIT 1", normal, string(t))
	return found, err
}

// IssueCode implements contact.CodeStore.
func (s Contacts) IssueCode(ctx context.Context, c contact.Code, notBefore time.Time) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO one_time_codes AS c
		(user_id, purpose, type, normal, sealed_key, mac, attempts, issued_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8)
		ON CONFLICT (user_id, purpose, type, normal) DO UPDATE SET
			sealed_key = excluded.sealed_key, mac = excluded.mac, attempts = 0,
			issued_at = excluded.issued_at, expires_at = excluded.expires_at
		WHERE c.issued_at <= $9`,
		c.UserID, c.Purpose, string(c.Type), c.Normal, c.Key, c.MAC, millis(c.IssuedAt), millis(c.ExpiresAt), millis(notBefore))
	return n == 1, err
}

// tried is a code and the number of its attempts.
type tried struct {
	code     contact.Code
	attempts int
}

// TryCode implements contact.CodeStore.
func (s Contacts) TryCode(ctx context.Context, userID, purpose string, t contact.Type, normal string, now time.Time) (contact.Code, int, bool, error) {
	v, found, err := returning(ctx, s.DB, func(r row) (v tried, err error) {
		v.code = contact.Code{UserID: userID, Purpose: purpose, Type: t, Normal: normal}
		err = r.Scan(&v.code.Key, &v.code.MAC, &v.attempts, (*timeField)(&v.code.IssuedAt), (*timeField)(&v.code.ExpiresAt))
		return v, err
	}, `UPDATE one_time_codes SET attempts = attempts + 1
		WHERE user_id = $1 AND purpose = $2 AND type = $3 AND normal = $4 AND expires_at > $5 AND length(mac) > 0
		RETURNING sealed_key, mac, attempts, issued_at, expires_at`,
		userID, purpose, string(t), normal, millis(now))
	return v.code, v.attempts, found, err
}

// SpendCode implements contact.CodeStore. The row stays until it expires, without its
// MAC, because the time of resending also counts from a used code.
func (s Contacts) SpendCode(ctx context.Context, userID, purpose string, t contact.Type, normal string, mac []byte, limit int, now time.Time) (bool, error) {
	n, err := s.exec(ctx, `UPDATE one_time_codes SET mac = $8, sealed_key = $8
		WHERE user_id = $1 AND purpose = $2 AND type = $3 AND normal = $4 AND mac = $5 AND attempts <= $6 AND expires_at > $7`,
		userID, purpose, string(t), normal, mac, limit, millis(now), []byte{})
	return n == 1, err
}

// SweepCodes implements contact.CodeStore. It deletes codes that expired a day ago: after
// that time they no longer block another code, however long the time of resending is.
func (s Contacts) SweepCodes(ctx context.Context, now time.Time) error {
	for n := int64(sweepPortion); n == sweepPortion; {
		var err error
		n, err = s.exec(ctx, `DELETE FROM one_time_codes WHERE (user_id, purpose, type, normal) IN
			(SELECT user_id, purpose, type, normal FROM one_time_codes WHERE expires_at <= $1 LIMIT $2`+s.skipLocked()+`)`,
			millis(now.Add(-24*time.Hour)), sweepPortion)
		if err != nil {
			return err
		}
	}
	return nil
}
