// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"html/template"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Rights to pages besides those of package rest.
const (
	// Operator is the right of user management: the caller is an operator, and if the path
	// names a user, one within reach.
	Operator rest.Right = "operator"
	// Auditor is the right to read what concerns the whole installation.
	Auditor rest.Right = "auditor"
	// Administrator is the right to change it.
	Administrator rest.Right = "administrator"
)

// Fact is a line about the installation.
type Fact struct {
	Key   string // of the words
	Value string
	Word  string        // key of a text in place of the value
	Span  time.Duration // that the text has; 0: none
	Bad   bool
	// Failed is the message of a check that failed, in place of the value. The sentence
	// failed.KEY says what that means.
	Failed string
}

// Installation is the state of the installation.
type Installation struct {
	Facts  []Fact
	Nodes  []Node
	Limits []Limit
}

// Node is a process of the installation.
type Node struct {
	ID, Host, Version string
	SealsWith         string // name of a master key
	SeenAt            time.Time
	This              bool // the process that shows the page
	Silent            bool // it has ended without a word, or hangs
}

// Limit is a setting that limits something. Its value is a number, a time.Duration or Bytes.
type Limit struct {
	Setting string
	Value   any
}

// SourceState says how an outside service answered: a time-stamp service, a responder (OCSP), a
// source of revocation lists or of certificates.
type SourceState struct {
	Kind, Host      string
	Asked, Answered time.Time // last; Answered is zero without any answer
	Took            time.Duration
	Failures        int    // since it answered
	Error           string // of the last failure
}

// AuditQuery selects audit entries. An empty field selects all. Letter case in Login does not matter.
type AuditQuery struct {
	UserID, Login, Operation, Outcome string
	Since, Until                      time.Time // Until itself is not selected
	Attempts                          bool
	Before                            int64 // position, see AuditLog
	Far                               bool  // look at many more entries, see AuditLog
}

// AuditLog reads the audit log.
type AuditLog interface {
	// Read returns the newest entries that match, the oldest of them first, and the position
	// before which the next call continues, 0 for the end. It may return fewer than limit
	// before the end: a call looks at a bounded number of entries, with Far at a larger one.
	Read(ctx context.Context, q AuditQuery, limit int) (list []audit.Entry, before int64, err error)
	// Logins returns the logins of those of the identifiers that are of users.
	Logins(ctx context.Context, ids []string) (map[string]string, error)
}

// Permit checks the rights of pages, for [rest.Gate]. An operator who acts for a user has no
// right here: the sessions of pages are of people themselves.
func (a *API) Permit(ctx context.Context, who audit.Principal, right rest.Right, value func(name string) string) error {
	switch {
	case who.Actor != "" || who.Confirmation != "":
	case right == Operator:
		return a.Deps.Permit(ctx, who, right, value)
	case a.may(who, right):
		return nil
	}
	return fault.New(fault.AccessDenied, "this page is for other people")
}

// may reports whether a person has a right that does not depend on a user.
func (a *API) may(who audit.Principal, right rest.Right) bool {
	administrator := slices.Contains(a.Administrators, who.UserID)
	switch right {
	case Operator:
		return who.Operator
	case Auditor:
		return who.Operator && (administrator || slices.Contains(a.Auditors, who.UserID))
	case Administrator:
		return who.Operator && administrator
	}
	return false
}

// office is an entry of the list of pages of operators.
type office struct {
	view.Tab
	right rest.Right
	group string // key of the title of its part of the list
}

