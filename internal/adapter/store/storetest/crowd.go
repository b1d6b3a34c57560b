// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tamga/internal/domain/user"
)

// CrowdGroups is the number of groups of a crowd, each with an operator.
const CrowdGroups = 5_000

// Crowd fills an installation with many users, for benchmarks. Each user has two phones, three
// e-mail addresses, a name and a method. It writes SQL for both engines, in portions that a
// write-ahead log can hold.
type Crowd struct {
	t      testing.TB
	pool   *sql.DB
	driver string
}

// OpenCrowd opens a migrated database.
func OpenCrowd(t testing.TB, url string) *Crowd {
	t.Helper()
	c := &Crowd{t: t, driver: "pgx"}
	source, isFile := strings.CutPrefix(url, "sqlite:")
	if isFile {
		c.driver = "sqlite"
	}
	var err error
	c.pool, err = sql.Open(c.driver, source)
	must(t, err)
	t.Cleanup(func() { c.pool.Close() })
	c.pool.SetMaxOpenConns(1)
	if isFile {
		c.Do("PRAGMA synchronous = OFF")
		c.Do("PRAGMA cache_size = -400000")
	}
	return c
}

// Do runs a statement.
func (c *Crowd) Do(query string, args ...any) {
	c.t.Helper()
	if _, err := c.pool.ExecContext(c.t.Context(), query, args...); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
}

// Bytes returns an SQL expression with the bytes of a text.
func (c *Crowd) Bytes(text string) string {
	return "CAST(" + text + " AS " + map[string]string{"sqlite": "BLOB", "pgx": "BYTEA"}[c.driver] + ")"
}

// CrowdID returns the identifier of user i. The first digits are scattered like those of random
// identifiers.
func CrowdID(i int) string {
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", 10_000_000+i*48_271%89_999_999, 100_000_000_000+i)
}

// CrowdUser returns an SQL expression with the identifier of the user that an expression numbers.
func CrowdUser(i string) string {
	return "CAST(10000000 + (" + i + ") * 48271 % 89999999 AS TEXT) || '-0000-4000-8000-' || CAST(100000000000 + " + i + " AS TEXT)"
}

// CrowdIdentifiers returns what user i signs in with.
func CrowdIdentifiers(i int) map[user.IdentifierType]string {
	return map[user.IdentifierType]string{
		user.Login:       fmt.Sprintf("user%d", i),
		user.PhoneNumber: fmt.Sprintf("7%d", 9_000_000_000+i),
		user.Email:       fmt.Sprintf("user%d@example.ru", i),
	}
}

// numbers is a table n with the numbers i from $1 to $2, the last one excluded.
const numbers = "WITH RECURSIVE n(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2) "

// portion is the number of rows of a statement. Each portion is sorted by its key, which is almost
// as fast as a bulk load.
const portion = 200_000

