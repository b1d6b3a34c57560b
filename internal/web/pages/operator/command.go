// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// command is something that operators do. It has a page that says what the command does and asks
// for what it needs; the form of the page does it. The words of a command are command.NAME, its
// title, command.does.NAME, its consequences, and command.done.NAME. command.own.NAME says what else it means
// for an operator who does it to the own account.
type command struct {
	name  string // last part of the address
	words string // in place of the name in the keys of the words; "": the name
	title string // in place of words in the key of the title
	// operation is the name of the same operation of the interface, or of the program, for
	// the audit log, the events, and the rules of requests that wait.
	operation string
	fields    []field
	// more returns fields that depend on the object.
	more func(ctx context.Context, o *object) ([]field, error)
	// named asks for the name of the object, because the command ends something for good.
	named bool
	// plain asks nothing: a button of a page does the command at once. What it does can be undone, by the command undo if
	// that is named, or is harmless.
	plain bool
	undo  string
	// dialog asks in a dialog although the command has fields. A command without fields that is not plain always does,
	// unless it is looked at on a page of its own.
	dialog, page bool
	template     string // of the form; "": that of all commands
	script       string // of the page; "": none
	tab          string // end of the address of the page of a person that the command leads back to
	// adds something new to the installation: the command is about no object.
	adds bool
	// about finds and describes the thing in [object.Of], and returns the fault for one that is
	// missing. A command on a user without it is about the user alone.
	about func(ctx context.Context, o *object) (row, error)
	// possible returns the fault of a command that cannot be done to the object as it is now.
	possible func(ctx context.Context, o *object) error
	// ends counts what the command ends.
	ends func(ctx context.Context, o *object) ([]ending, error)
	// effects are those of the same operation of the interface, for what the form asks for. A
	// program with a command without them does not start.
	effects *effects
	// blames returns the field that a fault is about, "" for none, and more about it.
	blames func(ctx context.Context, f rest.Form, err *fault.Error) (name, more string)
	do     func(ctx context.Context, o *object, f rest.Form) (*made, error)
}

// effects are the effects on people, keys and policies that a command may have, and those of one form:
// with the user and the thing that it is about. of reads the form with the function that the command
// itself reads it with.
type effects struct {
	possible effect.Set
	of       func(ctx context.Context, id, of string, f rest.Form) (effect.Set, error) // nil: always all
}

// does returns the effects of a command that always has the same.
func does(e effect.Set) *effects { return &effects{possible: e} }

// made is what a command made that is shown once. nil: nothing is shown.
type made struct {
	Secret  string       // to copy
	Text    string       // text of the picture, to copy
	Picture template.URL // QR code
	Note    string       // key of what to do with it
	Facts   []Fact
	file    *rest.File // answered in place of a page
	// registered is what became of a registration, for a page of its own.
	registered *registered
	imported   *importView // what became of a list, likewise
	to         string      // page to go on at; "": the page of the object
	done       string      // in place of the name of the command in the key of what was done; "": the name
}

// ending is something that ends, and how often.
type ending struct {
	Key string
	N   int
}

// object is what a command is done to.
type object struct {
	ID     string // of the user; "" for commands that are about none
	Of     string // what of the user or of the installation, such as a phone or a number
	Name   string // the name that the person types to confirm a command
	Note   string // more about the object
	back   string
	cookie string // session of the caller, for commands that send forms themselves
	from   string // name in lists of the list that the command was asked for from; "": none
	about  []cell // what command.about returned
	// request is the request for a certificate that the command decides about, with the parts of its name, first the
	// ones that differ from the record of the user; nil: it is about something else.
	request *keys.Request
	parts   []keys.Part
	// unnamed objects have an identifier in Of that says nothing to people: Note does.
	unnamed bool
}

// Shown is what the page of a command says of what it is done to, besides Note.
func (o *object) Shown() string {
	if o.unnamed {
		return ""
	}
	return o.Of
}

