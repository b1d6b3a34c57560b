// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// maxExport is the largest number of entries in a file.
const maxExport = 20_000

var (
	errTime = fault.New(fault.InvalidParameters, "since, until: want a date such as 2026-01-31")
	errSpan = fault.New(fault.InvalidParameters, "until: want a date that is not before since")
)

// auditForm is the search of the audit log.
type auditForm struct {
	Text      string `query:"q"`
	User      string `query:"user"`
	Login     string `query:"login"`
	Operation string `query:"operation"`
	Outcome   string `query:"outcome"`
	Since     string `query:"since"`
	Until     string `query:"until"` // the whole day
	Attempts  string `query:"attempts"`
	What      string `query:"what"`   // views, all; "": what was done
	Failed    string `query:"failed"` // only what was refused or failed
	Who       string `query:"who"`    // whose entries, see callers
	Before    int64  `query:"before"`
	Far       string `query:"far"` // looks at many more entries
	Format    string `query:"format"`
}

func (f *auditForm) query(w *view.Words) (AuditQuery, error) {
	since, err := timeOf(w, f.Since)
	if err != nil {
		return AuditQuery{}, err
	}
	until, err := timeOf(w, f.Until)
	if err != nil {
		return AuditQuery{}, err
	}
	if len(f.Until) == len(time.DateOnly) {
		until = until.AddDate(0, 0, 1)
	}
	if !until.IsZero() && !until.After(since) {
		return AuditQuery{}, errSpan
	}
	return AuditQuery{
		UserID: strings.ToLower(f.User), Login: f.Login, Operation: f.Operation, Outcome: f.Outcome, Since: since, Until: until, Attempts: f.Attempts != "", Before: f.Before,
	}, nil
}

// tidy removes what people type beside the values: blanks around them, letter case, and the name
// of an operation or of an outcome in place of its identifier.
func (f *auditForm) tidy(w *view.Words) {
	for _, value := range []*string{&f.Text, &f.User, &f.Login, &f.Operation, &f.Outcome, &f.Since, &f.Until} {
		*value = strings.TrimSpace(*value)
	}
	f.Operation = identifier(w.Operations(), f.Operation)
	f.Outcome = identifier(w.Outcomes(), f.Outcome)
	if f.Outcome == strings.ReplaceAll(fault.Failed, " ", "_") {
		f.Outcome = fault.Failed // the only code with blanks, which keys of words have not
	}
}

// identifier returns the identifier that a person means by a text: one in any letter case, or the only
// one that has this name. Any other text is returned itself.
func identifier(known []view.Option, text string) string {
	id := strings.ReplaceAll(text, " ", "_")
	if i := slices.IndexFunc(known, func(o view.Option) bool { return strings.EqualFold(o.Value, id) }); i >= 0 {
		return known[i].Value
	}
	named := slices.DeleteFunc(slices.Clone(known), func(o view.Option) bool { return !strings.EqualFold(o.Text, text) })
	if len(named) != 1 {
		return text
	}
	return named[0].Value
}

// values returns the search as a query.
func (f *auditForm) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"q": f.Text, "user": f.User, "login": f.Login, "operation": f.Operation, "outcome": f.Outcome, "since": f.Since, "until": f.Until, "attempts": f.Attempts, "what": f.What, "failed": f.Failed, "who": f.Who} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

type auditView struct {
	Form  auditForm
	Asked bool // one of the conditions is used
	What  []view.Option
	Who   []view.Option
	Span  string // period in words
	Found string // what the list has, in words
	Table table
	Files []fileLink
	// Operations and Outcomes are what the fields suggest.
	Operations, Outcomes []view.Option

	Partial string // key of what to say if few entries match, and the search has not looked at all of them
}

// fileLink leads to a file.
type fileLink struct{ Address, Name string }