var offices = []office{
	{view.Tab{Address: "/operator/people", Key: "side.people", Icon: "users"}, Operator, "operator.group.people"},
	{view.Tab{Address: "/operator/requests", Key: "side.requests", Icon: "certificate"}, Operator, "operator.group.people"},
	{view.Tab{Address: "/operator/operations", Key: "side.operations", Icon: "clock"}, Operator, "operator.group.people"},
	{view.Tab{Address: "/operator/approvals", Key: "side.held", Icon: "pause"}, Operator, "operator.group.people"},
	{view.Tab{Address: "/operator/groups", Key: "side.groups", Icon: "rules"}, Administrator, "operator.group.people"},
	{view.Tab{Address: "/operator/installation", Key: "side.state", Icon: "pulse"}, Auditor, "operator.group.service"},
	{view.Tab{Address: "/operator/audit", Key: "side.audit", Icon: "journal"}, Auditor, "operator.group.service"},
	{view.Tab{Address: "/operator/messages", Key: "side.messages", Icon: "send"}, Administrator, "operator.group.service"},
	{view.Tab{Address: "/operator/tokens", Key: "side.tokens", Icon: "token"}, Administrator, "operator.group.service"},
	{view.Tab{Address: "/operator/webhooks", Key: "side.webhooks", Icon: "link"}, Administrator, "operator.group.service"},
	{view.Tab{Address: "/operator/services", Key: "side.services", Icon: "server"}, Auditor, "operator.group.service"},
}

// operatorView is what every page of operators has.
type operatorView struct {
	Done string // key of what was done just now; "": nothing
	Undo *link  // undoes it; nil: that is not possible
	Page any
	// Sentence and Detail say why the form on the page was refused.
	Sentence, Detail string
}

// refusedForm is a fault about a form of operators. Its page is the form with what was typed.
type refusedForm struct {
	error
	form view.View
}

func (r refusedForm) Unwrap() error { return r.error }

// Again returns the form with the reason above it.
func (r refusedForm) Again(why view.Refusal) view.View {
	v := r.form.Content.(operatorView)
	v.Sentence, v.Detail = why.Sentence, why.Detail
	r.form.Content = v
	return r.form
}

// office returns a page of operators.
func (a *API) office(ctx context.Context, template, title, done string, content any) view.View {
	v := operatorView{Page: content}
	if d := a.commandsByName[done]; d != nil {
		v.Done = "command.done." + d.wording()
	} else if done == lockLater || done == roleGone {
		v.Done = "command.done." + done
	}
	return view.View{Template: "operator/" + template, Title: title, Content: v, Side: a.side(ctx)}
}

// live makes a list that goes on by itself when something else waits for the operator.
func (a *API) live(ctx context.Context, title, done string, wait view.Wait, t table) view.View {
	v := a.office(ctx, "sections", title, done, sections{Tables: []table{t}, Wait: wait})
	if wait.Address != "" {
		v.Script = view.WaitScript
	}
	return v
}

// side returns the list of the pages that the operator may see.
func (a *API) side(ctx context.Context) []view.Group {
	var groups []view.Group
	who, here := rest.Caller(ctx), view.VisitorOf(ctx).Path
	for _, o := range offices {
		if !a.may(who, o.right) {
			continue
		}
		if len(groups) == 0 || groups[len(groups)-1].Key != o.group {
			groups = append(groups, view.Group{Key: o.group})
		}
		g := &groups[len(groups)-1]
		g.Tabs = append(g.Tabs, o.At(here))
	}
	return groups
}

// mostCounted is what the list of pages counts to.
const mostCounted = 99

// Waits returns what waits for an operator, by the address of its page. Both are queries with a bound, so each page asks
// again: a number that is kept would be wrong after the operator has answered.
func (a *API) Waits(ctx context.Context, who audit.Principal) (map[string]view.Waits, error) {
	var requests, changes view.Waits
	err := view.Concurrently(
		func() (err error) {
			requests.N, requests.More, err = a.Keys.CountWaitingFor(ctx, who, mostCounted)
			return err
		},
		func() error {
			list, err := a.Approvals.List(ctx, who, "", mostCounted+1)
			changes = view.Waits{N: min(len(list), mostCounted), More: len(list) > mostCounted}
			return err
		})
	return map[string]view.Waits{"/operator/requests": requests, "/operator/approvals": changes}, err
}