// field is a field of the form of a command.
type field struct {
	name     string // in the form; its label is field.NAME
	label    string // in place of the word, such as the name of a component
	kind     kind
	required bool
	hint     string // key; "": none
	value    string
	values   []string // chosen ones, of several
	choices  []pick
	varying  bool // differs when the same request is sent again, as codes do
}

type kind string

// The kinds of fields.
const (
	kindText   kind = "text"
	kindNumber kind = "number"
	kindSecret kind = "password"
	kindArea   kind = "area"
	kindChoice kind = "choice"
	kindMany   kind = "many"
	kindFile   kind = "file" // its value is the content
	kindTick   kind = "tick" // a box that must be ticked; its value is yes
)

// pick is a value of a choice.
type pick struct {
	Value  string
	Text   string
	Key    string // of a word in place of Text
	Chosen bool
}

// shownField is a field as the template needs it.
type shownField struct {
	ID                       string // beginning of the id, in a page with several forms; "": the name is enough
	Name, Label, Hint, Value string
	Kind                     kind
	Rows                     int // of the text
	Problem                  string
	Required                 bool
	Options                  []view.Option
}

func (f *field) labelKey() string { return "field." + strings.ReplaceAll(f.name, "-", "_") }

func (f *field) show(w *view.Words) shownField {
	s := shownField{Name: f.name, Label: f.label, Value: f.value, Kind: cmp.Or(f.kind, kindText), Required: f.required}
	if s.Label == "" {
		s.Label = w.Text(f.labelKey())
	}
	if f.hint != "" {
		s.Hint = w.Text(f.hint)
	}
	if f.kind == kindArea {
		s.Rows = 8
	}
	s.Options = showOptions(w, f.choices)
	for i := range s.Options {
		o := &s.Options[i]
		o.Chosen = o.Value == f.value && f.kind == kindChoice || slices.Contains(f.values, o.Value)
	}
	return s
}

// Limits of texts in forms, in characters, and of files, in bytes.
const (
	maxText  = 1024
	maxArea  = 8 << 20
	maxFrame = 64 << 10 // bytes of a form with a file or a long text besides it
)

// takesFiles reports whether the form has a field for a file.
func (d *command) takesFiles() bool {
	return slices.ContainsFunc(d.fields, func(f field) bool { return f.kind == kindFile })
}

// long reports whether the form has a field for a long text.
func (d *command) long() bool {
	return slices.ContainsFunc(d.fields, func(f field) bool { return f.kind == kindArea })
}

// showOptions returns the entries of a choice in the language of the reader.
func showOptions(w *view.Words, list []pick) (shown []view.Option) {
	for _, p := range list {
		if p.Key != "" {
			p.Text = w.Text(p.Key)
		}
		shown = append(shown, view.Option{Value: p.Value, Text: p.Text, Chosen: p.Chosen})
	}
	return shown
}

// commandGroup is the commands of one kind of objects.
type commandGroup struct {
	at    string // address that the names of the commands follow
	right rest.Right
	reads string // operation that reads such an object: its form shows the object
	list  []command
	// object finds the object. It returns the fault for one that is missing. nil: all commands add.
	object func(ctx context.Context, id, of string) (*object, error)
}

// onUserOf is a request about a user and something of the user.
type onUserOf struct {
	ID   string    `path:"id"`
	Of   string    `query:"of"`
	Body rest.Form `many:"actions,events,event-*"`
}

// onThing is a request about something of the installation.
type onThing struct {
	Of     string    `query:"of"`
	Body   rest.Form `many:"actions,events,event-*,methods"`
	Cookie string    `header:"Cookie"`
}

// onThingUpload is onThing with files.
type onThingUpload struct {
	Of   string `query:"of"`
	Body rest.Parts
}

// onUserPage asks for the form of a command. Approval is a request of the person that waits: the form
// is filled in as it was sent.
type onUserPage struct {
	ID       string `path:"id"`
	Of       string `query:"of"`
	From     string `query:"from"`
	Approval string `query:"approval"`
}

