// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

// Users implements the stores of user.Service.
type Users struct{ *DB }

var (
	_ user.Store       = Users{}
	_ user.GroupStore  = Users{}
	_ user.LoginStore  = Users{}
	_ user.NameStore   = Users{}
	_ user.SearchStore = Users{}
	_ user.ZoneStore   = Users{}
)

// Atomic implements user.Store; see DB.locked.
func (s Users) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

const userColumns = "u.id, u.login, u.display_name, u.group_name, u.operator, u.locked, u.lock_at, u.unapproved, u.created_at"

func scanUser(r row) (u user.User, err error) {
	err = r.Scan(userFields(&u)...)
	return u, err
}

// userFields returns the destinations of userColumns, in their order.
func userFields(u *user.User) []any {
	return []any{&u.ID, &u.Login, &u.DisplayName, &u.Group, &u.Operator, &u.Locked, (*timeField)(&u.LockAt), &u.Unapproved, (*timeField)(&u.CreatedAt)}
}

// barred is user.User.Barred in SQL, for the user of the table alias name at the time now, which
// is an SQL argument such as $2.
func barred(name, now string) string {
	return fmt.Sprintf("(%[1]s.locked OR %[1]s.unapproved OR %[1]s.lock_at <> 0 AND %[1]s.lock_at <= %[2]s)", name, now)
}

// AddUser implements user.Store.
func (s Users) AddUser(ctx context.Context, u user.User, folded string) error {
	if err := s.groupExists(ctx, u.Group); err != nil {
		return err
	}
	n := int64(0)
	err := s.Atomic(ctx, lock.User(u.ID).Logins(folded), func(ctx context.Context) (err error) {
		if n, err = s.insertUser(ctx, u, folded); err != nil || n == 0 {
			return err
		}
		if err = s.addWords(ctx, u.ID, sourceLogin, user.SearchWords(u.Login)); err != nil {
			return err
		}
		return s.addWords(ctx, u.ID, sourceShown, user.SearchWords(u.DisplayName))
	})
	if err == nil && n == 0 {
		return user.ErrDuplicate
	}
	return err
}

var addUsers = newInsertion(0, "users", "id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at", ifFree)

func (s Users) insertUser(ctx context.Context, u user.User, folded string) (int64, error) {
	return s.insert(ctx, addUsers,
		u.ID, u.Login, user.LoginKey(u.ID, folded), u.DisplayName, u.Group, u.Operator, u.Locked, millis(u.LockAt), u.Unapproved, millis(u.CreatedAt))
}

func (s Users) groupExists(ctx context.Context, name string) error {
	found, err := remembered(ctx, s.DB, "group "+name, func() (bool, error) {
		_, found, err := one(ctx, s.DB, scalar[string], "SELECT name FROM user_groups WHERE name = $1", name)
		return found, err
	})
	if err == nil && !found {
		return user.ErrNoGroup
	}
	return err
}

// UserByID implements user.Store.
func (s Users) UserByID(ctx context.Context, id string) (user.User, error) {
	return s.find(ctx, "u.id = $1", id)
}

// UserByLogin implements user.Store.
func (s Users) UserByLogin(ctx context.Context, folded string) (user.User, error) {
	return s.find(ctx, "u.login_folded = $1 AND u.login <> ''", folded)
}

// UsersByLogins implements user.BatchStore.
func (s Users) UsersByLogins(ctx context.Context, folded []string) (list []user.User, err error) {
	for len(folded) > 0 {
		args := make([]any, loginPortion)
		for i := range args {
			args[i] = folded[min(i, len(folded)-1)] // the last one fills up
		}
		part, err := all(ctx, s.DB, scanUser, usersByLogins, args...)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
		folded = folded[min(loginPortion, len(folded)):]
	}
	return list, nil
}

// loginPortion is the number of logins that one statement looks up.
const loginPortion = 50

var usersByLogins = func() string {
	_, isOne := among(nil, make([]string, loginPortion))
	return "SELECT " + userColumns + " FROM users u WHERE u.login <> '' AND u.login_folded " + isOne
}()

func (s Users) find(ctx context.Context, condition, arg string) (user.User, error) {
	u, found, err := one(ctx, s.DB, scanUser, "SELECT "+userColumns+" FROM users u WHERE "+condition, arg)
	if err == nil && !found {
		err = user.ErrNotFound
	}
	return u, err
}

