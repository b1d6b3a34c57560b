// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"tamga/internal/domain/approval"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// bulkCommands are the commands that operators can do to a selection of people.
var bulkCommands = []string{"group", "password-email", "sign-out", "lock", "unlock"}

// mostSelected is the number of people of a selection. A list shows no more at once.
const mostSelected = pageRows

var errSelection = fault.New(fault.InvalidParameters, "choose people of the list, at most 50, and what to do")

// onSelection is a command on a selection.
type onSelection struct {
	Body   rest.Form `many:"person"`
	Cookie string    `header:"Cookie"` // the session, in which each command is done
}

// bulkView is a command on a selection before it is done, or after that.
type bulkView struct {
	Count     string
	Does      string // key
	Do, Title string // name of the command, and the key of its title
	Fields    []shownField
	People    []selected
	After     bool
	Undo      *link // does the opposite to those to whom it was done; nil: nothing does
}

// selected is a person of a selection.
type selected struct {
	ID, Name string
	Address  string
	Own      bool   // the reader's own account
	Kind     string // of the tag
	Tag      string // what happened, or what the person lacks; "": the command can be done
	Sentence string
	Detail   string
}

// selection reads which command on which people a form asks for.
func (a *API) selection(ctx context.Context, f rest.Form) (d *command, people []user.Info, err error) {
	name, ids := f.Get("do"), f["person"]
	if !slices.Contains(bulkCommands, name) || len(ids) == 0 || len(ids) > mostSelected {
		return nil, nil, errSelection
	}
	found, err := a.People.ByIDs(ctx, rest.Caller(ctx), ids)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		u, has := found[id]
		if !has {
			return nil, nil, fault.New(fault.UserNotFound, "one of the people is not in your groups")
		}
		people = append(people, u)
	}
	return a.commandsByName[name], people, nil
}

// bulkPage begins the page of a command on a selection.
func (a *API) bulkPage(ctx context.Context, d *command, people []user.Info) (v bulkView, err error) {
	w := view.VisitorOf(ctx).Words
	v = bulkView{Count: w.Count("bulk.people", len(people)), Does: "command.does." + d.wording(), Do: d.name, Title: d.titleKey()}
	fields := slices.Clone(d.fields)
	if d.name == "group" {
		f, err := a.groupField(ctx)
		if err != nil {
			return v, err
		}
		fields = append(fields, f)
	}
	for i := range fields {
		v.Fields = append(v.Fields, fields[i].show(w))
	}
	for _, u := range people {
		v.People = append(v.People, selected{ID: u.ID, Name: noteOf(u), Address: personAt(u.ID), Own: u.ID == rest.Caller(ctx).UserID})
	}
	return v, nil
}

// askBulk says what a command on a selection will do, and to whom it cannot be done.
func (a *API) askBulk(ctx context.Context, r struct {
	Body rest.Form `many:"person"`
}) (view.View, error) {
	d, people, err := a.selection(ctx, r.Body)
	if err != nil {
		return view.View{}, err
	}
	v, err := a.bulkPage(ctx, d, people)
	if err != nil {
		return view.View{}, err
	}
	checks := make([]func() error, len(people))
	for i := range people {
		checks[i] = func() error { return a.foresee(ctx, d, &people[i], &v.People[i]) }
	}
	if err := view.Concurrently(checks...); err != nil {
		return view.View{}, err
	}
	return a.office(ctx, "bulk", v.Title, "", v), nil
}

// foresee says what a command will not change about a person.
func (a *API) foresee(ctx context.Context, d *command, u *user.Info, s *selected) error {
	w := view.VisitorOf(ctx).Words
	err := d.check(ctx, objectOf(*u))
	f, is := fault.As(err)
	switch {
	case err != nil && !is:
		return err
	case is:
		s.Kind, s.Tag = "warn", w.Text("bulk.impossible")
		s.Sentence, s.Detail = w.Refusal(f)
	case d.name == "lock" && u.Locked && !unapproved(*u), d.name == "unlock" && (!u.Locked || unapproved(*u)):
		s.Tag = w.Text("bulk.as_it_is")
	}
	return nil
}