type onThingPage struct {
	Of       string `query:"of"`
	Approval string `query:"approval"`
}

// ofUsers reports whether the commands of the group are done to users.
func (g *commandGroup) ofUsers() bool { return strings.Contains(g.at, "{id}") }

// find finds the object of a command. The command leads back to the list from which it was asked for.
func (g *commandGroup) find(ctx context.Context, d *command, id, of, from string) (*object, error) {
	if d.adds {
		return &object{back: g.at}, nil
	}
	if d.about == nil && g.ofUsers() {
		of = ""
	}
	o, err := g.object(ctx, strings.ToLower(id), of)
	if err == nil {
		o.back += d.tab
	}
	if at, ok := lists[from]; ok && err == nil {
		o.from, o.back = from, at
	}
	return o, err
}

// check returns the fault of a command on something that is missing, or that cannot be done now.
func (d *command) check(ctx context.Context, o *object) error {
	if d.about != nil {
		about, err := d.about(ctx, o)
		if err != nil {
			return err
		}
		o.about = about.Cells
	}
	if d.possible != nil {
		return d.possible(ctx, o)
	}
	return nil
}

// commandRoutes returns the two routes of each command.
func (a *API) commandRoutes(g commandGroup) (routes []rest.Route) {
	for i := range g.list {
		d := &g.list[i]
		ask := func(ctx context.Context, r onUserPage) (view.View, error) {
			o, err := g.find(ctx, d, r.ID, r.Of, r.From)
			if err != nil {
				return view.View{}, err
			}
			asked, err := a.askCommand(ctx, d, o)
			if err == nil && r.Approval != "" {
				err = a.fillStored(ctx, d, &asked, r.Approval)
			}
			return asked, err
		}
		do := func(ctx context.Context, id, of, cookie string, f rest.Form) (any, error) {
			o, err := g.find(ctx, d, id, of, f.Get(fromField))
			if err != nil {
				return nil, err
			}
			o.cookie = cookie
			return a.doCommand(ctx, d, o, f)
		}
		path := " " + g.at + "/" + d.name
		var get, post rest.Route
		if g.ofUsers() {
			get = view.Handle("GET"+path, g.reads, g.right, ask)
			post = rest.Handle("POST"+path, d.operation, g.right, func(ctx context.Context, r onUserOf) (any, error) { return do(ctx, r.ID, r.Of, "", r.Body) })
			post = weighed(d, post, func(r onUserOf) (string, string, rest.Form) { return strings.ToLower(r.ID), r.Of, r.Body })
		} else {
			get = view.Handle("GET"+path, g.reads, g.right, func(ctx context.Context, r onThingPage) (view.View, error) {
				return ask(ctx, onUserPage{Of: r.Of, Approval: r.Approval})
			})
			post = rest.Handle("POST"+path, d.operation, g.right, func(ctx context.Context, r onThing) (any, error) { return do(ctx, "", r.Of, r.Cookie, r.Body) })
			post = weighed(d, post, func(r onThing) (string, string, rest.Form) { return "", r.Of, r.Body })
		}
		if d.takesFiles() { // only commands of the installation do, and none of them may wait
			post = rest.HandleDocuments("POST"+path, d.operation, g.right, newMemory, func(ctx context.Context, docs *rest.Documents[*memory], r onThingUpload) (any, error) {
				f, err := d.readForm(r.Body, docs)
				if err != nil {
					return nil, err
				}
				return do(ctx, "", r.Of, "", f)
			}).Effects(d.effects.possible)
		}
		if d.long() || d.takesFiles() { // a text that a browser has cut off does not pass
			post = post.AtMost(maxArea + maxFrame)
		}
		routes = append(routes, get, post.Answering(rest.Redirect{}, rest.Page{}, rest.File{}))
	}
	return routes
}

