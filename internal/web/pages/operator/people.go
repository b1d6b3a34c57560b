// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// searchRows is the number of filters in the form of the search.
const searchRows = 3

// searchColumns and searchOperations are the names that the interface has for the filters of
// a search, in the order of the form.
var (
	searchColumns = []string{
		"Login", "Rdn", "PhoneNumber", "Email", "Group", "IsLocked", "AuthMethod", "CreateDate", "LastLoginDate", "PhoneNumberConfirmed", "EmailConfirmed",
		"TokenSerial", "TokenType",
	}
	searchOperations = []string{"Like", "Equal", "NotEqual", "Greater", "Less"}
)

// searchFilter is a row of the form of the search.
type searchFilter struct {
	Number              string
	Columns, Operations []view.Option
	Value               string
}

// peopleView is the search.
type peopleView struct {
	Search  searched
	Asked   bool // the form of conditions is in use
	Filters []searchFilter
	Found   table
	New     link
	Partial string // key of what to say if few people match, and the search has not looked at all of them
}

func optionsOf(values []string, family, chosen string) (list []pick) {
	for _, v := range values {
		list = append(list, pick{Value: v, Key: family + v, Chosen: v == chosen})
	}
	return list
}

// people searches with the filters of the interface, page by page.
func (a *API) people(ctx context.Context, r struct {
	Done  string `query:"done"`
	After string `query:"after"`
	Far   string `query:"far"` // searches as far as it must
	Text  string `query:"q"`
	Body  rest.Form
}) (view.View, error) {
	var filters []user.Filter
	var wrong error
	v := peopleView{New: a.commandLink("/operator/people", "", "new", "")}
	again, w := url.Values{}, view.VisitorOf(ctx).Words
	for i := range searchRows {
		n := strconv.Itoa(i)
		f := searchFilter{Number: n, Value: strings.TrimSpace(r.Body.Get("value" + n))}
		column, operation := cmp.Or(r.Body.Get("column"+n), searchColumns[i]), cmp.Or(r.Body.Get("operation"+n), searchOperations[0])
		f.Columns, f.Operations = showOptions(w, optionsOf(searchColumns, "column.", column)), showOptions(w, optionsOf(searchOperations, "comparison.", operation))
		v.Filters = append(v.Filters, f)
		if f.Value == "" {
			continue
		}
		meant, err := readFilters(w, column, operation, f.Value)
		wrong = cmp.Or(wrong, err)
		filters = append(filters, meant...)
		for name, value := range map[string]string{"column": column, "operation": operation, "value": f.Value} {
			again.Set(name+n, value)
		}
	}
	v.Asked = len(filters) > 0
	if text := strings.TrimSpace(r.Text); text != "" && !v.Asked {
		var err error
		if v.Search, v.Found, err = a.search(ctx, text, r.After); err != nil {
			return view.View{}, refusedForm{err, a.office(ctx, "people", "people.title", "", v)}
		}
		return a.office(ctx, "people", "people.title", r.Done, v), nil
	}
	var list []user.Info
	var next string
	if wrong == nil {
		list, next, wrong = a.People.Browse(ctx, rest.Caller(ctx), filters, r.After, pageRows, r.Far != "")
	}
	if wrong != nil {
		return view.View{}, refusedForm{wrong, a.office(ctx, "people", "people.title", "", v)}
	}
	v.Found = peopleTable(ctx, list)
	switch {
	case next == "" && r.After != "":
		v.Found.Empty = "people.no_more"
	case next != "":
		v.Found.Empty = "people.none_yet"
		again.Set("after", next)
		partial := "people.partial"
		if len(filters) == 0 {
			partial = "people.partial_list"
		}
		v.Partial, v.Found.NextKey = goesOn(len(list), partial, "people.partial_far", r.Far != "", again)
		v.Found.Next = "/operator/people?" + again.Encode()
	}
	return a.office(ctx, "people", "people.title", r.Done, v), nil
}

