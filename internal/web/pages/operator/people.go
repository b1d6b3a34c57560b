// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
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
	Chips   []chip // the conditions
	Imports bool   // the reader may import a list
	Export  string // address of the file of all who are found
	Found   peopleList
	Partial string // key of what to say if few people match, and the search has not looked at all of them
}

// chip is a condition that holds, and the address of the list without it.
type chip struct{ Text, Without string }

// peopleList is a page of people, who can be chosen for a command on all of them.
type peopleList struct {
	Listed        bool // there was a search, so an empty list says something
	Rows          []listed
	Empty         string // key
	Next, NextKey string
}

// listed is a person of a list.
type listed struct {
	ID, Name, Login, Group string
	Contacts               []string
	Certificate            cell
	Tone                   string // of the tag of the certificate; "none" for a person without one
	Marks                  []string
	Bar                    string // key of what keeps the person from signing in; "": nothing
	Seen                   time.Time
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
	v := peopleView{Imports: a.may(rest.Caller(ctx), Administrator)}
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
	for i := range v.Filters {
		if v.Filters[i].Value != "" {
			v.Chips = append(v.Chips, v.Filters[i].chip(again))
		}
	}
	v.Export = "/operator/people/export?" + again.Encode()
	if text := strings.TrimSpace(r.Text); text != "" && !v.Asked {
		v.Export = "/operator/people/export?" + url.Values{"q": {text}}.Encode()
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
	if v.Found, wrong = a.peopleList(ctx, list); wrong != nil {
		return view.View{}, wrong
	}
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

// chip returns the condition of a row of the form. again are all conditions.
func (f *searchFilter) chip(again url.Values) chip {
	chosen := func(list []view.Option) string {
		return list[max(slices.IndexFunc(list, func(o view.Option) bool { return o.Chosen }), 0)].Text
	}
	without := url.Values{}
	for name, values := range again {
		if !strings.HasSuffix(name, f.Number) {
			without[name] = values
		}
	}
	return chip{chosen(f.Columns) + " " + chosen(f.Operations) + " " + view.Visible(f.Value), "/operator/people?" + without.Encode()}
}

// peopleList lists people, with the certificate of each that ends last.
func (a *API) peopleList(ctx context.Context, list []user.Info) (found peopleList, err error) {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	certificates, err := a.Keys.FindCertificates(ctx, rest.Caller(ctx), keys.Sought{Users: ids}, user.MostFound)
	if err != nil {
		return found, err
	}
	last := map[string]view.Certificate{}
	for _, c := range certificates {
		d := view.DescribeCertificate(c, a.Now())
		if have, has := last[c.UserID]; !has || d.Usable && !have.Usable || d.Usable == have.Usable && d.NotAfter.After(have.NotAfter) {
			last[c.UserID] = d
		}
	}
	found.Listed, found.Empty = true, "people.none"
	for _, u := range list {
		one := listed{ID: u.ID, Name: cmp.Or(view.Visible(u.DisplayName), nameOf(u)), Login: u.Login, Group: u.Group, Marks: marksOf(rest.Caller(ctx), u), Seen: u.LastLoginAt, Tone: "none"}
		for _, contact := range []string{u.PhoneNumber, u.Email} {
			if contact != "" {
				one.Contacts = append(one.Contacts, contact)
			}
		}
		if u.Locked {
			one.Bar = barKey(u)
		}
		if c, has := last[u.ID]; has {
			one.Certificate, one.Tone = cell{Key: "people.until", At: c.NotAfter}, ""
			switch {
			case c.Soon:
				one.Certificate.Key, one.Tone = "people.soon", "warn"
			case !c.Usable:
				one.Certificate, one.Tone = cell{Key: c.Status}, "bad"
			}
		}
		found.Rows = append(found.Rows, one)
	}
	return found, nil
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
func marksOf(who audit.Principal, u user.Info) (marks []string) {
	if u.ID == who.UserID {
		marks = append(marks, "people.you")
	}
	if u.Operator {
		marks = append(marks, "people.operator")
	}
	return marks
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