// weighed declares the effects of the route of a command. Two forms are the same request if they are
// equal in all fields that have an effect.
func weighed[Req any](d *command, r rest.Route, form func(Req) (id, of string, f rest.Form)) rest.Route {
	if d.effects == nil {
		return r
	}
	varying := []string{nameField, fromField, view.AsIsField}
	for _, f := range d.fields {
		if f.varying {
			varying = append(varying, f.name)
		}
	}
	r = r.Varying(varying...)
	if d.effects.of == nil {
		return r.Effects(d.effects.possible)
	}
	return rest.Weigh(r, d.effects.possible, func(ctx context.Context, r Req) (effect.Set, error) {
		id, of, f := form(r)
		return d.effects.of(ctx, id, of, f)
	})
}

// Fields of forms without an effect of their own, besides asIsField: the name of what a command ends, and
// the list to go back to.
const (
	nameField = "confirm_name"
	fromField = "from"
)

// offerAsIs adds the box to the form of a command.
func offerAsIs(v *view.View, w *view.Words, ticked bool) {
	box := field{name: view.AsIsField, kind: kindMany, choices: []pick{{Value: "yes", Key: "names.as_is"}}}
	if ticked {
		box.values = []string{"yes"}
	}
	page := v.Content.(operatorView)
	form := page.Page.(commandView)
	form.Fields = append(form.Fields, box.show(w))
	page.Page = form
	v.Content = page
}

// commandView is the page of a command.
type commandView struct {
	Does    string       // key of the consequences
	Own     string       // key of what it means that the command is done to the reader's own account; "": it is not
	About   []cell       // what the command is done to
	Request *requestView // the request that the command approves; nil: it is about something else
	Object  *object
	Fields  []shownField
	Ends    []ending
	Named   bool
	Files   bool   // the form has files
	Here    string // address that the form is sent to
	From    string
	Back    string
	ID      string // of the dialog, which begins the ids of its fields; "" on a page of its own
	Problem string // what is wrong with the name that was typed; "": nothing
	Title   string // key
}

// dialog returns the form of a command for a dialog on another page. What is done to the object is possible, or the page
// would not offer it.
func (a *API) dialog(ctx context.Context, d *command, o *object, address string) (*commandView, error) {
	v := a.formOf(ctx, d, o, d.fields)
	v.Here = address
	v.ID = d.name
	if o.Of != "" {
		hash := fnv.New32a()
		hash.Write([]byte(o.Of))
		v.ID += fmt.Sprintf("-%x", hash.Sum32())
	}
	for i := range v.Fields {
		v.Fields[i].ID = v.ID + "-" + v.Fields[i].Name
	}
	return &v, v.count(ctx, d, o)
}

// Field returns a field by its name.
func (v commandView) Field(name string) shownField {
	i := slices.IndexFunc(v.Fields, func(f shownField) bool { return f.Name == name })
	return v.Fields[max(i, 0)]
}

// Status is the key of the state of the request that the command is about.
func (v commandView) Status() string { return "requests.status." + v.Object.request.Status.String() }

// NameID is the id of the field for the name of what the command ends.
func (v commandView) NameID() string {
	if v.ID == "" {
		return nameField
	}
	return v.ID + "-" + nameField
}

// formOf returns the form of a command with some fields.
func (a *API) formOf(ctx context.Context, d *command, o *object, fields []field) commandView {
	v := commandView{Does: "command.does." + d.wording(), Title: d.titleKey(), Object: o, Named: d.named, Files: d.takesFiles(), From: o.from, Back: o.back}
	if o.ID != "" && o.ID == rest.Caller(ctx).UserID {
		v.Own = "command.own"
		if key := "command.own." + d.wording(); view.HasText(key) {
			v.Own = key
		}
	}
	for i := range fields {
		v.Fields = append(v.Fields, fields[i].show(view.VisitorOf(ctx).Words))
	}
	return v
}