// ListUsers implements user.Store.
func (s Users) ListUsers(ctx context.Context, q user.Query) ([]user.User, error) {
	if q.Groups != nil && len(q.Groups) == 0 {
		return nil, nil
	}
	query := "SELECT " + userColumns + " FROM users u WHERE u.login_folded > $1"
	args := []any{q.After, q.Limit}
	if q.Groups != nil {
		var isOne string
		args, isOne = among(args, q.Groups)
		query += " AND u.group_name " + isOne
	}
	return all(ctx, s.DB, scanUser, query+" ORDER BY u.login_folded LIMIT $2", args...)
}

// SetLock implements user.Store. The lock of a directory ends with it: a synchronization lifts no lock that was set later.
func (s Users) SetLock(ctx context.Context, id string, locked bool, at time.Time) error {
	return s.Unit(ctx, func(ctx context.Context) error {
		if err := s.change(ctx, "UPDATE users SET locked = $2, lock_at = $3 WHERE id = $1", id, locked, millis(at)); err != nil {
			return err
		}
		_, err := s.exec(ctx, "UPDATE directory_users SET barred = TRUE, locked = FALSE WHERE user_id = $1 AND locked", id)
		return err
	})
}

// SetUnapproved implements user.Store.
func (s Users) SetUnapproved(ctx context.Context, id string, unapproved bool) error {
	return s.change(ctx, "UPDATE users SET unapproved = $2 WHERE id = $1", id, unapproved)
}

// SetGroup implements user.Store.
func (s Users) SetGroup(ctx context.Context, id, group string) error {
	if err := s.groupExists(ctx, group); err != nil {
		return err
	}
	return s.change(ctx, "UPDATE users SET group_name = $2 WHERE id = $1", id, group)
}

// SetLogin implements user.LoginStore.
func (s Users) SetLogin(ctx context.Context, id, login, folded string) error {
	return s.Atomic(ctx, lock.User(id).Logins(folded), func(ctx context.Context) error {
		// Check first: a violated constraint would end a PostgreSQL transaction.
		owner, found, err := one(ctx, s.DB, scalar[string], "SELECT id FROM users WHERE login_folded = $1", user.LoginKey(id, folded))
		if err != nil {
			return err
		}
		if found && owner != id {
			return user.ErrDuplicate
		}
		if err := s.change(ctx, "UPDATE users SET login = $2, login_folded = $3 WHERE id = $1", id, login, user.LoginKey(id, folded)); err != nil {
			return err
		}
		return s.setWords(ctx, id, sourceLogin, user.SearchWords(login))
	})
}

// DeleteUser implements user.Store. Rows that refer to the user are deleted too.
func (s Users) DeleteUser(ctx context.Context, id string) error {
	return s.Unit(ctx, func(ctx context.Context) error {
		if err := s.noteDeleted(ctx, "k.user_id = $1", id); err != nil {
			return err
		}
		if err := s.dropWords(ctx, id, func(string) bool { return true }); err != nil {
			return err
		}
		return s.change(ctx, "DELETE FROM users WHERE id = $1", id)
	})
}

// SetDisplayName implements user.Store.
func (s Users) SetDisplayName(ctx context.Context, id, name string) error {
	return s.Atomic(ctx, lock.User(id), func(ctx context.Context) error {
		if err := s.change(ctx, "UPDATE users SET display_name = $2 WHERE id = $1", id, name); err != nil {
			return err
		}
		return s.setWords(ctx, id, sourceShown, user.SearchWords(name))
	})
}

// TimeZone implements user.ZoneStore and notify.Zones.
func (s Users) TimeZone(ctx context.Context, id string) (string, error) {
	name, _, err := one(ctx, s.DB, scalar[string], "SELECT time_zone FROM users WHERE id = $1", id)
	return name, err
}

// SetTimeZone implements user.ZoneStore.
func (s Users) SetTimeZone(ctx context.Context, id, name string) error {
	return s.change(ctx, "UPDATE users SET time_zone = $2 WHERE id = $1", id, name)
}

func (s Users) change(ctx context.Context, query string, args ...any) error {
	n, err := s.exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = user.ErrNotFound
	}
	return err
}

// SetOperatorGroups implements user.GroupStore.
func (s Users) SetOperatorGroups(ctx context.Context, id string, groups []string) error {
	return s.Atomic(ctx, lock.User(id), func(ctx context.Context) error {
		if _, err := s.exec(ctx, "DELETE FROM operator_groups WHERE user_id = $1", id); err != nil {
			return err
		}
		for _, g := range groups {
			if err := s.groupExists(ctx, g); err != nil {
				return err
			}
			if _, err := s.exec(ctx, "INSERT INTO operator_groups (user_id, group_name) VALUES ($1, $2)", id, g); err != nil {
				return err
			}
		}
		return nil
	})
}

