// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// testSearch searches through package user, which checks the input. So the compared
// results are those that an operator gets.
func testSearch(t *testing.T, open func(t *testing.T) *store.DB) {
	db := open(t)
	users, tokens, contacts := store.Users{DB: db}, store.Tokens{DB: db}, store.Contacts{DB: db}
	for _, g := range []string{"Default", "Alpha", "Beta", "Foreign"} {
		group(t, db, g)
	}
	operator := func(id string, groups ...string) audit.Principal {
		must(t, users.AddUser(t.Context(), user.User{ID: id, Login: id, Group: "Default", Operator: true, CreatedAt: start}, id))
		must(t, users.SetOperatorGroups(t.Context(), id, groups))
		return audit.Principal{UserID: id}
	}
	both, alpha := operator("both", "Alpha", "Beta"), operator("alpha", "Alpha")
	for i, p := range []struct {
		login, group, name string
		phone, email       string
		confirmed, locked  bool
		method             string
	}{
		{"anna", "Alpha", "CN=Анна,O=ООО \"Ель\"", "79260000001", "anna@example.ru", true, false, "password"},
		{"boris", "Alpha", "CN=Борис", "79260000002", "", false, true, "certificate"},
		{"Clara_1", "Beta", "CN=Клара 100%", "", "clara@example.ru", false, false, "none"},
		{"", "Beta", "", "79260000004", "", true, false, ""},
		{"foreign", "Foreign", "CN=Анна", "79260000005", "foreign@example.ru", true, true, "password"},
	} {
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1)
		u := user.User{ID: id, Login: p.login, DisplayName: p.login, Group: p.group, Locked: p.locked, CreatedAt: start.Add(time.Duration(i) * time.Hour)}
		must(t, users.AddUser(t.Context(), u, user.FoldLogin(p.login)))
		if p.name != "" {
			must(t, users.SetName(t.Context(), id, user.Name{Text: p.name, Folded: strings.ToLower(p.name), Key: [32]byte{byte(i)}}))
		}
		for typ, value := range map[contact.Type]string{contact.PhoneNumber: p.phone, contact.EmailAddress: p.email} {
			if value != "" {
				_, err := contacts.AddContact(t.Context(), contact.Contact{UserID: id, Type: typ, Value: value, Confirmed: p.confirmed, Primary: true, CreatedAt: start}, value, false)
				must(t, err)
			}
		}
		if p.method != "" {
			must(t, tokens.SetMethod(t.Context(), id, signin.StoredMethod{Name: p.method, Level: 1}))
		}
	}
	// A search finds the second phone, but results show the first one. A user who has
	// signed in has a date.
	const anna = "00000000-0000-4000-8000-000000000001"
	_, err := contacts.AddContact(t.Context(), contact.Contact{UserID: anna, Type: contact.PhoneNumber, Value: "79990000000", CreatedAt: start.Add(-time.Hour)}, "79990000000", false)
	must(t, err)
	must(t, tokens.SetPassword(t.Context(), anna, "x"))
	added, err := tokens.AddToken(t.Context(), token.Record{ID: "t", UserID: anna, CreatedAt: start.Add(48 * time.Hour)}, token.Proof{Method: "password", Encoded: "x", Now: start})
	if must(t, err); !added {
		t.Fatal("no token")
	}
	rule := signin.LockOut{Failures: 1, Window: time.Hour, LockOut: time.Hour}
	_, err = tokens.BeginUserAttempt(t.Context(), "00000000-0000-4000-8000-000000000003", start, rule)
	must(t, err)

	for _, x := range []oath.Record{
		{Key: "h-100", UserID: anna, Type: oath.HOTP}, {Key: "h-200", UserID: anna[:35] + "2", Type: oath.TOTP}, {Key: "h-300", Type: oath.HOTP},
	} {
		x.Serial, x.Sealed = strings.ToUpper(x.Key), []byte("sealed")
		said(t, true)(tokens.AddOathToken(t.Context(), x))
	}

	service := &user.Service{Store: users, SearchStore: users, Now: func() time.Time { return start.Add(time.Minute) }}
	all := user.Search{End: 100}
	filters := func(list ...user.Filter) user.Search { return user.Search{End: 100, Filters: list} }
	f := func(c user.Column, o user.Operation, value string) user.Filter {
		return user.Filter{Column: c, Operation: o, Value: value}
	}
	for i, c := range []struct {
		who    audit.Principal
		search user.Search
		fault  string
		want   string // logins in their order
		total  int
	}{
		{both, all, "", "-,anna,boris,Clara_1", 4},
		{alpha, all, "", "anna,boris", 2},
		{audit.Principal{UserID: anna}, all, fault.AccessDenied, "", 0},
		{both, user.Search{Start: 1, End: 3}, "", "anna,boris", 4},
		{both, user.Search{Start: 4, End: 9}, "", "", 4},
		{both, user.Search{}, "", "", 4},
		{both, user.Search{End: 9, Descending: true}, "", "Clara_1,boris,anna,-", 4},
		{both, user.Search{End: 9, Order: user.ColumnCreated, Descending: true}, "", "-,Clara_1,boris,anna", 4},
		{both, user.Search{End: 9, Order: user.ColumnPhoneNumber}, "", "Clara_1,anna,boris,-", 4},
		{both, user.Search{End: 9, Order: user.ColumnEmail, Descending: true}, "", "Clara_1,anna,-,boris", 4},
		{both, user.Search{End: 9, Order: user.ColumnIsLocked}, "", "anna,-,boris,Clara_1", 4},
		{both, user.Search{End: 9, Order: user.ColumnGroup}, "", "anna,boris,Clara_1,-", 4},

		{both, filters(f(user.ColumnLogin, user.Equal, "ANNA")), "", "anna", 1},
		{both, filters(f(user.ColumnLogin, user.NotEqual, "anna")), "", "-,boris,Clara_1", 3},
		{both, filters(f(user.ColumnLogin, user.Like, "ar")), "", "Clara_1", 1},
		{both, filters(f(user.ColumnLogin, user.Like, "%a")), "", "anna", 1},
		{both, filters(f(user.ColumnLogin, user.Like, "_")), "", "Clara_1", 1}, // not a wildcard
		{both, filters(f(user.ColumnLogin, user.Like, "0000")), "", "", 0},     // not the identifier of a user without a login
		{both, filters(f(user.ColumnLogin, user.Like, `\`)), "", "", 0},
		{both, filters(f(user.ColumnLogin, user.Equal, "foreign")), "", "", 0},
		{both, filters(f(user.ColumnPhoneNumber, user.Equal, "+7 926 000-00-02")), "", "boris", 1},
		{both, filters(f(user.ColumnPhoneNumber, user.Equal, "79990000000")), "", "anna", 1},
		{both, filters(f(user.ColumnPhoneNumber, user.NotEqual, "79990000000")), "", "-,boris,Clara_1", 3},
		{both, filters(f(user.ColumnPhoneNumber, user.Like, "7926%")), "", "-,anna,boris", 3},
		{both, filters(f(user.ColumnPhoneConfirmed, user.Equal, "True")), "", "-,anna", 2},
		{both, filters(f(user.ColumnPhoneConfirmed, user.NotEqual, "True")), "", "boris,Clara_1", 2},
		{both, filters(f(user.ColumnEmail, user.Equal, "Clara@Example.RU")), "", "Clara_1", 1},
		{both, filters(f(user.ColumnEmail, user.Like, "EXAMPLE")), "", "anna,Clara_1", 2},
		{both, filters(f(user.ColumnEmailConfirmed, user.Equal, "false")), "", "-,boris,Clara_1", 3},
		{both, filters(f(user.ColumnRdn, user.Like, "анна")), "", "anna", 1},
		{both, filters(f(user.ColumnRdn, user.Like, `ооо "ель"`)), "", "anna", 1},
		{both, filters(f(user.ColumnRdn, user.Like, "%100%")), "", "Clara_1", 1},
		{both, filters(f(user.ColumnRdn, user.Equal, "CN=БОРИС")), "", "boris", 1},
		{both, filters(f(user.ColumnGroup, user.Equal, "Beta")), "", "-,Clara_1", 2},
		{both, filters(f(user.ColumnGroup, user.NotEqual, "Beta")), "", "anna,boris", 2},
		{both, filters(f(user.ColumnGroup, user.Equal, "Foreign")), "", "", 0},
		{both, filters(f(user.ColumnGroup, user.NotEqual, "Foreign")), "", "-,anna,boris,Clara_1", 4},
		{both, filters(f(user.ColumnGroup, user.Like, "ALPH")), "", "anna,boris", 2},
		{both, filters(f(user.ColumnGroup, user.Like, "%a")), "", "-,anna,boris,Clara_1", 4},
		{both, filters(f(user.ColumnGroup, user.Like, "a%p%x%")), "", "", 0},
		{both, filters(f(user.ColumnAuthMethod, user.Equal, "cert")), "", "boris", 1},
		{both, filters(f(user.ColumnAuthMethod, user.Equal, "http://dss.cryptopro.ru/identity/authenticationmethod/password")), "", "anna", 1},
		{both, filters(f(user.ColumnAuthMethod, user.NotEqual, "none")), "", "-,anna,boris", 3},
		{both, filters(f(user.ColumnIsLocked, user.Equal, "1")), "", "boris,Clara_1", 2}, // one by an operator, one for wrong passwords
		{both, filters(f(user.ColumnIsLocked, user.Equal, "False")), "", "-,anna", 2},
		{both, filters(f(user.ColumnCreated, user.Greater, "2026-11-21T13:00:00Z")), "", "-,Clara_1", 2},
		{both, filters(f(user.ColumnCreated, user.Less, "2026-11-21T16:00:00+03:00")), "", "anna", 1},
		{both, filters(f(user.ColumnCreated, user.Equal, fmt.Sprint(start.Unix()))), "", "anna", 1},
		{both, filters(f(user.ColumnLastLogin, user.Greater, "2026-11-22")), "", "anna", 1},
		{both, filters(f(user.ColumnLogin, user.Like, "a"), f(user.ColumnIsLocked, user.Equal, "false"), f(user.ColumnGroup, user.Equal, "Alpha")), "", "anna", 1},
		{both, filters(f(user.ColumnGroup, user.Like, "a"), f(user.ColumnGroup, user.NotEqual, "Alpha")), "", "-,Clara_1", 2},
		{both, filters(f(user.ColumnGroup, user.Equal, "Alpha"), f(user.ColumnGroup, user.Equal, "Beta")), "", "", 0},
		{both, filters(f(user.ColumnPhoneNumber, user.Like, "79")), "", "-,anna,boris", 3}, // anna has two
		{both, filters(f(user.ColumnEmail, user.Like, "example.ru"), f(user.ColumnLogin, user.NotEqual, "anna")), "", "Clara_1", 1},
		{both, filters(f(user.ColumnRdn, user.Like, "cn="), f(user.ColumnEmail, user.Like, "example"), f(user.ColumnIsLocked, user.Equal, "true")), "", "Clara_1", 1},
		{alpha, filters(f(user.ColumnLogin, user.Like, "r")), "", "boris", 1},
		{alpha, filters(f(user.ColumnEmail, user.Like, "example")), "", "anna", 1},
		{alpha, filters(f(user.ColumnEmail, user.NotEqual, "anna@example.ru")), "", "boris", 1},

		{both, user.Search{Start: -1, End: 3}, fault.BadBounds, "", 0},
		{both, user.Search{Start: 4, End: 3}, fault.BadBounds, "", 0},
		{both, user.Search{End: 1001}, fault.BadBounds, "", 0},
		{both, user.Search{Start: 1 << 31, End: 1<<31 + 1}, fault.BadBounds, "", 0},
		{both, user.Search{End: 9, Order: 77}, fault.UnsupportedOperation, "", 0},
		{both, user.Search{End: 9, Order: user.ColumnAuthMethod}, fault.UnsupportedOperation, "", 0},
		{both, filters(f(user.ColumnLogin, user.Greater, "a")), fault.UnsupportedOperation, "", 0},
		{both, filters(f(user.ColumnLogin, 9, "a")), fault.UnsupportedOperation, "", 0},
		{both, filters(f(user.ColumnIsLocked, user.Like, "true")), fault.UnsupportedOperation, "", 0},
		{both, filters(f(user.ColumnTokenSerial, user.Equal, "H-100")), "", "anna", 1},
		{both, filters(f(user.ColumnTokenSerial, user.Like, "h-%")), "", "anna,boris", 2},
		{both, filters(f(user.ColumnTokenSerial, user.NotEqual, "h-100")), "", "-,boris,Clara_1", 3},
		{both, filters(f(user.ColumnTokenSerial, user.Equal, "h-300")), "", "", 0}, // in stock
		{both, filters(f(user.ColumnTokenType, user.Equal, "totp")), "", "boris", 1},
		{both, filters(f(user.ColumnTokenSerial, user.Greater, "h")), fault.UnsupportedOperation, "", 0},
		{both, user.Search{End: 9, Order: user.ColumnTokenSerial}, fault.UnsupportedOperation, "", 0},
		{both, user.Search{End: 9, Order: user.ColumnTokenType}, fault.UnsupportedOperation, "", 0},
		{both, filters(f(-1, user.Equal, "1")), fault.InvalidParameters, "", 0},
		{both, filters(f(user.ColumnIsLocked, user.Equal, "perhaps")), fault.InvalidFilterValue, "", 0},
		{both, filters(f(user.ColumnCreated, user.Equal, "yesterday")), fault.InvalidFilterValue, "", 0},
		{both, filters(f(user.ColumnLogin, user.Equal, strings.Repeat("x", 1025))), fault.InvalidFilterValue, "", 0},
		{both, filters(f(user.ColumnLogin, user.Equal, "\xff")), fault.InvalidFilterValue, "", 0},
		{both, filters(make([]user.Filter, 17)...), fault.InvalidParameters, "", 0},
	} {
		found, err := service.List(t.Context(), c.who, c.search)
		if f, _ := fault.As(err); c.fault != "" && (f == nil || f.Code != c.fault) || c.fault == "" && err != nil {
			t.Errorf("row %d, %+v: %v, want %q", i, c.search, err, c.fault)
			continue
		}
		var logins []string
		for _, u := range found.Users {
			if u.Login == "" {
				u.Login = "-"
			}
			logins = append(logins, u.Login)
		}
		if got := strings.Join(logins, ","); got != c.want || found.Total != c.total {
			t.Errorf("row %d, %+v: %q of %d, want %q of %d", i, c.search, got, found.Total, c.want, c.total)
		}
		if c.search.End == 100 && c.fault == "" { // from the first user on, by login
			for _, walk := range []narrow{{users, false, 3000, 50_000}, {users, false, 1, 50_000}, {users, true, 1, 1}, {users, true, 1, 50_000}} {
				browsed := *service
				browsed.SearchStore = walk
				if got := browse(t, &browsed, c.who, c.search.Filters, 1); got != c.want {
					t.Errorf("row %d, %+v: page by page of walks %+v %q, want %q", i, c.search, walk, got, c.want)
				}
			}
		}
	}
	many := []string{"Alpha", "Beta"}
	for i := range 80 { // more than are walked along one by one
		group(t, db, fmt.Sprintf("Group %d", i))
		many = append(many, fmt.Sprintf("Group %d", i))
	}
	if got := browse(t, service, operator("many", many...), nil, 3); got != "-,anna,boris,Clara_1" {
		t.Errorf("an operator of many groups sees %q", got)
	}
	walks(t, db, both.UserID, []string{"Alpha", "Beta"}, service.Now())
	walks(t, db, "many", many, service.Now())
	for _, c := range []struct {
		who   audit.Principal
		after string
		limit int
		fault string
	}{{both, "", 0, fault.BadBounds}, {both, "", 1001, fault.BadBounds}, {both, "\xff", 1, fault.BadBounds}, {audit.Principal{UserID: anna}, "", 1, fault.AccessDenied}} {
		if _, _, err := service.Browse(t.Context(), c.who, nil, c.after, c.limit, false); !fault.Is(err, c.fault) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	found, err := service.List(t.Context(), both, filters(f(user.ColumnLogin, user.Equal, "anna")))
	must(t, err)
	want := user.Info{
		ID: anna, Login: "anna", PhoneNumber: "79260000001", PhoneConfirmed: true, Email: "anna@example.ru", EmailConfirmed: true,
		DisplayName: "anna", Name: `CN=Анна,O=ООО "Ель"`, Group: "Alpha", CreatedAt: start, LastLoginAt: start.Add(48 * time.Hour),
	}
	if d := cmp.Diff([]user.Info{want}, found.Users); d != "" {
		t.Error(d)
	}
	single, err := service.ByID(t.Context(), both, anna)
	must(t, err)
	if d := cmp.Diff(want, single); d != "" {
		t.Errorf("a single user differs from the same user in a list: %s", d)
	}
	must(t, users.SetUnapproved(t.Context(), anna, true))
	if single, err = service.ByID(t.Context(), both, anna); err != nil || !single.Locked || !single.Unapproved || !single.LockedAt.IsZero() {
		t.Errorf("a user without approval is %+v, %v", single, err)
	}
	must(t, users.SetUnapproved(t.Context(), anna, false))

	// No search value becomes part of a statement.
	for _, hostile := range []string{"' OR 1=1 --", `"; DROP TABLE users; --`, "$1", "%s%d", "a\x00b", `\%`, "'", "%%%%%%%%"} {
		for column := user.ColumnLogin; column <= user.ColumnAuthMethod; column++ {
			for _, o := range []user.Operation{user.Equal, user.NotEqual, user.Like} {
				found, err := service.List(t.Context(), alpha, filters(f(column, o, hostile)))
				if _, ok := fault.As(err); err != nil && !ok {
					t.Errorf("%v %v %q: %v", column, o, hostile, err)
				}
				for _, u := range found.Users {
					if u.Group != "Alpha" {
						t.Errorf("%v %v %q finds a user in %s", column, o, hostile, u.Group)
					}
				}
			}
		}
	}
}

// walks compares pages of searches that look at few users each with the same search at once.
func walks(t *testing.T, db *store.DB, operator string, groups []string, now time.Time) {
	s := store.Users{DB: db}
	pages := 0
	for _, c := range []user.Condition{
		{Column: user.ColumnLogin, Operation: user.Like, Text: "clara"},
		{Column: user.ColumnLogin, Operation: user.Equal, Text: "clara_1"},
		{Column: user.ColumnEmail, Operation: user.Equal, Text: "anna@example.ru"},
		{Column: user.ColumnPhoneNumber, Operation: user.Equal, Text: "79260000001"},
		{Column: user.ColumnTokenSerial, Operation: user.Equal, Text: "h-100"},
		{Column: user.ColumnTokenSerial, Operation: user.NotEqual, Text: "h-100"},
	} {
		at := func(most int) (ids []string) {
			for after := ""; ; pages++ {
				users, last, err := s.UsersAfter(t.Context(), operator, groups, []user.Condition{c}, after, 100, most, now)
				must(t, err)
				for _, u := range users {
					ids = append(ids, u.ID)
				}
				if last == "" {
					return ids
				}
				if last <= after {
					t.Fatalf("%+v: after %q the walk ends at %q", c, after, last)
				}
				after = last
			}
		}
		if whole, parts := at(1000), at(1); len(whole) == 0 || !slices.Equal(whole, parts) {
			t.Errorf("%+v, groups %d: %q, and in parts %q", c, len(groups), whole, parts)
		}
	}
	if pages == 0 {
		t.Error("no walk had an end")
	}
}

// narrow is a store whose walks look at fewer users, at first and when a search goes on. It may be
// one of many users.
type narrow struct {
	store.Users
	large     bool
	near, far int
}

func (n narrow) MoreUsers(ctx context.Context, than int) (bool, error) {
	more, err := n.Users.MoreUsers(ctx, than)
	return more || n.large, err
}

func (n narrow) UsersAfter(ctx context.Context, operatorID string, groups []string, conditions []user.Condition, after string, limit, most int, now time.Time) ([]user.Info, string, error) {
	switch {
	case most <= 3000:
		most = n.near
	case most <= 50_000:
		most = n.far
	}
	return n.Users.UsersAfter(ctx, operatorID, groups, conditions, after, limit, most, now)
}

func (n narrow) UsersFound(ctx context.Context, operatorID string, groups []string, conditions []user.Condition, after string, limit, more int, now time.Time) ([]user.Info, bool, error) {
	return n.Users.UsersFound(ctx, operatorID, groups, conditions, after, limit, min(more, n.far), now)
}

// browse returns the logins that an operator sees page by page. Every second page goes on searching.
func browse(t *testing.T, service *user.Service, who audit.Principal, filters []user.Filter, limit int) string {
	var logins []string
	far := false
	for after := ""; ; far = !far {
		users, next, err := service.Browse(t.Context(), who, filters, after, limit, far)
		must(t, err)
		for _, u := range users {
			if u.Login == "" {
				u.Login = "-"
			}
			logins = append(logins, u.Login)
		}
		if next == "" {
			return strings.Join(logins, ",")
		}
		if next <= after {
			t.Fatalf("%+v: after %q the next key is %q", filters, after, next)
		}
		after = next
	}
}