// doBulk does a command to each person of a selection, as the form of the command on the page of that person does, with all
// checks, the audit entry and the second operator or the delay that it may need, and says what became of each.
func (a *API) doBulk(ctx context.Context, r onSelection) (view.View, error) {
	d, people, err := a.selection(ctx, r.Body)
	if err != nil {
		return view.View{}, err
	}
	rest.Detail(ctx, d.operation)
	v, err := a.bulkPage(ctx, d, people)
	if err != nil {
		return view.View{}, err
	}
	v.After = true
	w := view.VisitorOf(ctx).Words
	done := url.Values{"do": {map[string]string{"lock": "unlock"}[d.name]}}
	changed, waits := 0, 0
	for i := range people {
		u, s := &people[i], &v.People[i]
		form := url.Values{}
		for _, name := range []string{"group", "delay"} {
			if value := r.Body.Get(name); value != "" {
				form.Set(name, value)
			}
		}
		if d.name == "password-email" {
			to, err := a.contactsOf(ctx, u.ID, contact.Email)
			if err != nil {
				return view.View{}, err
			}
			if len(to) > 0 && !to[0].SecondaryAuth {
				form.Set("destination", to[0].Value)
			}
		}
		refused, err := a.post(ctx, personAt(u.ID)+"/"+d.name, r.Cookie, form)
		if err != nil {
			return view.View{}, err
		}
		held, isHeld := errors.AsType[approval.Waits](refused)
		switch {
		case refused == nil:
			changed++
			s.Kind, s.Tag = "good", w.Text("bulk.done")
			done.Add("person", u.ID)
		case isHeld:
			waits++
			s.Kind, s.Tag, s.Address = "warn", w.Text("bulk.waits"), "/operator/approvals/"+held.Request.ID
		default:
			s.Kind, s.Tag = "bad", w.Text("bulk.refused")
			f, is := fault.As(refused)
			if !is {
				f = fault.New(fault.Failed, "")
			}
			s.Sentence, s.Detail = w.Refusal(f)
		}
	}
	v.Count = w.Text("bulk.result", changed, waits, len(people)-changed-waits)
	if opposite := a.commandsByName[done.Get("do")]; opposite != nil && changed > 0 {
		v.Undo = &link{Address: "/operator/people/bulk?" + done.Encode(), Key: opposite.titleKey()}
	}
	return a.office(ctx, "bulk", v.Title, "", v), nil
}

// post is postTo for a command without a result.
func (a *API) post(ctx context.Context, address, cookie string, form url.Values) (refused, err error) {
	_, refused, err = a.postTo(ctx, address, cookie, form)
	return refused, err
}

// postTo sends the form of a command on one person through all steps of the server, in the session of the caller. It returns
// what the command has made, or the fault of a form that was refused or that waits.
func (a *API) postTo(ctx context.Context, address, cookie string, form url.Values) (done *made, refused, err error) {
	ctx, noted := view.Noting(ctx)
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Cookie": {cookie}, "Accept-Language": {view.VisitorOf(ctx).Words.Language}}
	reply, err := a.Send(ctx, http.MethodPost, a.Address+address, header, form.Encode(), 0)
	switch {
	case err != nil || noted.Err != nil:
		return nil, noted.Err, err
	case reply.Status >= http.StatusBadRequest:
		return nil, fault.New(fault.Failed, ""), nil
	}
	done, _ = noted.Result.(*made)
	return done, nil, nil
}

// said returns what a refusal of a form means, in one text.
func (a *API) said(ctx context.Context, refused error) string {
	w := view.VisitorOf(ctx).Words
	if held, is := errors.AsType[approval.Waits](refused); is {
		return WaitsView(w, &held.Request, "").Content.(waitingView).Sentence
	}
	f, is := fault.As(refused)
	if !is {
		f = fault.New(fault.Failed, "")
	}
	return w.Say(f)
}