// OperatorGroups implements user.GroupStore.
func (s Users) OperatorGroups(ctx context.Context, id string) ([]string, error) {
	return all(ctx, s.DB, scalar[string], "SELECT group_name FROM operator_groups WHERE user_id = $1 ORDER BY group_name", id)
}

// Operators implements user.GroupStore. Each operator is responsible for a group, so the statement reads no other users.
func (s Users) Operators(ctx context.Context) ([]user.User, error) {
	return all(ctx, s.DB, scanUser, "SELECT "+userColumns+" FROM users u WHERE u.operator AND u.id IN (SELECT user_id FROM operator_groups) ORDER BY u.login_folded")
}

// AddGroup implements user.GroupStore.
func (s Users) AddGroup(ctx context.Context, g user.Group) error {
	n, err := s.exec(ctx, "INSERT INTO user_groups (name, title, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		g.Name, g.Title, millis(g.CreatedAt))
	if err == nil && n == 0 {
		return user.ErrDuplicate
	}
	return err
}

// RenameGroup implements user.GroupStore. The name is the key, so the records move to a new one.
func (s Users) RenameGroup(ctx context.Context, name, to string) error {
	return s.DB.Atomic(ctx, func(ctx context.Context) error {
		if _, found, err := one(ctx, s.DB, scalar[string], "SELECT name FROM user_groups WHERE name = $1", name); err != nil || !found {
			return cmp.Or(err, user.ErrNoGroup)
		}
		n, err := s.exec(ctx, `INSERT INTO user_groups (name, title, created_at)
			SELECT $2, title, created_at FROM user_groups WHERE name = $1 ON CONFLICT DO NOTHING`, name, to)
		if err == nil && n == 0 {
			err = user.ErrDuplicate
		}
		for _, query := range []string{
			"UPDATE users SET group_name = $2 WHERE id IN (SELECT id FROM users WHERE group_name = $1" + s.inOrder("id") + ")",
			"UPDATE operator_groups SET group_name = $2 WHERE group_name = $1",
			"UPDATE group_policies SET group_name = $2 WHERE group_name = $1",
		} {
			if err == nil {
				_, err = s.exec(ctx, query, name, to)
			}
		}
		if err == nil {
			_, err = s.exec(ctx, "DELETE FROM user_groups WHERE name = $1", name)
		}
		return err
	})
}

// DeleteGroup implements user.GroupStore.
func (s Users) DeleteGroup(ctx context.Context, name string) error {
	return s.DB.Atomic(ctx, func(ctx context.Context) error {
		used, found, err := one(ctx, s.DB, scalar[bool], `SELECT EXISTS (SELECT 1 FROM users WHERE group_name = $1)
			OR EXISTS (SELECT 1 FROM operator_groups WHERE group_name = $1) FROM user_groups WHERE name = $1`, name)
		switch {
		case err != nil:
			return err
		case !found:
			return user.ErrNoGroup
		case used:
			return user.ErrGroupUsed
		}
		_, err = s.exec(ctx, "DELETE FROM user_groups WHERE name = $1", name)
		return err
	})
}

// Groups implements user.GroupStore.
func (s Users) Groups(ctx context.Context) ([]user.Group, error) { return s.GroupsAfter(ctx, "", 0) }

// GroupsAfter implements user.GroupStore.
func (s Users) GroupsAfter(ctx context.Context, after string, limit int) ([]user.Group, error) {
	return all(ctx, s.DB, scanGroup, "SELECT name, title, created_at FROM user_groups WHERE name > $1 ORDER BY name LIMIT $2", after, atMost(limit))
}

// atMost returns the limit of a statement, where 0 means all rows.
func atMost(limit int) int { return cmp.Or(limit, math.MaxInt32) }

// Group implements user.GroupStore.
func (s Users) Group(ctx context.Context, name string) (user.Group, error) {
	g, found, err := one(ctx, s.DB, scanGroup, "SELECT name, title, created_at FROM user_groups WHERE name = $1", name)
	if err == nil && !found {
		err = user.ErrNoGroup
	}
	return g, err
}

func scanGroup(r row) (g user.Group, err error) {
	err = r.Scan(&g.Name, &g.Title, (*timeField)(&g.CreatedAt))
	return g, err
}