// count counts what the command ends.
func (v *commandView) count(ctx context.Context, d *command, o *object) error {
	if d.ends == nil {
		return nil
	}
	ends, err := d.ends(ctx, o)
	v.Ends = slices.DeleteFunc(ends, func(e ending) bool { return e.N == 0 })
	return err
}

func (a *API) askCommand(ctx context.Context, d *command, o *object) (view.View, error) {
	if err := d.check(ctx, o); err != nil {
		return view.View{}, err
	}
	fields := slices.Clone(d.fields)
	if d.more != nil {
		more, err := d.more(ctx, o)
		if err != nil {
			return view.View{}, err
		}
		fields = append(fields, more...)
	}
	v := a.formOf(ctx, d, o, fields)
	v.Here, v.About = view.VisitorOf(ctx).Path, o.about
	if o.Of != "" {
		v.Here += "?of=" + url.QueryEscape(o.Of)
	}
	if err := v.count(ctx, d, o); err != nil {
		return view.View{}, err
	}
	if o.request != nil && d.page {
		if err := a.compare(ctx, d, o, &v); err != nil {
			return view.View{}, err
		}
	}
	shown := a.office(ctx, cmp.Or(d.template, "command"), d.titleKey(), "", v)
	shown.Script = d.script
	if v.Request != nil { // the list that it belongs to, wherever it is shown
		for _, g := range shown.Side {
			for i := range g.Tabs {
				g.Tabs[i].Here = g.Tabs[i].Address == "/operator/requests"
			}
		}
	}
	return shown, nil
}

// fill writes what was typed into the form of a command. Secrets and codes are typed again, and files
// are chosen again.
func fill(v *view.View, d *command, f rest.Form) {
	form := v.Content.(operatorView).Page.(commandView)
	for i := range form.Fields {
		x := &form.Fields[i]
		if x.Kind == kindSecret || x.Kind == kindFile || slices.ContainsFunc(d.fields, func(y field) bool { return y.name == x.Name && y.varying }) {
			continue
		}
		x.Value = f.Get(x.Name)
		for j := range x.Options {
			x.Options[j].Chosen = slices.Contains(f[x.Name], x.Options[j].Value)
		}
	}
}

// askAgain returns a fault whose page is the form of the command with what was typed.
func (a *API) askAgain(ctx context.Context, d *command, o *object, f rest.Form, err error) error {
	if _, is := fault.As(err); !is {
		return err
	}
	asked, failed := a.askCommand(ctx, d, o)
	if failed != nil { // the object has gone
		return err
	}
	fill(&asked, d, f)
	if errors.As(err, new(*otherName)) { // said at the field
		unsure, _ := fault.As(err)
		w := view.VisitorOf(ctx).Words
		page := asked.Content.(operatorView)
		form := page.Page.(commandView)
		form.Problem = cmp.Or(w.Own(unsure.Message), unsure.Message)
		page.Page = form
		asked.Content = page
		return refusedName{err, asked}
	}
	if offered, ticked := view.AsIs(err, f); offered {
		offerAsIs(&asked, view.VisitorOf(ctx).Words, ticked)
	}
	if d.blames != nil && blame(ctx, d, &asked, f, err) {
		return refusedName{err, asked}
	}
	return refusedForm{err, asked}
}

// blame says at a field of a form why it was refused. It reports false if no field is to blame.
func blame(ctx context.Context, d *command, asked *view.View, f rest.Form, err error) bool {
	why, _ := fault.As(err)
	name, more := d.blames(ctx, f, why)
	fields := asked.Content.(operatorView).Page.(commandView).Fields
	i := slices.IndexFunc(fields, func(x shownField) bool { return x.Name == name })
	if i < 0 {
		return false
	}
	w := view.VisitorOf(ctx).Words
	fields[i].Problem = w.Say(why)
	if more != "" {
		fields[i].Problem += " " + w.Text("field.has_it", more)
	}
	return true
}

