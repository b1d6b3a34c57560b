// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/user"
)

// searchColumn is a column in SQL. The conditions on it and the queries that begin with it are
// made of these parts. Nothing of a request becomes part of the SQL.
type searchColumn struct {
	// table has the values, in rows x that each belong to a user. Without it they are in the
	// row u of the user.
	table string
	// test is the condition on a row, with %[1]s for the comparison with the value. Boolean
	// columns have only a condition.
	test string
	// order is the sort expression, and tables are the tables it needs besides users.
	order, tables string
	// indexed columns have the users of one value in an index. Of crowded ones a value may have
	// many users.
	indexed, crowded bool
}

var searchColumns = map[user.Column]searchColumn{
	user.ColumnLogin:          {test: "(u.login <> '' AND u.login_folded %[1]s)", order: "u.login_folded", indexed: true},
	user.ColumnPhoneNumber:    {"contacts", ofType(contact.PhoneNumber) + "x.normal %[1]s", "COALESCE(p.normal, '')", phoneTable, true, false},
	user.ColumnPhoneConfirmed: {"contacts", ofType(contact.PhoneNumber) + "x.confirmed AND x.normal = " + shown(contact.PhoneNumber), "COALESCE(p.confirmed, FALSE)", phoneTable, false, false},
	user.ColumnEmail:          {"contacts", ofType(contact.EmailAddress) + "x.normal %[1]s", "COALESCE(e.normal, '')", emailTable, true, false},
	user.ColumnEmailConfirmed: {"contacts", ofType(contact.EmailAddress) + "x.confirmed AND x.normal = " + shown(contact.EmailAddress), "COALESCE(e.confirmed, FALSE)", emailTable, false, false},
	user.ColumnRdn:            {"distinguished_names", "x.name_folded %[1]s", "COALESCE(n.name_folded, '')", nameTable, false, false},
	user.ColumnGroup:          {test: "COALESCE(u.group_name %[1]s, FALSE)", order: "u.group_name"},
	user.ColumnAuthMethod:     {table: "user_methods", test: "x.method %[1]s", indexed: true, crowded: true},
	user.ColumnIsLocked:       {test: barredNow, order: barredNow},
	user.ColumnLastLogin:      {test: "u.last_login_at %[1]s", order: "u.last_login_at"},
	user.ColumnCreated:        {test: "u.created_at %[1]s", order: "u.created_at"},
	user.ColumnTokenSerial:    {table: "oath_tokens", test: "x.serial_key %[1]s", indexed: true},
	user.ColumnTokenType:      {table: "oath_tokens", test: "LOWER(x.type) %[1]s"},
}

func ofType(typ contact.Type) string { return "x.type = '" + string(typ) + "' AND " }

// ofUser is the condition on the user u. Of few users each is looked up by itself.
func (c searchColumn) ofUser(few bool) string {
	query := "SELECT 1 FROM " + c.table + " x WHERE x.user_id = u.id AND " + c.test
	switch {
	case c.table == "":
		return c.test
	case few:
		return onePerRow(query)
	}
	return "EXISTS (" + query + ")"
}

// usersFirst is for selected: no column comes first.
const usersFirst = -1

// selected returns the condition that the operator $1 reaches the user u at the time $2 and
// that all conditions hold, with its arguments, and the tables of a query. The query begins with
// the column of the condition with the number first, or with users. reach is one of reached,
// reachedAlong and reaches. few is for queries that find few users before the other conditions.
func selected(reach string, few bool, operatorID string, conditions []user.Condition, first int, now time.Time) (from, where string, args []any, err error) {
	from, where, args = "users u", reach, []any{operatorID, millis(now)}
	for i, c := range conditions {
		column, known := searchColumns[c.Column]
		if !known {
			return "", "", nil, fmt.Errorf("store: column %d is not searched", c.Column)
		}
		test := column.ofUser(few)
		if i == first && column.table != "" {
			from, test = column.table+" x CROSS JOIN users u", "x.user_id = u.id AND "+column.test
		}
		if column.compared() {
			var compared string
			compared, args = comparison(c, args)
			test = fmt.Sprintf(test, compared)
		}
		if negated(c) {
			test = "NOT " + test
		}
		where += " AND " + test
	}
	return from, where, args, nil
}

// compared reports whether the column is compared with a value.
func (c searchColumn) compared() bool { return strings.Contains(c.test, "%[1]s") }