// withoutLogin returns the identifiers in entries that may be of users whose logins the entries do
// not have.
func withoutLogin(entries []audit.Entry) (ids []string) {
	for i := range entries {
		e := &entries[i]
		if e.Principal.Login == "" && objectAt(e.Principal.UserID) != "" {
			ids = append(ids, e.Principal.UserID)
		}
		if objectAt(e.Object) != "" {
			ids = append(ids, e.Object)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// users returns the identifiers in an entry that may be of users.
func users(e *audit.Entry) (ids []string) {
	for _, id := range []string{e.Principal.UserID, e.Object} {
		if objectAt(id) != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// kinds are what a search of the log shows: acts, unless it says otherwise.
var kinds = []string{"", "views", "all"}

// callers are whose entries a search shows, with the function that tells.
var callers = []struct {
	name string
	is   func(e *audit.Entry) bool
}{
	{"", nil},
	{"users", func(e *audit.Entry) bool { return e.Principal.UserID != "" && !e.Principal.Operator }},
	{"operators", func(e *audit.Entry) bool { return e.Principal.Operator }},
	{"apps", func(e *audit.Entry) bool { return e.Principal.UserID == "" && e.Principal.ClientID != "" }},
	{"server", func(e *audit.Entry) bool { return e.Remote == audit.CommandLine }},
}

// wants returns a function that reports whether an entry is of a kind that the form asks for, nil if each is. A form that
// names an operation or an outcome asks for views, too.
func (f *auditForm) wants() (func(e *audit.Entry) bool, error) {
	i := slices.IndexFunc(callers, func(c struct {
		name string
		is   func(e *audit.Entry) bool
	}) bool {
		return c.name == f.Who
	})
	if i < 0 || !slices.Contains(kinds, f.What) {
		return nil, errKind
	}
	all := f.What == "all" || f.What == "" && (f.Operation != "" || f.Outcome != "")
	if all && f.Failed == "" && callers[i].is == nil {
		return nil, nil
	}
	return func(e *audit.Entry) bool {
		return (all || view.Looks(e.Operation) == (f.What == "views")) && (f.Failed == "" || e.Phase == audit.Done && e.Outcome != audit.OK) && (callers[i].is == nil || callers[i].is(e))
	}, nil
}

var errKind = fault.New(fault.InvalidParameters, "what, who: want one of the choices of the page")

// auditTable shows entries, the newest first. logins are those of users that entries name by their
// identifiers alone, reached the users whose pages the reader may see.
func auditTable(w *view.Words, entries []audit.Entry, logins map[string]string, reached map[string]user.Info) table {
	t := table{Title: "audit.title", Head: []string{"audit.at", "audit.caller", "audit.operation", "audit.object", "audit.outcome", "audit.address"}, Empty: "audit.none"}
	at := func(id string) string {
		if _, has := reached[id]; !has {
			return ""
		}
		return personAt(id)
	}
	for _, e := range slices.Backward(entries) {
		outcome := cell{Text: w.Outcome(e.Outcome), Tone: "good"}
		switch {
		case e.Phase == audit.Attempt:
			outcome = cell{Key: "audit.attempt", Tone: "plain"}
		case e.Outcome != audit.OK:
			outcome.Tone, outcome.Beside = "bad", e.Outcome
		}
		login := cmp.Or(e.Principal.Login, logins[e.Principal.UserID], e.Principal.UserID)
		if e.Principal.Actor != "" {
			login += " ← " + e.Principal.Actor
		}
		object := cell{Text: w.Object(e.Object), Address: at(e.Object)}
		if login, ok := logins[e.Object]; ok {
			object.Text = login
		}
		object.Soft = view.Visible(e.Detail)
		t.Rows = append(t.Rows, row{Cells: []cell{{At: e.At, Exact: true}, {Text: login, Address: at(e.Principal.UserID)}, {Audited: e.Operation}, object, outcome, {Text: w.Remote(e.Remote)}}})
	}
	return t
}

// auditLog searches the audit log of the installation.
func (a *API) auditLog(ctx context.Context, r auditForm) (view.View, error) {
	w := view.VisitorOf(ctx).Words
	r.tidy(w)
	v := auditView{Form: r, Operations: w.Operations(), Outcomes: w.Outcomes()}
	v.Asked = r.User != "" || r.Login != "" || r.Operation != "" || r.Outcome != "" || r.Since != "" || r.Until != "" || r.Attempts != "" || r.Who != ""
	for _, k := range kinds {
		v.What = append(v.What, view.Option{Value: k, Text: w.Text("audit.what." + cmp.Or(k, "acts")), Chosen: k == r.What})
	}
	for _, c := range callers {
		v.Who = append(v.Who, view.Option{Value: c.name, Text: w.Text("audit.who." + cmp.Or(c.name, "any")), Chosen: c.name == r.Who})
	}
	v.Span = w.Text("audit.span.days", int(auditSpan/(24*time.Hour)))
	switch {
	case r.Since != "" || r.Until != "":
		v.Span = strings.TrimSpace(r.Since + " – " + r.Until)
	case r.Text == "":
		v.Span = w.Text("audit.span.all")
	}
	v.Found = w.Text("audit.shows." + cmp.Or(r.What, "acts"))
	q, err := a.searchLog(ctx, &r)
	if err != nil {
		return view.View{}, refusedForm{err, a.office(ctx, "audit", "audit.title", "", v)}
	}
	rest.Detail(ctx, r.values().Encode())
	if q.Far = r.Far != ""; q.Far {
		done, err := a.Turns.Take(ctx, rest.Caller(ctx).UserID)
		if err != nil {
			return view.View{}, err
		}
		defer done()
	}
	walk := logWalk
	if q.Far {
		walk = farLogWalk
	}
	entries, before, err := q.read(ctx, a.Log, pageRows, walk)
	if err != nil {
		return view.View{}, err
	}
	logins, err := a.Log.Logins(ctx, withoutLogin(entries))
	if err != nil {
		return view.View{}, err
	}
	var ids []string
	for i := range entries {
		ids = append(ids, users(&entries[i])...)
	}
	reached, err := a.People.ByIDs(ctx, rest.Caller(ctx), ids)
	if err != nil {
		return view.View{}, err
	}
	v.Table = auditTable(w, entries, logins, reached)
	v.Table.Title = "audit.found"
	again := r.values()
	for _, f := range []string{"csv", "json"} {
		again.Set("format", f)
		v.Files = append(v.Files, fileLink{"/operator/audit/export?" + again.Encode(), strings.ToUpper(f)})
	}
	switch {
	case before == 0 && r.Before > 0:
		v.Table.Empty = "audit.no_more"
	case before > 0:
		again.Del("format")
		again.Set("before", strconv.FormatInt(before, 10))
		v.Table.Empty = "audit.none_yet"
		partial, partialFar := "audit.partial", "audit.partial_far"
		if q.has != nil {
			partial, partialFar = "search.log_partial", "search.log_partial_far"
		}
		v.Partial, v.Table.NextKey = goesOn(min(len(entries), pageRows), partial, partialFar, q.Far, again)
		v.Table.Next = "/operator/audit?" + again.Encode()
	}
	return a.office(ctx, "audit", "audit.title", "", v), nil
}

// personHistory is what the audit log has about a user within reach.
func (a *API) personHistory(ctx context.Context, r struct {
	ID     string `path:"id"`
	Before int64  `query:"before"`
}) (view.View, error) {
	v, info, err := a.record(ctx, r.ID, "/history")
	if err != nil {
		return view.View{}, err
	}
	entries, before, err := a.Log.Read(ctx, AuditQuery{UserID: info.ID, Before: r.Before}, pageRows)
	if err != nil {
		return view.View{}, err
	}
	ids := []string{info.ID}
	for i := range entries {
		ids = append(ids, users(&entries[i])...)
	}
	people, err := a.People.ByIDs(ctx, rest.Caller(ctx), ids)
	if err != nil {
		return view.View{}, err
	}
	logins := map[string]string{} // of the users within reach alone
	for id, u := range people {
		logins[id] = cmp.Or(u.Login, noteOf(u))
	}
	t := auditTable(view.VisitorOf(ctx).Words, entries, logins, people)
	t.Title = "history.title"
	if before > 0 {
		t.Next = personAt(info.ID) + "/history?before=" + strconv.FormatInt(before, 10)
	}
	v.Tables = []table{t}
	return a.shown(ctx, v, onPerson{})
}

// exportedColumns are the names of audit.Line in JSON.
var exportedColumns = []string{
	"at", "request_id", "operation", "phase", "outcome", "object", "detail", "user_id", "login", "group", "operator", "client_id", "token_id", "method", "actor", "remote", "duration_us", "client_request_id",
}

// exportedValues returns the values of exportedColumns.
func exportedValues(e *audit.Line) []string {
	return []string{
		e.At.Format(time.RFC3339Nano), e.RequestID, e.Operation, e.Phase, e.Outcome, e.Object, e.Detail, e.UserID, e.Login, e.Group, strconv.FormatBool(e.Operator),
		e.ClientID, e.TokenID, e.Method, e.Actor, e.Remote, strconv.FormatInt(e.Micros, 10), e.Correlation,
	}
}

// exportAudit answers the newest entries that match, the oldest first, as CSV or as a line of
// JSON for each.
func (a *API) exportAudit(ctx context.Context, r auditForm) (rest.File, error) {
	r.tidy(view.VisitorOf(ctx).Words)
	q, err := a.searchLog(ctx, &r)
	if err != nil {
		return rest.File{}, err
	}
	if q.has != nil {
		done, err := a.Turns.Take(ctx, rest.Caller(ctx).UserID)
		if err != nil {
			return rest.File{}, err
		}
		defer done()
	}
	rest.Detail(ctx, r.values().Encode())
	var pages [][]audit.Entry
	const page = 1000
	for have := 0; have < maxExport; {
		entries, before, err := q.read(ctx, a.Log, min(page, maxExport-have), mostLogWalk)
		if err == nil && q.has != nil && before > 0 && len(entries) < min(page, maxExport-have) {
			err = errLongLog
		}
		if err != nil {
			return rest.File{}, err
		}
		pages, have = append(pages, entries), have+len(entries)
		if before == 0 {
			break
		}
		q.Before = before
	}
	var text bytes.Buffer
	table, lines := csv.NewWriter(&text), json.NewEncoder(&text)
	asCSV := r.Format != "json"
	write := func(e *audit.Line) error {
		if !asCSV {
			return lines.Encode(e)
		}
		values := exportedValues(e)
		for i, v := range values {
			values[i] = view.Inert(v)
		}
		return table.Write(values)
	}
	if asCSV {
		err = table.Write(exportedColumns)
	}
	for _, entries := range slices.Backward(pages) {
		for _, e := range entries {
			line := audit.LineOf(&e)
			err = cmp.Or(err, write(&line))
		}
	}
	table.Flush()
	if err = cmp.Or(err, table.Error()); err != nil {
		return rest.File{}, err
	}
	if asCSV {
		return rest.File{Content: bytes.NewReader(text.Bytes()), Name: "audit.csv", Type: "text/csv; charset=utf-8"}, nil
	}
	return rest.File{Content: bytes.NewReader(text.Bytes()), Name: "audit.jsonl", Type: "application/jsonl"}, nil
}