// otherName is the fault of a form in which the name of what the command ends was not typed.
type otherName struct{ error }

func (e *otherName) Unwrap() error { return e.error }

// refusedName is a fault about such a form. Its page is the form, which has the reason at its field.
type refusedName struct {
	error
	form view.View
}

func (r refusedName) Unwrap() error { return r.error }

// Again returns the form.
func (r refusedName) Again(view.Refusal) view.View { return r.form }

func (a *API) doCommand(ctx context.Context, d *command, o *object, f rest.Form) (any, error) {
	if err := d.check(ctx, o); err != nil {
		rest.Detail(ctx, o.Of)
		return nil, err
	}
	if d.named && !sameName(f.Get(nameField), o.Name) {
		return nil, a.askAgain(ctx, d, o, f, &otherName{fault.Newf(fault.InvalidParameters, "nothing was done: type %s to confirm", o.Name)})
	}
	m, err := d.do(ctx, o, f)
	if err != nil {
		return nil, a.askAgain(ctx, d, o, f, err)
	}
	view.NoteResult(ctx, m)
	switch {
	case m == nil && d.undo != "":
		return view.SeeOther(o.back + "?done=" + d.name + "&of=" + url.QueryEscape(o.Of)), nil
	case m == nil:
		return view.SeeOther(o.back + "?done=" + d.name), nil
	case m.file != nil:
		return *m.file, nil
	case m.imported != nil:
		v := a.office(ctx, "imported", d.titleKey(), "", m.imported)
		return v.Render(ctx)
	case m.registered != nil:
		v := a.office(ctx, "registered", "register.done", "", m.registered)
		return v.Render(ctx)
	case m.to != "" || m.done != "":
		return view.SeeOther(cmp.Or(m.to, o.back) + "?done=" + cmp.Or(m.done, d.name)), nil
	}
	v := a.office(ctx, "made", d.titleKey(), d.name, struct {
		*made
		Object *object
		Back   string
	}{m, o, o.back})
	return v.Render(ctx)
}

// sameName reports whether a person has typed a name. It is compared as logins are, without letter
// case, and without blanks around and between its words: a page shows several blanks as one.
func sameName(typed, name string) bool {
	fold := func(text string) string { return user.FoldLogin(strings.Join(strings.Fields(text), " ")) }
	return typed == name || fold(typed) == fold(name) && fold(name) != ""
}

// wording is the end of the keys of the words of a command.
func (d *command) wording() string { return cmp.Or(d.words, d.name) }

func (d *command) titleKey() string { return "command." + cmp.Or(d.title, d.wording()) }

// commandLink returns the link to a command of a group. id and of may be "".
func (a *API) commandLink(at, id, name, of string) link {
	address := strings.Replace(at, "{id}", url.PathEscape(id), 1) + "/" + name
	if of != "" {
		address += "?of=" + url.QueryEscape(of)
	}
	return link{Address: address, Key: a.commandsByName[name].titleKey()}
}

// acts returns what an operator can press to do commands to an object of a user: a button for what is plain, a dialog for
// what ends something, otherwise a link to the form. In a list of many people all are links.
func (a *API) acts(ctx context.Context, o *object, names ...string) (list []link, err error) {
	for _, name := range names {
		d, l := a.commandsByName[name], a.commandLink(peopleCommands, o.ID, name, o.Of)
		switch {
		case o.from != "":
			l.Address += "&" + fromField + "=" + o.from // after of
		case d.plain:
			l.Post = true
		case !d.page && d.more == nil && (d.named || d.dialog || len(d.fields) == 0):
			if l.Dialog, err = a.dialog(ctx, d, o, l.Address); err != nil {
				return nil, err
			}
		}
		l.About = o.Of
		list = append(list, l)
	}
	return list, nil
}

// atMost writes a number of which no more than most were counted.
func atMost(n, most int) string {
	if n >= most {
		return strconv.Itoa(most) + "+"
	}
	return strconv.Itoa(n)
}