// peopleTable lists people.
func peopleTable(ctx context.Context, list []user.Info) table {
	t := table{
		Title: "people.found", Empty: "people.none",
		Head: []string{"column.Login", "people.name", "column.PhoneNumber", "column.Email", "column.Group", "people.seen"},
	}
	for _, u := range list {
		name := cell{Text: nameOf(u), Address: personAt(u.ID), Notes: marksOf(rest.Caller(ctx), u)}
		if u.Locked {
			name.Badges, name.Bad = []string{barKey(u)}, true
		}
		t.Rows = append(t.Rows, row{Cells: []cell{name, {Text: u.DisplayName}, {Text: u.PhoneNumber}, {Text: u.Email}, {Text: u.Group}, seenCell(u)}})
	}
	return t
}

// goesOn returns what a search says below a page with a number of rows, from which the query again
// leads on, and the key of the link. A page that is not full looked at a part. Then the link
// searches as far as it must, and the pages after it do, too.
func goesOn(rows int, partial, partialFar string, far bool, again url.Values) (said, link string) {
	full := rows == pageRows
	if far || !full {
		again.Set("far", "yes")
	}
	switch {
	case full:
		return "", ""
	case far:
		return partialFar, "parts.go_on"
	}
	return partial, "parts.go_on"
}

// readFilters returns the filters of the interface that a row of the search means. A value may be in
// the words of the reader: yes or no, a day, the name of a way to sign in.
func readFilters(w *view.Words, column, operation, value string) ([]user.Filter, error) {
	c, err := user.ParseColumn(column)
	if err != nil {
		return nil, err
	}
	o, err := user.ParseOperation(operation)
	if err != nil {
		return nil, err
	}
	ordered := o == user.Greater || o == user.Less
	switch c {
	case user.ColumnIsLocked, user.ColumnPhoneConfirmed, user.ColumnEmailConfirmed:
		if o == user.Like { // what the form begins with
			o = user.Equal
		}
		switch strings.ToLower(value) {
		case w.Text("choice.yes"), "true", "1":
			value = "True"
		case w.Text("choice.no"), "false", "0":
			value = "False"
		default:
			return nil, errYesOrNo
		}
	case user.ColumnCreated, user.ColumnLastLogin:
		if day, err := time.Parse("2.1.2006", value); err == nil {
			value = day.Format(time.DateOnly)
		}
		at, err := timeOf(w, value)
		if err != nil {
			return nil, errDay
		}
		if o == user.Like {
			o = user.Equal
		}
		if o == user.Equal && len(value) == len(time.DateOnly) {
			return []user.Filter{
				{Column: c, Operation: user.Greater, Value: at.Add(-time.Millisecond).Format(time.RFC3339Nano)}, {Column: c, Operation: user.Less, Value: at.AddDate(0, 0, 1).Format(time.RFC3339)},
			}, nil
		}
		value, ordered = at.UTC().Format(time.RFC3339), false
	case user.ColumnAuthMethod:
		for _, m := range signin.Methods() {
			if m.Route != "" && strings.EqualFold(value, w.Text("method."+m.Route)) {
				value = m.Route
			}
		}
	}
	if ordered {
		return nil, errOrder
	}
	return []user.Filter{{Column: c, Operation: o, Value: value}}, nil
}

// What is wrong with a row of the search.
var (
	errYesOrNo = fault.New(fault.InvalidFilterValue, "this condition needs yes or no")
	errDay     = fault.New(fault.InvalidFilterValue, "this condition needs a day such as 2026-01-31")
	errOrder   = fault.New(fault.UnsupportedOperation, "after and before are for times: choose another comparison")
)

// barKey is the word for what keeps a user from signing in.
func barKey(u user.Info) string {
	if u.Unapproved {
		return "people.unapproved"
	}
	return "people.locked"
}

// marksOf returns the keys of the marks of the reader's own account and of operators.
func marksOf(who audit.Principal, u user.Info) (keys []string) {
	if u.ID == who.UserID {
		keys = append(keys, "people.you")
	}
	if u.Operator {
		keys = append(keys, "people.operator")
	}
	return keys
}

// nameOf returns a name by which operators know a user.
func nameOf(u user.Info) string { return cmp.Or(u.Login, u.DisplayName, u.PhoneNumber, u.Email, u.ID) }

// seenCell says when a user signed in last.
func seenCell(u user.Info) cell {
	if u.LastLoginAt.IsZero() {
		return cell{Key: "people.never"}
	}
	return cell{At: u.LastLoginAt}
}

func personAt(id string) string { return "/operator/people/" + url.PathEscape(id) }