// Routes returns the pages of operators.
func (a *API) Routes() []rest.Route {
	routes := []rest.Route{
		view.Handle("GET /operator", "OperatorPage", Operator, a.operatorStart),
		view.Handle("GET /operator/people", "GetUsers", Operator, a.people),
		rest.Handle("GET /operator/people/export", "ExportUsers", Operator, a.exportPeople).Answering(rest.File{}),
		view.Handle("POST "+proposalAt, "ProposeLogin", Operator, a.proposeLogin).Effects(effect.None),
		view.Handle("GET /operator/people/bulk", "GetUsers", Operator, a.askBulk),
		view.Handle("POST /operator/people/bulk", "ChangeUsers", Operator, a.doBulk).Effects(effect.None), // each command has its own
		view.Handle("GET /operator/people/{id}", "GetUserById", Operator, a.person),
		view.Handle("GET /operator/people/{id}/history", "ReadAudit", Operator, a.personHistory),
		view.Handle("GET /operator/requests", "ListRequests", Operator, a.requests),
		view.Handle("GET /operator/operations", "ListOperations", Operator, a.underWay),
		view.Handle("GET /operator/approvals", "GetApprovals", Operator, a.approvals),
		view.Handle("GET /operator/approvals/{request}", "GetApproval", Operator, a.approvalRequest),
		view.Handle("GET /operator/groups", "ListGroups", Administrator, a.groups),
		view.Handle("GET /operator/audit", "ReadAudit", Auditor, a.auditLog),
		rest.Handle("GET /operator/audit/export", "ExportAudit", Auditor, a.exportAudit).Answering(rest.File{}),
		view.Handle("GET /operator/messages", "ListMessages", Administrator, a.messages),
		view.Handle("GET /operator/messages/preview", "PreviewMessage", Administrator, a.previewMessage),
		view.Handle("GET /operator/tokens", "ListTokens", Administrator, a.tokens),
		view.Handle("GET /operator/webhooks", "ListWebhooks", Administrator, a.webhooks),
		view.Handle("GET /operator/webhooks/{webhook}", "GetWebhook", Administrator, a.webhook),
		view.Handle("GET /operator/services", "ListTSPServices", Auditor, a.services),
		view.Handle("GET /operator/installation", "ShowInstallation", Auditor, a.installation),
	}
	for _, t := range personTabs {
		routes = append(routes, view.Handle("GET /operator/people/{id}"+t.at, "GetUserById", Operator, a.personPage(t)))
	}
	for _, g := range a.commandGroups {
		routes = append(routes, a.commandRoutes(g)...)
	}
	return routes
}

// operatorStart leads to the first page that the person may see.
func (a *API) operatorStart(ctx context.Context, r struct {
	Done string `query:"done"`
}) (view.View, error) {
	var s sections
	counts, err := a.Waits(ctx, rest.Caller(ctx))
	if err != nil {
		return view.View{}, err
	}
	facts := table{Title: "operator.waits", Facts: true}
	for _, c := range []struct{ key, address string }{{"operator.requests", "/operator/requests"}, {"operator.changes", "/operator/approvals"}} {
		facts.Rows = append(facts.Rows, row{Cells: []cell{{Key: c.key}, {Text: counts[c.address].String(), Address: c.address}}})
	}
	s.Tables = append(s.Tables, facts)
	return a.office(ctx, "sections", "operator.title", r.Done, s), nil
}

// sections are the usual content of a page of operators.
type sections struct {
	Lead   string    // untrusted text of the first line; "": none
	Wait   view.Wait // for a change of the list; the zero value: nothing
	Tables []table
}

// table is a list, or facts in pairs.
type table struct {
	Title string // key
	Count string // how many there are, in words; "": not said
	// Filters lead to parts of the list. One of them is the part that is shown.
	Filters  []view.Tab
	Head     []string // keys of the columns
	Rows     []row
	Facts    bool      // pairs of a name and a value
	Narrow   bool      // the names of facts are above the values
	Empty    string    // key of what is said without rows
	Commands []link    // below the table
	Lacks    []missing // below the commands
	Next     string    // address of the next page; "": none
	// NextKey says what leads there, if it is not the next page.
	NextKey string
}

