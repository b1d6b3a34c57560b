// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/approval"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/waiting"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

var requestHead = []string{"requests.number", "requests.kind", "requests.subject", "requests.authority", "requests.at", "certificate.state"}

// requestRow describes a request and, if it waits, what can be done about it. from is the list
// that it is in, see lists.
func (a *API) requestRow(ctx context.Context, q *keys.Request, from string) (r row, err error) {
	number := strconv.FormatInt(q.ID, 10)
	kind := "requests.kind." + q.Type.String()
	if q.ForEncryption() {
		kind += ".encrypts"
	}
	r = row{Cells: []cell{
		{Text: number}, {Key: kind}, {Text: cmp.Or(view.PersonIn(q.Subject), "№ "+strconv.FormatInt(q.CertificateID, 10))}, {Text: q.AuthorityName},
		{At: q.CreatedAt}, {Key: "requests.status." + q.Status.String()},
	}}
	if q.Status == keys.Pending {
		r.Commands, err = a.acts(ctx, &object{ID: q.UserID, Of: number, from: from}, "request-approve")
		r.Commands[0].Key = "requests.look"
	}
	return r, err
}

// requests lists the requests that wait, of all users within reach.
func (a *API) requests(ctx context.Context, r struct {
	Done  string `query:"done"`
	After int64  `query:"after"`
}) (view.View, error) {
	wait, err := view.WaitFor(ctx, waiting.Office, "")
	if err != nil {
		return view.View{}, err
	}
	list, err := a.Keys.WaitingFor(ctx, rest.Caller(ctx), r.After, pageRows)
	if err != nil {
		return view.View{}, err
	}
	users := make([]string, len(list))
	for i, q := range list {
		users[i] = q.UserID
	}
	people, err := a.aboutAll(ctx, users)
	if err != nil {
		return view.View{}, err
	}
	t := table{Title: "requests.title", Head: slices.Insert(slices.Clone(requestHead), 1, "person.title"), Empty: "requests.none"}
	for i, q := range list {
		r, err := a.requestRow(ctx, q, "requests")
		if err != nil {
			return view.View{}, err
		}
		r.Cells = slices.Insert(r.Cells, 1, people[i])
		t.Rows = append(t.Rows, r)
	}
	if len(list) == pageRows {
		t.Next = "/operator/requests?after=" + strconv.FormatInt(list[len(list)-1].ID, 10)
	}
	return a.live(ctx, "requests.title", r.Done, wait, t), nil
}

var operationHead = []string{"person.title", "signed.operation", "operations.action", "certificate.state", "person.begun"}

// underWayRow describes an operation under way.
func (a *API) underWayRow(ctx context.Context, o *operation.UnderWay) (row, error) {
	commands, err := a.acts(ctx, &object{ID: o.UserID, Of: o.ID, from: "operations"}, "operation-cancel")
	return row{
		Cells:    []cell{{Text: cmp.Or(o.Login, o.DisplayName, o.UserID), Address: personAt(o.UserID)}, {Text: o.ID, Code: true}, {Key: "action." + o.Action}, {Key: "operation." + string(o.State)}, {At: o.CreatedAt}},
		Commands: commands,
	}, err
}

// underWay lists the operations under way of all users within reach, the oldest first.
func (a *API) underWay(ctx context.Context, r struct {
	Done  string `query:"done"`
	Since int64  `query:"since"` // milliseconds
	After string `query:"after"`
}) (view.View, error) {
	after := operation.UnderWay{ID: r.After}
	if r.Since > 0 {
		after.CreatedAt = time.UnixMilli(r.Since)
	}
	list, err := a.Active.UnderWay(ctx, rest.Caller(ctx), after, pageRows)
	if err != nil {
		return view.View{}, err
	}
	t := table{Title: "operations.title", Head: operationHead, Empty: "operations.none"}
	for _, o := range list {
		r, err := a.underWayRow(ctx, &o)
		if err != nil {
			return view.View{}, err
		}
		t.Rows = append(t.Rows, r)
	}
	if len(list) == pageRows {
		last := list[len(list)-1]
		t.Next = "/operator/operations?" + url.Values{"since": {strconv.FormatInt(last.CreatedAt.UnixMilli(), 10)}, "after": {last.ID}}.Encode()
	}
	return a.office(ctx, "sections", "operations.title", r.Done, sections{Tables: []table{t}}), nil
}

