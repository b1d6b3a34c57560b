// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"time"

	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

// OwnerOfLogin implements user.LoginStore.
func (s Users) OwnerOfLogin(ctx context.Context, folded string) (string, error) {
	return s.owner(ctx, "SELECT id FROM users WHERE login_folded = $1 AND login <> ''", folded)
}

// OwnerOfExternal implements user.LoginStore.
func (s Users) OwnerOfExternal(ctx context.Context, issuer, folded string) (string, error) {
	return s.owner(ctx, "SELECT user_id FROM external_logins WHERE issuer_folded = $1 AND login_folded = $2", issuer, folded)
}

func (s Users) owner(ctx context.Context, query string, args ...any) (string, error) {
	id, found, err := one(ctx, s.DB, scalar[string], query, args...)
	if err == nil && !found {
		err = user.ErrNotFound
	}
	return id, err
}

// ExternalLogins implements user.LoginStore.
func (s Users) ExternalLogins(ctx context.Context, id string) ([]user.ExternalLogin, error) {
	return all(ctx, s.DB, func(r row) (l user.ExternalLogin, err error) {
		err = r.Scan(&l.Login, &l.Issuer)
		return l, err
	}, "SELECT login, issuer FROM external_logins WHERE user_id = $1 ORDER BY issuer_folded", id)
}

// SetExternalLogin implements user.LoginStore.
func (s Users) SetExternalLogin(ctx context.Context, id string, l user.ExternalLogin, issuer, folded string) error {
	return s.Atomic(ctx, lock.User(id), func(ctx context.Context) error {
		owner, err := s.OwnerOfExternal(ctx, issuer, folded)
		if err == nil && owner != id {
			return user.ErrDuplicate
		}
		if err != nil && !errors.Is(err, user.ErrNotFound) {
			return err
		}
		if err := s.setWords(ctx, id, sourceExternal+issuer, user.SearchWords(l.Login)); err != nil {
			return err
		}
		_, err = s.exec(ctx, `INSERT INTO external_logins (user_id, issuer, issuer_folded, login, login_folded) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (user_id, issuer_folded) DO UPDATE SET issuer = excluded.issuer, login = excluded.login, login_folded = excluded.login_folded`,
			id, l.Issuer, issuer, l.Login, folded)
		return err
	})
}

// DeleteExternalLogin implements user.LoginStore.
func (s Users) DeleteExternalLogin(ctx context.Context, id, issuer string) error {
	return s.Atomic(ctx, lock.User(id), func(ctx context.Context) error {
		if err := s.setWords(ctx, id, sourceExternal+issuer, nil); err != nil {
			return err
		}
		_, err := s.exec(ctx, "DELETE FROM external_logins WHERE user_id = $1 AND issuer_folded = $2", id, issuer)
		return err
	})
}

// NameOf implements user.NameStore.
func (s Users) NameOf(ctx context.Context, id string) (map[string]string, error) {
	list, err := all(ctx, s.DB, func(r row) (c [2]string, err error) {
		err = r.Scan(&c[0], &c[1])
		return c, err
	}, "SELECT oid, value FROM name_components WHERE user_id = $1", id)
	values := make(map[string]string, len(list))
	for _, c := range list {
		values[c[0]] = c[1]
	}
	return values, err
}

var (
	addNames      = newInsertion(1, "distinguished_names", "user_id, name, name_folded, name_key, unique_key", "")
	addComponents = newInsertion(1, "name_components", "user_id, oid, value", "")
)

// AddName implements user.NameStore.
func (s Users) AddName(ctx context.Context, id string, n user.Name) error {
	return s.name(ctx, id, n, func(ctx context.Context, unique []byte) error {
		if _, err := s.insert(ctx, addNames, id, n.Text, n.Folded, n.Key[:], unique); err != nil {
			return err
		}
		return s.addWords(ctx, id, sourceName, wordsOf(n))
	})
}

// SetName implements user.NameStore.
func (s Users) SetName(ctx context.Context, id string, n user.Name) error {
	return s.name(ctx, id, n, func(ctx context.Context, unique []byte) error {
		if _, err := s.exec(ctx, `INSERT INTO distinguished_names (user_id, name, name_folded, name_key, unique_key) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (user_id) DO UPDATE SET name = excluded.name, name_folded = excluded.name_folded, name_key = excluded.name_key, unique_key = excluded.unique_key`,
			id, n.Text, n.Folded, n.Key[:], unique); err != nil {
			return err
		}
		if _, err := s.exec(ctx, "DELETE FROM name_components WHERE user_id = $1", id); err != nil {
			return err
		}
		return s.setWords(ctx, id, sourceName, wordsOf(n))
	})
}

// name gives a user a name. put writes what is not a component; unique is the key of a name that
// must be unique, nil for others.
func (s Users) name(ctx context.Context, id string, n user.Name, put func(ctx context.Context, unique []byte) error) error {
	return s.Atomic(ctx, lock.User(id), func(ctx context.Context) error {
		var unique []byte
		if n.Unique {
			unique = n.Key[:]
			// Checked by the key of all names, not of the unique ones, because some names
			// may be older than the setting that makes them unique.
			_, taken, err := one(ctx, s.DB, scalar[string], "SELECT user_id FROM distinguished_names WHERE name_key = $1 AND user_id <> $2", unique, id)
			if err != nil {
				return err
			}
			if taken {
				return user.ErrDuplicate
			}
		}
		if err := put(ctx, unique); err != nil {
			return err
		}
		for _, oid := range slices.Sorted(maps.Keys(n.Values)) {
			if _, err := s.insert(ctx, addComponents, id, oid, n.Values[oid]); err != nil {
				return err
			}
		}
		return nil
	})
}

// NameTaken implements user.NameStore.
func (s Users) NameTaken(ctx context.Context, key [sha256.Size]byte, operatorID string, now time.Time) (bool, error) {
	if operatorID == "" {
		_, found, err := one(ctx, s.DB, scalar[int64], "SELECT 1 FROM distinguished_names WHERE name_key = $1 LIMIT 1", key[:])
		return found, err
	}
	_, found, err := one(ctx, s.DB, scalar[int64], `SELECT 1 FROM distinguished_names n JOIN users u ON u.id = n.user_id
		WHERE n.name_key = $3 AND `+reaches+" LIMIT 1", operatorID, millis(now), key[:])
	return found, err
}