// negated reports whether a condition selects the users for whom the comparison does not hold. "Not
// equal" is the negation of "equal": none of several contacts is equal.
func negated(c user.Condition) bool {
	wanted := c.Truth || searchColumns[c.Column].compared()
	return wanted == (c.Operation == user.NotEqual)
}

// mostWalks is the number of groups that UsersAfter walks along one by one.
const mostWalks = user.MostWalks

// exact returns the number of a condition whose users are in an index and are few, usersFirst
// without such a condition.
func (s Users) exact(ctx context.Context, conditions []user.Condition) (int, error) {
	for i, c := range conditions {
		column := searchColumns[c.Column]
		if c.Operation != user.Equal || !column.indexed {
			continue
		}
		if column.crowded {
			n, _, err := one(ctx, s.DB, scalar[int64], "SELECT COUNT(*) FROM (SELECT 1 FROM "+column.table+" x WHERE "+fmt.Sprintf(column.test, "= $1")+" LIMIT $2) AS counted", c.Text, mostFew+1)
			if err != nil {
				return usersFirst, err
			}
			if n > mostFew {
				continue
			}
		}
		return i, nil
	}
	return usersFirst, nil
}

// UsersAfter implements user.SearchStore. If an index has the value of a condition, it begins
// there, however many users there are. Otherwise it walks along the index of each group from the
// key on, and merges the walks. An operator of more groups reaches a good part of all users,
// so there the index of logins alone finds a page soon. If few users match, a walk would read
// all of them. So it first finds the key that ends the walk.
func (s Users) UsersAfter(ctx context.Context, operatorID string, groups []string, conditions []user.Condition, after string, limit, most int, now time.Time) ([]user.Info, string, error) {
	exact, err := s.exact(ctx, conditions)
	if err != nil {
		return nil, "", err
	}
	if exact != usersFirst {
		from, where, args, err := selected(reaches, true, operatorID, conditions, exact, now)
		if err != nil {
			return nil, "", err
		}
		args = append(args, after, limit)
		users, err := s.page(ctx, walkAlong(from, fmt.Sprintf("%s AND u.login_folded > $%d", where, len(args)-1), len(args)), args)
		return users, "", err
	}
	alone := len(groups) <= mostWalks // each group by itself
	few := len(conditions) == 0 && alone || s.engine == postgresEngine
	reach := reached
	switch {
	case few:
		reach = reaches
	case !alone:
		// SQLite would seek in the index of every group, thousands of times, instead of
		// walking along the few logins. To look up the group of each user would take longer.
		reach = reachedAlong
	}
	from, where, args, err := selected(reach, few, operatorID, conditions, usersFirst, now)
	if err != nil {
		return nil, "", err
	}
	args = append(args, after)
	where += fmt.Sprintf(" AND u.login_folded > $%d", len(args))
	last := ""
	if len(conditions) > 0 || !alone {
		if last, err = s.lastKey(ctx, groups, after, most); err != nil {
			return nil, "", err
		}
		if last != "" {
			args = append(args, last)
			where += fmt.Sprintf(" AND u.login_folded <= $%d", len(args))
		}
	}
	args = append(args, limit)
	end := len(args)
	page := walkAlong(from, where, end)
	if alone {
		var walks []string
		for i, g := range groups {
			args = append(args, g)
			walks = append(walks, fmt.Sprintf("SELECT * FROM (%s) AS walk%d", walkAlong(from, fmt.Sprintf("%s AND u.group_name = $%d", where, len(args)), end), i))
		}
		page = "SELECT * FROM (" + strings.Join(walks, " UNION ALL ") + ") AS walks ORDER BY place LIMIT $" + strconv.Itoa(end)
	}
	users, err := s.page(ctx, page, args)
	return users, last, err
}

// mostFound is the number of rows that UsersFound reads of a column, in a tenth of a second. If more
// fit, a walk along the users finds a page soon.
const mostFound = 10_000

