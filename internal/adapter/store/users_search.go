// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/user"
)

// searchColumns map columns to SQL. test is the condition, with %[1]s for the comparison
// with the value. order is the sort expression, and tables are the tables it needs
// besides users. Boolean columns have only a condition. Nothing of a request becomes part
// of the SQL.
var searchColumns = map[user.Column]struct{ test, order, tables string }{
	user.ColumnLogin:          {"(u.login <> '' AND u.login_folded %[1]s)", "u.login_folded", ""},
	user.ColumnPhoneNumber:    {hasContact(contact.PhoneNumber, "x.normal %[1]s"), "COALESCE(p.normal, '')", phoneTable},
	user.ColumnPhoneConfirmed: {hasContact(contact.PhoneNumber, "x.confirmed AND x.normal = "+shown(contact.PhoneNumber)), "COALESCE(p.confirmed, FALSE)", phoneTable},
	user.ColumnEmail:          {hasContact(contact.EmailAddress, "x.normal %[1]s"), "COALESCE(e.normal, '')", emailTable},
	user.ColumnEmailConfirmed: {hasContact(contact.EmailAddress, "x.confirmed AND x.normal = "+shown(contact.EmailAddress)), "COALESCE(e.confirmed, FALSE)", emailTable},
	user.ColumnRdn:            {"EXISTS (SELECT 1 FROM distinguished_names x WHERE x.user_id = u.id AND x.name_folded %[1]s)", "COALESCE(n.name_folded, '')", nameTable},
	user.ColumnGroup:          {"COALESCE(u.group_name %[1]s, FALSE)", "u.group_name", ""},
	user.ColumnAuthMethod:     {"EXISTS (SELECT 1 FROM user_methods x WHERE x.user_id = u.id AND x.method %[1]s)", "", ""},
	user.ColumnIsLocked:       {barredNow, barredNow, ""},
	user.ColumnLastLogin:      {"u.last_login_at %[1]s", "u.last_login_at", ""},
	user.ColumnCreated:        {"u.created_at %[1]s", "u.created_at", ""},
	user.ColumnTokenSerial:    {"EXISTS (SELECT 1 FROM oath_tokens x WHERE x.user_id = u.id AND x.serial_key %[1]s)", "", ""},
	user.ColumnTokenType:      {"EXISTS (SELECT 1 FROM oath_tokens x WHERE x.user_id = u.id AND LOWER(x.type) %[1]s)", "", ""},
}

func hasContact(typ contact.Type, condition string) string {
	return "EXISTS (SELECT 1 FROM contacts x WHERE x.user_id = u.id AND x.type = '" + string(typ) + "' AND " + condition + ")"
}

// selected returns the condition that the operator $1 reaches the user u at the time $2 and
// that all conditions hold, with its arguments. Of few users each is looked up by itself.
func selected(few bool, operatorID string, conditions []user.Condition, now time.Time) (where string, args []any, err error) {
	where, args = reached, []any{operatorID, millis(now)}
	if few {
		where = reaches
	}
	for _, c := range conditions {
		column, known := searchColumns[c.Column]
		if !known {
			return "", nil, fmt.Errorf("store: column %d is not searched", c.Column)
		}
		test, wanted := column.test, c.Truth
		if query, is := strings.CutPrefix(test, "EXISTS ("); few && is {
			test = onePerRow(strings.TrimSuffix(query, ")"))
		}
		if strings.Contains(test, "%[1]s") {
			var compared string
			compared, args = comparison(c, args)
			test, wanted = fmt.Sprintf(test, compared), true
		}
		// "Not equal" is the negation of "equal": none of several contacts is equal.
		if wanted == (c.Operation == user.NotEqual) {
			test = "NOT " + test
		}
		where += " AND " + test
	}
	return where, args, nil
}

// mostWalks is the number of groups that UsersAfter walks along one by one.
const mostWalks = user.MostWalks

// exactTables have the users of one value in an index, and the condition that selects them. A
// search for one value of these columns begins there, however many users there are in all.
var exactTables = map[user.Column]struct{ tables, where string }{
	user.ColumnLogin:       {"users u", "u.login_folded = "},
	user.ColumnPhoneNumber: {"contacts x CROSS JOIN users u", "u.id = x.user_id AND x.type = '" + string(contact.PhoneNumber) + "' AND x.normal = "},
	user.ColumnEmail:       {"contacts x CROSS JOIN users u", "u.id = x.user_id AND x.type = '" + string(contact.EmailAddress) + "' AND x.normal = "},
	user.ColumnTokenSerial: {"oath_tokens x CROSS JOIN users u", "u.id = x.user_id AND x.serial_key = "},
	user.ColumnAuthMethod:  {"user_methods x CROSS JOIN users u", "u.id = x.user_id AND x.method = "}, // if few have it
}