// AddUsers adds the groups, their operators and the users. The operators "operator-all" and
// "operator-few" have all groups and three of them.
func (c *Crowd) AddUsers(number int) {
	c.t.Helper()
	id := CrowdUser("i")
	c.Do("INSERT INTO user_groups (name, title, created_at) VALUES ('Operators', '', 0)")
	c.Do(numbers+"INSERT INTO user_groups (name, title, created_at) SELECT 'group ' || CAST(i AS TEXT), '', 0 FROM n", 0, CrowdGroups)
	c.Do(numbers+`INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at)
		SELECT 'operator-' || CAST(i AS TEXT), 'operator-' || CAST(i AS TEXT), 'operator-' || CAST(i AS TEXT), 'x', 'Operators', TRUE, FALSE, 0, FALSE, 0 FROM n`, 0, CrowdGroups)
	c.Do(numbers+"INSERT INTO operator_groups (user_id, group_name) SELECT 'operator-' || CAST(i AS TEXT), 'group ' || CAST(i AS TEXT) FROM n", 0, CrowdGroups)
	c.Do("INSERT INTO user_groups (name, title, created_at) VALUES ('large', '', 0)")
	for _, name := range []string{"operator-all", "operator-few"} {
		c.Do("INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at) VALUES ($1, $1, $1, 'x', 'Operators', TRUE, FALSE, 0, FALSE, 0)", name)
		c.LetReach(name, name == "operator-all")
	}
	for from := 0; from < number; from += portion {
		to := min(from+portion, number)
		c.Do(numbers+`INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at)
			SELECT `+id+`, 'user' || CAST(i AS TEXT), 'user' || CAST(i AS TEXT), 'User ' || CAST(i AS TEXT), 'group ' || CAST(i % `+fmt.Sprint(CrowdGroups)+` AS TEXT), FALSE, FALSE, 0, FALSE, 1700000000000 + i FROM n ORDER BY 1`, from, to)
		c.Do(numbers+`INSERT INTO distinguished_names (user_id, name, name_folded, name_key)
			SELECT `+id+`, 'CN=User ' || CAST(i AS TEXT), 'cn=user ' || CAST(i AS TEXT), `+c.Bytes("CAST(i AS TEXT)")+` FROM n ORDER BY 1`, from, to)
		c.Do(numbers+"INSERT INTO name_components (user_id, oid, value) SELECT "+id+", '2.5.4.3', 'User ' || CAST(i AS TEXT) FROM n ORDER BY 1", from, to)
		c.Do(numbers+"INSERT INTO user_methods (user_id, method, level) SELECT "+id+", 'password', 1 FROM n ORDER BY 1", from, to)
		for k, one := range []struct{ typ, value, primary string }{
			{"PhoneNumber", "CAST(79000000000 + i AS TEXT)", "TRUE"},
			{"PhoneNumber", "CAST(78000000000 + i AS TEXT)", "FALSE"},
			{"EmailAddress", "'user' || CAST(i AS TEXT) || '@example.ru'", "TRUE"},
			{"EmailAddress", "'user' || CAST(i AS TEXT) || '@example.com'", "FALSE"},
			{"EmailAddress", "'user' || CAST(i AS TEXT) || '@example.org'", "FALSE"},
		} {
			c.Do(numbers+`INSERT INTO contacts (user_id, type, normal, value, confirmed, is_primary, notification, secondary_auth, created_at)
				SELECT `+id+`, '`+one.typ+`', `+one.value+`, `+one.value+`, TRUE, `+one.primary+`, FALSE, FALSE, `+fmt.Sprint(k)+` FROM n ORDER BY 1`, from, to)
		}
	}
}

// LetReach gives an operator the groups of the crowd: all of them, or "large" and three others.
func (c *Crowd) LetReach(operator string, everybody bool) {
	c.t.Helper()
	some := "group_name IN ('group 1', 'group 2', 'group 3')"
	if everybody {
		some = "TRUE"
	}
	c.Do("INSERT INTO operator_groups (user_id, group_name) SELECT DISTINCT $1, group_name FROM operator_groups WHERE user_id LIKE 'operator-%' AND user_id <> $1 AND "+some+" ON CONFLICT DO NOTHING", operator)
	c.Do("INSERT INTO operator_groups (user_id, group_name) VALUES ($1, 'large') ON CONFLICT DO NOTHING", operator)
}

// Copy adds copies of a row of a table that the condition selects. Changed has SQL expressions of
// the number i of a copy for the columns that are not copied. A column with "" gets its default.
func (c *Crowd) Copy(table, condition string, number int, changed map[string]string) {
	c.t.Helper()
	rows, err := c.pool.QueryContext(c.t.Context(), "SELECT * FROM "+table+" LIMIT 0")
	must(c.t, err)
	columns, err := rows.Columns()
	must(c.t, err)
	must(c.t, rows.Close())
	changed = maps.Clone(changed)
	var into, values []string
	for _, name := range columns {
		value, other := changed[name]
		delete(changed, name)
		switch {
		case !other:
			value = "t." + name
		case value == "":
			continue
		}
		into, values = append(into, name), append(values, value)
	}
	if len(changed) > 0 {
		c.t.Fatalf("%s has no column %s", table, slices.Sorted(maps.Keys(changed))[0])
	}
	copied := numbers + "INSERT INTO " + table + " (" + strings.Join(into, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" FROM n CROSS JOIN (SELECT * FROM " + table + " WHERE " + condition + " LIMIT 1) t"
	for from := 0; from < number; from += portion {
		c.Do(copied, from, min(from+portion, number))
	}
}

// Settle brings the database into the state that it has after a night.
func (c *Crowd) Settle() {
	c.t.Helper()
	if c.driver == "pgx" {
		c.Do("VACUUM ANALYZE")
	} else {
		c.Do("PRAGMA wal_checkpoint(TRUNCATE)")
	}
}
