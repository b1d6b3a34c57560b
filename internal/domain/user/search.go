// SPDX-License-Identifier: Apache-2.0

package user

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Search selects and orders users within the reach of an operator.
type Search struct {
	Start, End int // first position and the one after the last, from 0; at most MaxPage apart
	Filters    []Filter
	Order      Column
	Descending bool
}

// Filter selects users by comparing a column with a value.
type Filter struct {
	Column    Column
	Operation Operation
	Value     string // text, a truth value, or a time as ISO 8601 or in Unix seconds
}

// Limits of a search.
const (
	maxFilters     = 16
	maxFilterValue = 1024    // bytes
	maxPosition    = 1 << 30 // of the end of a page
)

// MostWalks is the number of groups that SearchStore.UsersAfter walks along one by one.
const MostWalks = 64

// Column is a column of a search. The numbers are those of the specification.
type Column int

// The columns. The specification spells PhoneNumberComfirmed so.
const (
	ColumnLogin Column = iota
	ColumnPhoneNumber
	ColumnPhoneConfirmed
	ColumnEmail
	ColumnEmailConfirmed
	ColumnRdn
	ColumnGroup
	ColumnAuthMethod
	ColumnIsLocked
	ColumnLastLogin
	ColumnCreated
	ColumnTokenSerial
	ColumnTokenType
)

// Type is the type of the values of a column.
type Type int

// The types. Text allows Equal, NotEqual and Like. Truth allows Equal and NotEqual. Time
// allows all operations but Like.
const (
	Text Type = iota + 1
	Truth
	Time
)

// columns by number: the name on the wire and the type. Users cannot be ordered by
// methods, since they have several, or by tokens, since few have one.
var columns = [...]struct {
	name string
	typ  Type
}{
	{"Login", Text}, {"PhoneNumber", Text}, {"PhoneNumberComfirmed", Truth}, {"Email", Text}, {"EmailConfirmed", Truth},
	{"Rdn", Text}, {"Group", Text}, {"AuthMethod", Text}, {"IsLocked", Truth}, {"LastLoginDate", Time}, {"CreateDate", Time},
	{"TokenSerial", Text}, {"TokenType", Text},
}

// Operation compares a column with a value. The numbers are those of the specification.
type Operation int

// The operations. Like finds the value anywhere in the column, ignoring letter case. A %
// in the value matches any text.
const (
	Equal Operation = iota
	NotEqual
	Like
	Greater
	Less
)

var operationNames = [...]string{"Equal", "NotEqual", "Like", "Greater", "Less"}

// ParseColumn reads the name of a column, without regard to letter case, or its
// number. The fault is invalid_parameters.
func ParseColumn(text string) (Column, error) {
	for i, c := range columns {
		if strings.EqualFold(text, c.name) || text == strconv.Itoa(i) || i == int(ColumnPhoneConfirmed) && strings.EqualFold(text, "PhoneNumberConfirmed") {
			return Column(i), nil
		}
	}
	return 0, fault.Newf(fault.InvalidParameters, "Column: unknown, want a name such as Login or a number from 0 to %d", len(columns)-1)
}

// ParseOperation reads the name of an operation, without regard to letter case, or
// its number. The fault is error_operation_not_supported.
func ParseOperation(text string) (Operation, error) {
	for i, name := range operationNames {
		if strings.EqualFold(text, name) || text == strconv.Itoa(i) {
			return Operation(i), nil
		}
	}
	return 0, fault.Newf(fault.UnsupportedOperation, "Operation: unknown, want one of %s", strings.Join(operationNames[:], ", "))
}

// Found is a page of a search.
type Found struct {
	Users []Info
	Total int // users that the filters select, on all pages
}

// Condition is a checked filter with its value in the form that SearchStore compares.
type Condition struct {
	Column    Column
	Operation Operation
	Text      string   // folded; of Like the parts between %, see Parts
	Groups    []string // of ColumnGroup: the operator's groups that the text means
	Truth     bool
	Time      time.Time
}

// Parts returns the texts of a Like, which must follow each other in the column, with
// anything between them. An empty first or last part leaves that end open.
func (c Condition) Parts() []string {
	if !strings.Contains(c.Text, "%") {
		return []string{"", c.Text, ""}
	}
	return strings.Split(c.Text, "%")
}

// pickGroups sets the groups that a condition on ColumnGroup matches.
func (c *Condition) pickGroups(groups []string) {
	if c.Column != ColumnGroup {
		return
	}
	for _, g := range groups {
		if c.Operation == Like && matches(c.Parts(), foldText(g)) || c.Operation != Like && g == c.Text {
			c.Groups = append(c.Groups, g)
		}
	}
}

// matches reports whether parts follow each other in a text; see Parts.
func matches(parts []string, text string) bool {
	for i, p := range parts {
		at := strings.Index(text, p)
		switch {
		case i == 0 && !strings.HasPrefix(text, p):
			return false
		case i == len(parts)-1 && i > 0:
			return strings.HasSuffix(text, p)
		case at < 0:
			return false
		case i == 0:
			at = 0
		}
		text = text[at+len(p):]
	}
	return true
}