// approvals lists the changes of operators that wait for a second operator or for their time.
func (a *API) approvals(ctx context.Context, r struct {
	Done  string `query:"done"`
	After string `query:"after"`
}) (view.View, error) {
	wait, err := view.WaitFor(ctx, waiting.Office, "")
	if err != nil {
		return view.View{}, err
	}
	list, err := a.Approvals.List(ctx, rest.Caller(ctx), r.After, pageRows)
	if err != nil {
		return view.View{}, err
	}
	t := table{Title: "approvals.title", Head: []string{"audit.operation", "approvals.by", "audit.object", "certificate.state", "approvals.from", "approvals.until"}, Empty: "approvals.none"}
	objects := make([]string, len(list))
	for i := range list {
		objects[i] = list[i].Object
	}
	names, err := a.aboutAll(ctx, objects)
	if err != nil {
		return view.View{}, err
	}
	for i, h := range list {
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Audited: h.Operation, Address: "/operator/approvals/" + h.ID}, {Text: h.Login}, names[i], approvalState(&h),
			{At: h.NotBefore}, {At: h.ExpiresAt},
		}})
	}
	if len(list) == pageRows {
		t.Next = "/operator/approvals?" + url.Values{"after": {list[len(list)-1].ID}}.Encode()
	}
	return a.live(ctx, "approvals.title", r.Done, wait, t), nil
}

// objectAt returns the page of the user with an identifier, "" for no user.
func objectAt(id string) string {
	if len(id) != 36 {
		return ""
	}
	return personAt(id)
}

// about shows the object of a request: a user within reach by name, anything else as it is.
func (a *API) about(ctx context.Context, id string) (cell, error) {
	c, err := a.aboutAll(ctx, []string{id})
	if err != nil {
		return cell{}, err
	}
	return c[0], nil
}

// aboutAll is about for many objects. It asks for all users at once.
func (a *API) aboutAll(ctx context.Context, ids []string) ([]cell, error) {
	cells := make([]cell, len(ids))
	var users []string
	for i, id := range ids {
		if cells[i] = (cell{Text: id, Address: objectAt(id)}); cells[i].Address != "" {
			users = append(users, id)
		}
	}
	slices.Sort(users)
	found, err := a.People.ByIDs(ctx, rest.Caller(ctx), slices.Compact(users))
	for i, id := range ids {
		if u, ok := found[id]; ok {
			cells[i].Text = noteOf(u)
		}
	}
	return cells, err
}

// approvalObject finds a request that waits. Who decides about it sees what it does, and to whom.
func (a *API) approvalObject(ctx context.Context, _, of string) (*object, error) {
	h, _, err := a.Approvals.Read(ctx, rest.Caller(ctx), of)
	if err != nil {
		return nil, err
	}
	about, err := a.about(ctx, h.Object)
	if err != nil {
		return nil, err
	}
	return &object{Of: of, Note: view.VisitorOf(ctx).Words.Audited(h.Operation) + " – " + about.Text, back: "/operator/approvals", unnamed: true}, nil
}

// approvalRequest shows what a request would do.
func (a *API) approvalRequest(ctx context.Context, r struct {
	Request string `path:"request"`
}) (view.View, error) {
	who := rest.Caller(ctx)
	rest.Detail(ctx, "request "+r.Request)
	h, call, err := a.Approvals.Read(ctx, who, r.Request)
	if err != nil {
		return view.View{}, err
	}
	about, err := a.about(ctx, h.Object)
	if err != nil {
		return view.View{}, err
	}
	onPage := call.Method == http.MethodPost && strings.HasPrefix(call.Target, "/operator/")
	t := table{Title: "approvals.request", Facts: true, Rows: []row{
		fact("audit.operation", cell{Audited: h.Operation}), fact("approvals.by", cell{Text: h.Login}), fact("audit.object", about), fact("certificate.state", approvalState(&h)),
	}}
	if h.DecidedBy != "" {
		t.Rows = append(t.Rows, fact("approvals.decided", cell{Text: h.DecidedBy}))
	}
	if onPage {
		t.Rows = append(t.Rows, a.approvalForm(ctx, &call)...)
	}
	t.Rows = append(t.Rows, fact("approvals.asks", cell{Text: call.Method + " " + call.Target, Code: true}))
	if body := string(rest.StoredBody(call.Value)); body != "" {
		t.Rows = append(t.Rows, fact("approvals.with", cell{Text: body, Code: true}))
	}
	t.Rows = append(t.Rows, fact("requests.at", cell{At: h.CreatedAt}), fact("approvals.from", cell{At: h.NotBefore}), fact("approvals.until", cell{At: h.ExpiresAt}))
	open := h.State == approval.Waiting || h.State == approval.Approved
	if h.Requester != who.UserID && h.Approval && h.State == approval.Waiting {
		t.Commands = append(t.Commands, a.commandLink("/operator/approvals", "", "approval-approve", h.ID))
	}
	if open {
		t.Commands = append(t.Commands, a.commandLink("/operator/approvals", "", "approval-refuse", h.ID))
	}
	// The form of a request that was made on a page is at the address that it was sent to.
	if open && onPage && h.Requester == who.UserID {
		t.Commands = append(t.Commands, link{Address: formAgain(call.Target, h.ID), Key: "approvals.again"})
	}
	return a.office(ctx, "sections", "approvals.title", "", sections{Tables: []table{t}}), nil
}

