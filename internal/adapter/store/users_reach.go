// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"time"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/user"
)

// ActingGroups implements user.Store and approval.Store.
func (db *DB) ActingGroups(ctx context.Context, operatorID string, limit int, now time.Time) ([]string, error) {
	return all(ctx, db, scalar[string], `SELECT g.group_name FROM operator_groups g JOIN users o ON o.id = g.user_id
		WHERE g.user_id = $1 AND o.operator AND NOT `+barred("o", "$2")+` ORDER BY g.group_name LIMIT $3`, operatorID, millis(now), atMost(limit))
}

// reached is the condition that the operator $1 reaches the user u at the time $2: the
// operator is active and has the group of u. If u is an operator too, u must have no
// group that the operator $1 does not have. It begins with the groups of the operator and is for
// queries that look for users. See reaches for the others.
var reached = reachedIn("u.group_name")

// reachedAlong is reached for walks along the keys of users. No index has its expression, so SQLite
// does not seek in the index of every group.
var reachedAlong = reachedIn("COALESCE(u.group_name, '')")

// reachedIn is reached with an SQL expression for the group of the user.
func reachedIn(group string) string {
	return group + ` IN (SELECT g.group_name FROM operator_groups g JOIN users o ON o.id = g.user_id
		WHERE g.user_id = $1 AND o.operator AND NOT ` + barred("o", "$2") + ")" + notAbove("$1")
}

// reaches is reached for queries that have found the user u already: it looks up the group of u
// instead of reading all groups of the operator, who may have thousands.
var reaches = reachesBy("$1")

// people begins a query with the users whom the operator $1 reaches at the time $2. It is for
// operators of few users. All parts of the query share the users, and the state of the operator is
// read once, where reaches reads it for each user. The index of groups has all that is read of them.
var people = `WITH people AS MATERIALIZED (SELECT u.id AS id
	FROM operator_groups r CROSS JOIN users o CROSS JOIN users u
	WHERE r.user_id = $1 AND o.id = r.user_id AND o.operator AND NOT ` + barred("o", "$2") + " AND u.group_name = r.group_name" + notAbove("$1") + ") "

// reachesBy is reaches with an SQL expression for the operator.
func reachesBy(operator string) string {
	return onePerRow(`SELECT 1 FROM operator_groups g JOIN users o ON o.id = g.user_id
		WHERE g.user_id = `+operator+` AND g.group_name = u.group_name AND o.operator AND NOT `+barred("o", "$2")) + notAbove(operator)
}

// onePerRow is the condition that a query finds 1, as EXISTS is. PostgreSQL turns EXISTS into a join
// that may begin with the other table and read all of it. A value it looks up for each row.
func onePerRow(query string) string { return "(" + query + " LIMIT 1) IS NOT NULL" }

// notAbove is the condition that the user u is no operator of a group that the operator lacks. An
// operator is not compared with themselves: to look for each of thousands of groups takes 10 ms.
func notAbove(operator string) string {
	mine := onePerRow("SELECT 1 FROM operator_groups mine WHERE mine.group_name = theirs.group_name AND mine.user_id = " + operator)
	return `
	AND (NOT u.operator OR u.id = ` + operator + ` OR NOT ` + onePerRow("SELECT 1 FROM operator_groups theirs WHERE theirs.user_id = u.id AND NOT "+mine) + ")"
}

// mostFew is the largest number of users that count as few for a list of what waits.
const mostFew = 2_000

// reachesFew reports whether an operator has few users. A list of what waits begins with these
// users. The list of another operator walks along all that waits, and finds a page soon.
func (db *DB) reachesFew(ctx context.Context, operatorID string) (bool, error) {
	n, _, err := one(ctx, db, scalar[int64], `SELECT COUNT(*) FROM (SELECT 1 FROM operator_groups r CROSS JOIN users u
		WHERE r.user_id = $1 AND u.group_name = r.group_name LIMIT $2) AS counted`, operatorID, mostFew+1)
	return n <= mostFew, err
}

// Reachable implements reach.Store.
func (s Users) Reachable(ctx context.Context, operatorID, userID string, now time.Time) (bool, error) {
	_, found, err := one(ctx, s.DB, scalar[int64], "SELECT 1 FROM users u WHERE u.id = $3 AND "+reaches, operatorID, millis(now), userID)
	return found, err
}

// shownFirst orders the contacts of a user. Lists show the first of each type: the one
// that the user signs in with, otherwise the one that receives codes, otherwise the
// oldest.
const shownFirst = "is_primary DESC, secondary_auth DESC, created_at, normal"

// shown selects the contact of a type that lists show for the user u.
func shown(typ contact.Type) string {
	return `(SELECT s.normal FROM contacts s WHERE s.user_id = u.id AND s.type = '` + string(typ) + `'
		ORDER BY ` + shownFirst + ` LIMIT 1)`
}