// List searches the users within the operator's reach. The answer and its count do not
// depend on other users. Faults: access_denied, error_bad_bounds,
// error_invalid_filter_value, error_operation_not_supported, invalid_parameters.
func (s *Service) List(ctx context.Context, who audit.Principal, q Search) (Found, error) {
	if q.Start < 0 || q.End < q.Start || q.End > maxPosition || q.End-q.Start > MaxPage {
		return Found{}, fault.Newf(fault.BadBounds, "StartPosition and EndPosition: want 0 or more, in their order, at most %d apart", MaxPage)
	}
	if q.Order < 0 || int(q.Order) >= len(columns) || q.Order == ColumnAuthMethod || q.Order >= ColumnTokenSerial {
		return Found{}, fault.New(fault.UnsupportedOperation, "OrderColumn: users are not ordered by this column")
	}
	conditions, _, err := s.conditions(ctx, who, q.Filters)
	if err != nil {
		return Found{}, err
	}
	return s.SearchStore.SearchUsers(ctx, who.UserID, q, conditions, s.now())
}

// conditions checks filters. It also returns the groups of the operator; see SearchStore.UsersAfter.
func (s *Service) conditions(ctx context.Context, who audit.Principal, filters []Filter) ([]Condition, []string, error) {
	if len(filters) > maxFilters {
		return nil, nil, fault.Newf(fault.InvalidParameters, "Filters: want at most %d", maxFilters)
	}
	conditions := make([]Condition, len(filters))
	for i, f := range filters {
		var err error
		if conditions[i], err = f.condition(); err != nil {
			return nil, nil, err
		}
	}
	limit := MostWalks + 1
	if slices.ContainsFunc(conditions, func(c Condition) bool { return c.Column == ColumnGroup }) {
		limit = 0 // pickGroups needs all
	}
	groups, err := s.GroupsOf(ctx, who, limit)
	if err != nil {
		return nil, nil, err
	}
	for i := range conditions {
		conditions[i].pickGroups(groups)
	}
	return conditions, groups, nil
}

// condition checks a filter.
func (f Filter) condition() (Condition, error) {
	c := Condition{Column: f.Column, Operation: f.Operation}
	if f.Column < 0 || int(f.Column) >= len(columns) {
		return c, fault.New(fault.InvalidParameters, "Column: unknown")
	}
	column := columns[f.Column]
	bad := func(want string) (Condition, error) {
		return c, fault.Newf(fault.InvalidFilterValue, "filter of %s: want %s", column.name, want)
	}
	var fits bool
	switch column.typ {
	case Text:
		fits = f.Operation == Equal || f.Operation == NotEqual || f.Operation == Like
	case Truth:
		fits = f.Operation == Equal || f.Operation == NotEqual
	case Time:
		fits = f.Operation == Equal || f.Operation == NotEqual || f.Operation == Greater || f.Operation == Less
	}
	if !fits {
		return c, fault.Newf(fault.UnsupportedOperation, "filter of %s: this column does not allow the operation", column.name)
	}
	if len(f.Value) > maxFilterValue || !utf8.ValidString(f.Value) {
		return bad("at most " + strconv.Itoa(maxFilterValue) + " bytes of UTF-8")
	}
	switch column.typ {
	case Text:
		c.Text = f.text()
	case Truth:
		switch strings.ToLower(strings.TrimSpace(f.Value)) {
		case "true", "1":
			c.Truth = true
		case "false", "0":
		default:
			return bad("True or False")
		}
	case Time:
		var ok bool
		if c.Time, ok = readTime(f.Value); !ok {
			return bad("a date such as 2026-01-31T12:00:00Z, or Unix seconds")
		}
	}
	return c, nil
}

// text returns the value in the form of its column.
func (f Filter) text() string {
	kind := Login
	switch f.Column {
	case ColumnGroup: // names of groups are case-sensitive, but Like is not
		if f.Operation != Like {
			return f.Value
		}
	case ColumnAuthMethod: // by name, route or address; see package signin for the names
		method := strings.ToLower(f.Value[strings.LastIndexByte(f.Value, '/')+1:])
		return cmp.Or(methodRoutes[method], method)
	case ColumnPhoneNumber:
		kind = PhoneNumber
	case ColumnEmail:
		kind = Email
	}
	if contactKind, ok := kind.contact(); ok && f.Operation != Like {
		if normal, err := contactKind.Normal(f.Value); err == nil {
			return normal
		}
	}
	return foldText(f.Value)
}

// methodRoutes maps names in paths to methods, where they differ.
var methodRoutes = map[string]string{"idonly": "none", "cert": "certificate", "external": "saml"}

// timeLayouts are the forms of ISO 8601 that clients send; without a zone it is UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", time.DateTime, time.DateOnly}

func readTime(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC(), seconds >= 0 && seconds < 1<<40
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