// UsersFound implements user.SearchStore. One column is read in the order of its table, which is
// ten times faster than to look up its value for each user in the order of keys. The users whom it
// selects are looked up, those outside of the reach, too. They are not counted: what is found depends
// on the users within reach alone.
func (s Users) UsersFound(ctx context.Context, operatorID string, groups []string, conditions []user.Condition, after string, limit, more int, now time.Time) ([]user.Info, bool, error) {
	first := rarest(conditions)
	if first == usersFirst {
		return nil, false, nil
	}
	if more > 0 {
		if last, err := s.lastKey(ctx, groups, after, more); err != nil || last == "" {
			return nil, false, err
		}
	}
	from, where, args, err := selected(reachedAlong, true, operatorID, conditions, first, now)
	if err != nil {
		return nil, false, err
	}
	key := "u.login_folded"
	if conditions[first].Column != user.ColumnLogin {
		key = "COALESCE(u.login_folded, '')" // not by the index of logins
	}
	args = append(args, after, mostFound+1)
	type place struct{ key, id string }
	places, err := allUnprepared(ctx, s.DB, func(r row) (p place, err error) {
		err = r.Scan(&p.key, &p.id)
		return p, err
	}, fmt.Sprintf("SELECT u.login_folded, u.id FROM %s WHERE %s AND %s > $%d LIMIT $%d", from, where, key, len(args)-1, len(args)), args...)
	if err != nil || len(places) > mostFound {
		return nil, false, err
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.key, b.key) })
	places = slices.Compact(places) // a user may have several values that fit
	at := map[string]int{}
	var users []user.Info
	for len(users) < limit && len(places) > 0 {
		var ids []string
		for _, p := range places[:min(limit-len(users), len(places))] {
			at[p.id], ids = len(at), append(ids, p.id)
		}
		places = places[len(ids):] // some of these may have gone since
		some, err := s.InfosByID(ctx, operatorID, ids, now)
		if err != nil {
			return nil, false, err
		}
		users = append(users, some...)
	}
	slices.SortFunc(users, func(a, b user.Info) int { return at[a.ID] - at[b.ID] })
	return users, true, nil
}

// rarest returns the number of the condition that selects the fewest users as far as can be told:
// the one with the longest text. A negated one selects nearly everybody. UsersAfter walks along the
// groups of one on groups, and which contact is shown must be looked up for each user.
func rarest(conditions []user.Condition) int {
	first := usersFirst
	for i, c := range conditions {
		column := searchColumns[c.Column]
		if negated(c) || c.Column == user.ColumnGroup || column.table != "" && !column.compared() {
			continue
		}
		if first == usersFirst || len(c.Text) > len(conditions[first].Text) {
			first = i
		}
	}
	return first
}

// walkAlong is the query of users in the order of their keys, with the number of the argument that
// limits it.
func walkAlong(from, where string, limit int) string {
	return fmt.Sprintf("SELECT u.id AS id, u.login_folded AS place FROM %s WHERE %s ORDER BY u.login_folded LIMIT $%d", from, where, limit)
}

// page reads the records of the users that a query selects, in the order of its column place.
func (s Users) page(ctx context.Context, query string, args []any) ([]user.Info, error) {
	users, err := allUnprepared(ctx, s.DB, scanInfo,
		"WITH page (id, place) AS ("+query+") SELECT "+infoColumns+infoTables+" JOIN page ON page.id = u.id ORDER BY page.place", args...)
	if err != nil {
		return nil, err
	}
	return users, s.withContacts(ctx, users)
}

// MoreUsers implements user.SearchStore. It reads no more of an index than this number, 4 ms for
// 50,000, and only until there were more.
func (s Users) MoreUsers(ctx context.Context, than int) (bool, error) {
	if s.hadUsers.Load() > int64(than) {
		return true, nil
	}
	_, more, err := one(ctx, s.DB, scalar[string], "SELECT login_folded FROM users ORDER BY login_folded LIMIT 1 OFFSET $1", than)
	if more { // two at once may store the smaller number, which only costs another look
		s.hadUsers.Store(int64(than) + 1)
	}
	return more, err
}

// lastKey returns a key that about most users of the groups have after the key after and
// before this one, "" if there are fewer.
func (s Users) lastKey(ctx context.Context, groups []string, after string, most int) (string, error) {
	one := func(where string) string {
		return "SELECT login_folded FROM users WHERE login_folded > $1" + where + " ORDER BY login_folded LIMIT 1 OFFSET $2"
	}
	args := []any{after, most - 1}
	walks := []string{one("")}
	if n := len(groups); n > 0 && n <= mostWalks {
		args[1], walks = max(most/n, 1)-1, nil
		for _, g := range groups {
			args = append(args, g)
			walks = append(walks, one(fmt.Sprintf(" AND group_name = $%d", len(args))))
		}
	}
	for i, w := range walks {
		walks[i] = fmt.Sprintf("SELECT * FROM (%s) AS walk%d", w, i)
	}
	keys, err := allUnprepared(ctx, s.DB, scalar[string], "SELECT COALESCE(MIN(login_folded), '') FROM ("+strings.Join(walks, " UNION ALL ")+") AS walks", args...)
	if err != nil {
		return "", err
	}
	return keys[0], nil
}