// infoColumns are the columns of user.Info at the time $2 without the contacts, which
// withContacts adds. infoTables are their tables.
var (
	infoColumns = `u.id, u.login, u.display_name, u.group_name, u.created_at, u.lock_at, u.last_login_at,
	` + barredNow + `, u.unapproved, u.operator, COALESCE(n.name, '')`
	infoTables = " FROM users u" + nameTable
	nameTable  = " LEFT JOIN distinguished_names n ON n.user_id = u.id"
	phoneTable = " LEFT JOIN contacts p ON p.user_id = u.id AND p.type = '" + string(contact.PhoneNumber) + "' AND p.normal = " + shown(contact.PhoneNumber)
	emailTable = " LEFT JOIN contacts e ON e.user_id = u.id AND e.type = '" + string(contact.EmailAddress) + "' AND e.normal = " + shown(contact.EmailAddress)

	// barredNow adds the automatic locks after wrong passwords, of untrusted or of trusted callers, to
	// barred of the user u.
	barredNow = "(" + barred("u", "$2") + " OR EXISTS (SELECT 1 FROM user_failures f WHERE f.user_id = u.id AND f.locked_until > $2)" +
		" OR EXISTS (SELECT 1 FROM trusted_user_failures f WHERE f.user_id = u.id AND f.locked_until > $2))"
)

func scanInfo(r row) (i user.Info, err error) {
	err = r.Scan(&i.ID, &i.Login, &i.DisplayName, &i.Group, (*timeField)(&i.CreatedAt), (*timeField)(&i.LockedAt), (*timeField)(&i.LastLoginAt),
		&i.Locked, &i.Unapproved, &i.Operator, &i.Name)
	return i, err
}

// contactsAtOnce is the number of users whose contacts one query selects.
const contactsAtOnce = 500

// withContacts sets the contacts that lists show. It uses one query for many users: a
// subquery for each user would read an index four times for each.
func (s Users) withContacts(ctx context.Context, users []user.Info) error {
	at := make(map[string]*user.Info, len(users))
	for i := range users {
		at[users[i].ID] = &users[i]
	}
	for some := range slices.Chunk(users, contactsAtOnce) {
		ids := make([]string, len(some))
		for i, u := range some {
			ids[i] = u.ID
		}
		args, isOne := among(nil, ids)
		contacts, err := allUnprepared(ctx, s.DB, scanShown, `SELECT user_id, type, value, confirmed FROM (
				SELECT user_id, type, value, confirmed, ROW_NUMBER() OVER (PARTITION BY user_id, type
					ORDER BY `+shownFirst+`) AS place
				FROM contacts WHERE user_id `+isOne+`) AS c
			WHERE place = 1`, args...)
		if err != nil {
			return err
		}
		for _, c := range contacts {
			switch u := at[c.UserID]; c.Type {
			case contact.PhoneNumber:
				u.PhoneNumber, u.PhoneConfirmed = c.Value, c.Confirmed
			case contact.EmailAddress:
				u.Email, u.EmailConfirmed = c.Value, c.Confirmed
			}
		}
	}
	return nil
}

func scanShown(r row) (c contact.Contact, err error) {
	err = r.Scan(&c.UserID, &c.Type, &c.Value, &c.Confirmed)
	return c, err
}

// InfosByID implements user.SearchStore.
func (s Users) InfosByID(ctx context.Context, operatorID string, ids []string, now time.Time) ([]user.Info, error) {
	var users []user.Info
	for some := range slices.Chunk(ids, contactsAtOnce) {
		args, isOne := among([]any{operatorID, millis(now)}, some)
		found, err := allUnprepared(ctx, s.DB, scanInfo, "SELECT "+infoColumns+infoTables+" WHERE u.id "+isOne+" AND "+reaches, args...)
		if err != nil {
			return nil, err
		}
		users = append(users, found...)
	}
	return users, s.withContacts(ctx, users)
}

// Logins returns the logins of users by their identifiers. Users without a login and identifiers
// that are not of users are missing.
func (s Users) Logins(ctx context.Context, ids []string) (map[string]string, error) {
	type named struct{ id, login string }
	logins := make(map[string]string, len(ids))
	for some := range slices.Chunk(ids, contactsAtOnce) {
		args, isOne := among(nil, some)
		found, err := allUnprepared(ctx, s.DB, func(r row) (n named, err error) {
			err = r.Scan(&n.id, &n.login)
			return n, err
		}, "SELECT id, login FROM users WHERE login <> '' AND id "+isOne, args...)
		if err != nil {
			return nil, err
		}
		for _, n := range found {
			logins[n.id] = n.login
		}
	}
	return logins, nil
}

// InfoByID implements user.SearchStore.
func (s Users) InfoByID(ctx context.Context, operatorID, id string, now time.Time) (user.Info, error) {
	i, found, err := one(ctx, s.DB, scanInfo, "SELECT "+infoColumns+infoTables+" WHERE u.id = $3 AND "+reaches, operatorID, millis(now), id)
	if err != nil {
		return user.Info{}, err
	}
	if !found {
		return user.Info{}, user.ErrNotFound
	}
	alone := []user.Info{i}
	err = s.withContacts(ctx, alone)
	return alone[0], err
}