type row struct {
	Cells    []cell
	Commands []link
}

// cell is a value in a table: a text, a word, a time or an address.
type cell struct {
	Text    string
	Key     string // of a word in place of the text
	Audited string // operation of the audit log in place of the text, shown with its name
	At      time.Time
	Exact   bool     // the seconds of At matter
	Address string   // that the cell leads to
	Notes   []string // keys of marks beside it that warn of nothing
	Badges  []string // keys of marks beside it
	Bad     bool     // the marks are warnings
	Beside  string   // identifier after the text, small
	Soft    string   // more about it, after the text
	Tone    string   // the text is a state: good, bad or plain; "": it is not
	Detail  string   // message of a failure, in English or in words of details
	Code    bool
}

// shownRow is a row as the templates need it. A list has hundreds of cells, and a call of a function
// from a template costs more than all else that is done for a cell.
type shownRow struct {
	Cells    []shownCell
	Commands []shownLink
}

type shownCell struct {
	Head          string // name of its column; "": none
	Text, Address string
	Code          bool
	More          *cell // nil: nothing beside the text
}

type shownLink struct {
	link
	Text string
}

// functions are those of the templates of operators.
func functions(w *view.Words) template.FuncMap {
	return template.FuncMap{
		"rows":  func(t table) []shownRow { return showRows(w, t) },
		"cells": func(list []cell) []shownCell { return showCells(w, list) },
		"bulk":  func() []string { return bulkCommands },
		"links": func(list []link) []shownLink { return showLinks(w, list) },
	}
}

func showRows(w *view.Words, t table) []shownRow {
	head := make([]string, len(t.Head))
	for i, key := range t.Head {
		head[i] = w.Text(key)
	}
	rows := make([]shownRow, len(t.Rows))
	for i := range t.Rows {
		r := &t.Rows[i]
		rows[i].Cells = showCells(w, r.Cells)
		for j := range min(len(head), len(r.Cells)) {
			rows[i].Cells[j].Head = head[j]
		}
		rows[i].Commands = showLinks(w, r.Commands)
	}
	return rows
}

func showLinks(w *view.Words, list []link) []shownLink {
	links := make([]shownLink, len(list))
	for i, l := range list {
		links[i] = shownLink{l, w.Text(l.Key)}
	}
	return links
}

func showCells(w *view.Words, list []cell) []shownCell {
	cells := make([]shownCell, len(list))
	for i := range list {
		c := &list[i]
		cells[i] = shownCell{Text: cellText(w, c), Address: c.Address, Code: c.Code}
		if c.Audited != "" || c.Beside != "" || c.Soft != "" || c.Tone != "" || c.Detail != "" || c.Bad || len(c.Notes) > 0 || len(c.Badges) > 0 {
			cells[i].More = c
		}
	}
	return cells
}

// cellText returns the text of a cell.
func cellText(w *view.Words, c *cell) string {
	switch {
	case c.Key != "":
		return w.Text(c.Key)
	case !c.At.IsZero() && c.Exact:
		return w.Moment(c.At)
	case !c.At.IsZero():
		return w.When(c.At)
	case c.Audited != "":
		return w.Audited(c.Audited)
	}
	return view.Visible(c.Text)
}

// link leads to a page, or does a command.
type link struct {
	Address, Key string
	About        string       // what of several it is for; "": the page says so
	Post         bool         // a button that sends a form, with Values, to the address
	Values       []formValue  // of the form
	Dialog       *commandView // the form, in a dialog; nil: none
	Class        string       // of the button, besides that of its place
}

// formValue is a value of a form that is not typed.
type formValue struct{ Name, Value string }

// Acts reports whether a row has commands.
func (t table) Acts() bool {
	return slices.ContainsFunc(t.Rows, func(r row) bool { return len(r.Commands) > 0 })
}

// pageRows is the number of rows of a page of a long list.
const pageRows = 50