// approvalForm says in words what the form of a command asks for: the command, what it is done to, and the
// fields as the form calls them. A field without words is in the exact request only.
func (a *API) approvalForm(ctx context.Context, call *approval.Call) []row {
	target, err := url.Parse(call.Target)
	if err != nil {
		return nil
	}
	d, of := a.commandsByName[path.Base(target.Path)], target.Query().Get("of")
	if d == nil {
		return nil
	}
	rows := []row{fact("approvals.does", cell{Key: d.titleKey()})}
	if of != "" {
		rows = append(rows, fact("approvals.of", cell{Text: of}))
	}
	form := storedForm(call)
	if form == nil {
		return rows
	}
	fields := d.fields
	if d.more != nil { // without them if the user is gone
		if more, err := d.more(ctx, &object{ID: call.Object, Of: of}); err == nil {
			fields = slices.Concat(fields, more)
		}
	}
	w := view.VisitorOf(ctx).Words
	for i := range fields {
		f, values := &fields[i], slices.Clone(form[fields[i].name])
		options := showOptions(w, f.choices)
		for j, v := range values {
			if k := slices.IndexFunc(options, func(o view.Option) bool { return o.Value == v }); k >= 0 {
				values[j] = options[k].Text
			}
		}
		text := strings.Join(values, ", ")
		if text == "" && (f.value != "" || len(f.values) > 0) { // the change empties the field
			text = w.Text("approvals.empty")
		}
		if text != "" {
			rows = append(rows, row{Cells: []cell{{Text: cmp.Or(f.label, w.Text(f.labelKey()))}, {Text: text}}})
		}
	}
	return rows
}

// approvalState says what a request waits for, or how it ended.
func approvalState(h *approval.Request) cell {
	if h.State == approval.Waiting && !h.Approval {
		return cell{Key: "approvals.state.Delayed"}
	}
	return cell{Key: "approvals.state." + string(h.State)}
}

// formAgain returns the address of the form of a request that waits, filled in as it was sent.
func formAgain(target, id string) string {
	u, err := url.Parse(view.Local(target))
	if err != nil {
		return view.Local(target)
	}
	q := u.Query()
	q.Set("approval", id)
	u.RawQuery = q.Encode()
	return u.String()
}

// storedForm returns the form of a request that waits, nil for one that was made otherwise.
func storedForm(call *approval.Call) rest.Form {
	var form rest.Form
	if json.Unmarshal(rest.StoredBody(call.Value), &form) != nil {
		return nil
	}
	return form
}

// fillStored fills in the form of a command as the person sent it in a request that waits, so that it
// can be sent again unchanged.
func (a *API) fillStored(ctx context.Context, d *command, asked *view.View, id string) error {
	h, call, err := a.Approvals.Read(ctx, rest.Caller(ctx), id)
	if err != nil {
		return err
	}
	target, err := url.Parse(call.Target)
	if form := storedForm(&call); err == nil && form != nil && h.Requester == rest.Caller(ctx).UserID && target.Path == view.VisitorOf(ctx).Path {
		fill(asked, d, form)
	}
	return nil
}

// waitingView is what a form answers that waits.
type waitingView struct{ Sentence, At, Back string }

// WaitsView is the page of a request that waits. It is no failure: it says what happens next. back is the page
// that the form belongs to.
func WaitsView(w *view.Words, h *approval.Request, back string) view.View {
	sentence := w.Text("approvals.waits.delay", w.When(h.NotBefore), w.When(h.ExpiresAt))
	if h.Approval && h.State == approval.Waiting {
		sentence = w.Text("approvals.waits.approval", w.When(h.ExpiresAt))
	}
	return view.View{Template: "operator/waits", Title: "approvals.waits.title", Content: waitingView{sentence, "/operator/approvals/" + h.ID, back}}
}

func (a *API) approvalCommands() []command {
	decide := func(approve bool) func(context.Context, *object, rest.Form) (*made, error) {
		return func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Detail(ctx, "request "+o.Of)
			_, err := a.Approvals.Decide(ctx, rest.Caller(ctx), o.Of, approve)
			return nil, err
		}
	}
	return []command{
		{name: "approval-approve", operation: "GiveApproval", effects: does(effect.None), do: decide(true)},
		{name: "approval-refuse", operation: "RefuseApproval", effects: does(effect.None), do: decide(false)},
	}
}

// timeOf reads a day or a time of a form in the zone of the reader, "" is the zero time.
func timeOf(w *view.Words, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, w.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errTime
}