// exactCondition returns the index of a condition whose users are in an index and are few, -1 if
// there is none.
func (s Users) exactCondition(ctx context.Context, conditions []user.Condition) (int, error) {
	for i, c := range conditions {
		if c.Operation != user.Equal || exactTables[c.Column].tables == "" {
			continue
		}
		if c.Column == user.ColumnAuthMethod {
			n, _, err := one(ctx, s.DB, scalar[int64], "SELECT COUNT(*) FROM (SELECT 1 FROM user_methods WHERE method = $1 LIMIT $2) AS counted", c.Text, mostFew+1)
			if err != nil {
				return -1, err
			}
			if n > mostFew {
				continue
			}
		}
		return i, nil
	}
	return -1, nil
}

// UsersAfter implements user.SearchStore. It walks along the index of each group from the
// key on, and merges the walks. An operator of more groups reaches a good part of all users,
// so there the index of logins alone finds a page soon. If few users match, a walk would read
// all of them. So it first finds the key that ends the walk.
func (s Users) UsersAfter(ctx context.Context, operatorID string, groups []string, conditions []user.Condition, after string, limit, most int, now time.Time) ([]user.Info, string, error) {
	exact, err := s.exactCondition(ctx, conditions)
	if err != nil {
		return nil, "", err
	}
	alone := len(groups) <= mostWalks && exact < 0 // each group by itself
	few := exact >= 0 || len(conditions) == 0 && alone || s.engine == postgresEngine
	where, args, err := selected(few, operatorID, conditions, now)
	if err != nil {
		return nil, "", err
	}
	args = append(args, after)
	where += fmt.Sprintf(" AND u.login_folded > $%d", len(args))
	from, last := "users u", ""
	switch {
	case exact >= 0:
		table := exactTables[conditions[exact].Column]
		args = append(args, conditions[exact].Text)
		from, where = table.tables, where+fmt.Sprintf(" AND %s$%d", table.where, len(args))
	case len(conditions) > 0 || !alone:
		if last, err = s.lastKey(ctx, groups, after, most); err != nil {
			return nil, "", err
		}
		if !alone && s.engine == sqliteEngine {
			// SQLite would seek in the index of every group, thousands of times, instead of
			// walking along the few logins. It has no index of an expression. To look up the
			// group of each user would take longer.
			where = strings.Replace(where, "u.group_name IN", "COALESCE(u.group_name, '') IN", 1)
		}
		if last != "" {
			args = append(args, last)
			where += fmt.Sprintf(" AND u.login_folded <= $%d", len(args))
		}
	}
	args = append(args, limit)
	end := fmt.Sprintf(" LIMIT $%d", len(args))
	walk := func(where string) string {
		return "SELECT u.id AS id, u.login_folded AS place FROM " + from + " WHERE " + where + " ORDER BY u.login_folded" + end
	}
	page := walk(where)
	if alone {
		var walks []string
		for i, g := range groups {
			args = append(args, g)
			walks = append(walks, fmt.Sprintf("SELECT * FROM (%s) AS walk%d", walk(fmt.Sprintf("%s AND u.group_name = $%d", where, len(args))), i))
		}
		page = "SELECT * FROM (" + strings.Join(walks, " UNION ALL ") + ") AS walks ORDER BY place" + end
	}
	users, err := allUnprepared(ctx, s.DB, scanInfo,
		"WITH page (id, place) AS ("+page+") SELECT "+infoColumns+infoTables+" JOIN page ON page.id = u.id ORDER BY page.place", args...)
	if err != nil {
		return nil, "", err
	}
	return users, last, s.withContacts(ctx, users)
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
	where, args, err := selected(false, operatorID, conditions, now)
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

// likePattern joins parts by a wildcard for any text. Special characters of LIKE in parts
// are escaped.
func likePattern(parts []string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
	for i, p := range parts {
		parts[i] = escaped.Replace(p)
	}
	return strings.Join(parts, "%")
}