// SearchUsers implements user.SearchStore.
func (s Users) SearchUsers(ctx context.Context, operatorID string, q user.Search, conditions []user.Condition, now time.Time) (user.Found, error) {
	_, where, args, err := selected(reached, false, operatorID, conditions, usersFirst, now)
	if err != nil {
		return user.Found{}, err
	}
	if q.End == q.Start {
		return s.countUsers(ctx, where, args)
	}
	direction := ""
	if q.Descending {
		direction = " DESC"
	}
	order := searchColumns[q.Order]
	args = append(args, q.End-q.Start, q.Start)
	// First select the page by the filter and the order, then the records: most columns
	// are not read for users on other pages.
	query := fmt.Sprintf(`WITH page (id, place, total) AS (
			SELECT u.id, ROW_NUMBER() OVER (ORDER BY %[1]s%[2]s, u.id%[2]s), COUNT(*) OVER () FROM users u%[3]s WHERE %[4]s
			ORDER BY 2 LIMIT $%[5]d OFFSET $%[6]d)
		SELECT %[7]s, page.total%[8]s JOIN page ON page.id = u.id ORDER BY page.place`,
		order.order, direction, order.tables, where, len(args)-1, len(args), infoColumns, infoTables)
	var found user.Found
	users, err := allUnprepared(ctx, s.DB, func(r row) (user.Info, error) { return scanInfo(withTotal{r, &found.Total}) }, query, args...)
	if err == nil && len(users) == 0 && q.Start > 0 {
		return s.countUsers(ctx, where, args[:len(args)-2])
	}
	if err != nil {
		return user.Found{}, err
	}
	found.Users = users
	return found, s.withContacts(ctx, users)
}

// countUsers is a search that asks for no users, or for a page after the last.
func (s Users) countUsers(ctx context.Context, where string, args []any) (user.Found, error) {
	total, err := allUnprepared(ctx, s.DB, scalar[int64], "SELECT COUNT(*) FROM users u WHERE "+where, args...)
	if err != nil {
		return user.Found{}, err
	}
	return user.Found{Total: int(total[0])}, nil
}

// withTotal scans a row that has the total after the columns of a record.
type withTotal struct {
	row
	total *int
}

func (w withTotal) Scan(dest ...any) error { return w.row.Scan(append(dest, w.total)...) }

// comparison returns the comparing part of a condition, and the arguments with its value
// added.
func comparison(c user.Condition, args []any) (string, []any) {
	operator := "="
	if c.Column == user.ColumnGroup {
		marks := []string{"NULL"} // for an empty list
		for _, g := range c.Groups {
			args = append(args, g)
			marks = append(marks, fmt.Sprintf("$%d", len(args)))
		}
		return "IN (" + strings.Join(marks, ", ") + ")", args
	}
	switch c.Operation {
	case user.Greater:
		operator = ">"
	case user.Less:
		operator = "<"
	case user.Like:
		args = append(args, likePattern(c.Parts()))
		return fmt.Sprintf(`LIKE $%d ESCAPE '\'`, len(args)), args
	}
	switch c.Column {
	case user.ColumnLastLogin, user.ColumnCreated:
		args = append(args, millis(c.Time))
	default:
		args = append(args, c.Text)
	}
	return fmt.Sprintf("%s $%d", operator, len(args)), args
}

// among adds values to the arguments of a query and returns the condition that a column has one of
// them. There is at least one.
func among[T any](args []any, values []T) (_ []any, isOne string) {
	marks := make([]string, len(values))
	for i, v := range values {
		args = append(args, v)
		marks[i] = "$" + strconv.Itoa(len(args))
	}
	return args, "IN (" + strings.Join(marks, ", ") + ")"
}

// likePattern joins parts by a wildcard for any text. Special characters of LIKE in parts
// are escaped.
func likePattern(parts []string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
	for i, p := range parts {
		parts[i] = escaped.Replace(p)
	}
	return strings.Join(parts, "%")
}
