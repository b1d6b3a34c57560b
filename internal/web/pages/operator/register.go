// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	_ "embed" // for the script
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Object identifiers of the parts of a name that the form of a registration asks for.
const (
	oidCommonName = "2.5.4.3"
	oidSurname    = "2.5.4.4"
	oidGiven      = "2.5.4.42"
	oidPosition   = "2.5.4.12"
)

// registration is the command that registers a person. The account is made by the command itself. What the form asks for
// besides is done by the commands of the person, each with its own rules.
func (a *API) registration() command {
	return command{
		name: "new", template: "register", script: registerScript, adds: true, operation: "RegisterUser", effects: does(effect.GivesAccess),
		fields: []field{{name: "surname"}, {name: "given"}, {name: "position"}, {name: "login", hint: "field.hint.login"}, {name: "phone"}, {name: "email"},
			{name: "sure", kind: kindMany, choices: []pick{{Value: "yes", Key: "register.sure"}}}},
		more: func(ctx context.Context, _ *object) ([]field, error) {
			f, err := a.groupField(ctx)
			return []field{f, a.firstPasswords(), a.firstMethods(), a.firstCertificate()}, err
		},
		blames: a.blameRegistration,
		do:     a.register,
	}
}

// proposalAt is the address of the form of a registration with a login proposed. Its page is the one of the form.
const proposalAt = "/operator/people/new/do/login"

// registerScript proposes a login as soon as the name is typed.
//
//go:embed register.js
var registerScript string

// proposeLogin returns the form of a registration as it was sent, with a free login made of the name.
func (a *API) proposeLogin(ctx context.Context, r struct{ Body rest.Form }) (view.View, error) {
	login, err := a.People.ProposeLogin(ctx, rest.Caller(ctx), r.Body.Get("surname"), r.Body.Get("given"))
	if err != nil {
		return view.View{}, err
	}
	d := a.commandsByName["new"]
	asked, err := a.askCommand(ctx, d, &object{back: "/operator/people"})
	if err != nil {
		return view.View{}, err
	}
	r.Body["login"] = []string{login}
	fill(&asked, d, r.Body)
	page := asked.Content.(operatorView)
	form := page.Page.(commandView)
	form.Here = "/operator/people/new"
	i := slices.IndexFunc(form.Fields, func(f shownField) bool { return f.Name == "login" })
	form.Fields[i].Hint = view.VisitorOf(ctx).Words.Text("register.proposed")
	if login == "" {
		form.Fields[i].Hint = view.VisitorOf(ctx).Words.Text("register.proposed_none")
	}
	page.Page = form
	asked.Content = page
	return asked, nil
}

// Ways to give a person the first password, besides none.
const (
	firstShown   = "show"
	firstPrinted = "print"
	firstSMS     = "sms"
	firstEmail   = "email"
)

// firstPasswords asks how the person gets the first password.
func (a *API) firstPasswords() field {
	f := field{name: "first_password", kind: kindChoice}
	for _, way := range []struct {
		name     string
		delivery signin.Delivery
	}{{firstShown, signin.Delivery{Raw: true}}, {firstPrinted, signin.Delivery{Print: signin.PDF}}, {firstSMS, sentTo(contact.Phone, "")}, {firstEmail, sentTo(contact.Email, "")}} {
		if a.SignIns != nil && a.SignIns.Deliverable(way.delivery) == nil {
			f.choices = append(f.choices, pick{Value: way.name, Key: "register.password." + way.name})
		}
	}
	f.choices = append(f.choices, pick{Key: "register.password.none"})
	f.value = f.choices[0].Value
	return f
}

// firstMethods asks with what the person confirms.
func (a *API) firstMethods() field {
	f := field{name: "methods", kind: kindMany}
	if a.SignIns == nil {
		return f
	}
	for _, m := range a.SignIns.Methods() {
		if slices.Contains([]string{"mydss", "otpviasms", "otpviaemail", "oath", "passkey"}, m.Route) {
			f.choices = append(f.choices, pick{Value: m.Route, Key: "register.method." + m.Route})
		}
	}
	return f
}

// asksForOthers reports whether operators request certificates for people. Where each key has a PIN, only its person does.
func (a *API) asksForOthers() bool { return a.Keys.PINRules().Mode != keys.PINRequired }

// firstCertificate asks whether a certificate is requested at once.
func (a *API) firstCertificate() field {
	f := field{name: "certificate", kind: kindMany}
	if a.asksForOthers() {
		f.choices = []pick{{Value: "yes", Key: "register.asks"}}
	}
	return f
}

// blameRegistration says which field a fault of a registration is about, and more about it.
func (a *API) blameRegistration(ctx context.Context, f rest.Form, err *fault.Error) (name, more string) {
	kind := user.Login
	switch err.Code {
	case fault.DuplicateLogin:
		name = "login"
	case fault.InvalidPhone:
		return "phone", ""
	case fault.DuplicatePhone:
		name, kind = "phone", user.PhoneNumber
	case fault.InvalidEmail:
		return "email", ""
	case fault.DuplicateEmail:
		name, kind = "email", user.Email
	default:
		return "", ""
	}
	if has, err := a.People.Find(ctx, rest.Caller(ctx), kind, f.Get(name), ""); err == nil { // of a user within reach
		more = noteOf(has)
	}
	return name, more
}

// registered is what became of a registration.
type registered struct {
	ID, Name string
	Steps    []item
	Password string // to copy; "": none is shown
	Print    *link  // prints a password; nil: that was not asked for
}

// register registers a person and does what the form asks for besides.
func (a *API) register(ctx context.Context, o *object, f rest.Form) (*made, error) {
	identifiers := map[user.IdentifierType]string{}
	for t, name := range map[user.IdentifierType]string{user.Login: "login", user.PhoneNumber: "phone", user.Email: "email"} {
		if v := f.Get(name); v != "" {
			identifiers[t] = v
		}
	}
	id, err := a.People.Register(ctx, rest.Caller(ctx), user.Registration{Identifiers: identifiers, Group: f.Get("group")})
	if err != nil {
		return nil, err
	}
	rest.Concerning(ctx, id)
	r := registered{ID: id}
	steps, err := a.afterRegistration(ctx, id, f)
	if err != nil {
		return nil, err
	}
	w := view.VisitorOf(ctx).Words
	for _, s := range steps {
		done, refused, err := a.postTo(ctx, personAt(id)+"/"+s.command, o.cookie, s.form)
		if err != nil {
			return nil, err
		}
		one := item{Icon: "check", Kind: "good", Title: w.Text(a.commandsByName[s.name()].titleKey()), Hint: view.Visible(s.about)}
		if refused != nil {
			one.Icon, one.Kind, one.Hint = "warning", "warn", a.said(ctx, refused)
		}
		if done != nil {
			r.Password = done.Secret
		}
		r.Steps = append(r.Steps, one)
	}
	if f.Get("first_password") == firstPrinted {
		print, err := a.acts(ctx, &object{ID: id}, "password-print")
		if err != nil {
			return nil, err
		}
		r.Print = &print[0]
	}
	if len(r.Steps) == 0 && r.Print == nil {
		return &made{to: personAt(id)}, nil
	}
	u, err := a.People.ByID(ctx, rest.Caller(ctx), id)
	r.Name = noteOf(u)
	return &made{registered: &r}, err
}

// step is a command that follows a registration.
type step struct {
	command string // with its query
	form    url.Values
	about   string
}

func (s step) name() string {
	name, _, _ := strings.Cut(s.command, "?")
	return name
}

// afterRegistration returns the commands that a form of a registration asks for, in their order.
func (a *API) afterRegistration(ctx context.Context, id string, f rest.Form) (steps []step, err error) {
	surname, given, position := f.Get("surname"), f.Get("given"), f.Get("position")
	if name := strings.TrimSpace(surname + " " + given); name != "" {
		steps = append(steps, step{"name", url.Values{"name": {name}}, name})
		parts := url.Values{}
		values := map[string]string{oidCommonName: name, oidSurname: surname, oidGiven: given, oidPosition: position}
		for _, c := range a.People.Naming.Components() {
			if values[c.OID] != "" {
				parts.Set(namePart+strconv.Itoa(c.ID), values[c.OID])
			}
		}
		steps = append(steps, step{"dn", parts, name})
	}
	methods, password := f["methods"], f.Get("first_password")
	sentTo := map[contact.Type]string{}
	for _, k := range contactKinds {
		list, err := a.Contacts.List(ctx, rest.Caller(ctx), id, k.kind)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			of := "?of=" + url.QueryEscape(c.Value)
			sentTo[k.kind.Type] = c.Value
			if f.Get("sure") == "" {
				steps = append(steps, step{k.name + "-code" + of, nil, c.Value})
				continue
			}
			steps = append(steps, step{k.name + "-confirm" + of, nil, c.Value})
			if slices.Contains(methods, k.kind.Method) {
				steps = append(steps, step{k.name + "-codes" + of, nil, c.Value})
			}
		}
	}
	if password != "" {
		steps = append(steps, step{"method-add-password", nil, ""})
	}
	for _, m := range methods {
		steps = append(steps, step{"method-add-" + m, url.Values{"level": {"2"}}, ""})
	}
	if f.Get("certificate") == "yes" { // after the name that it is for
		steps = append(steps, step{"request-new", nil, strings.TrimSpace(surname + " " + given)})
	}
	switch password {
	case firstShown:
		steps = append(steps, step{"password-show", nil, ""})
	case firstSMS:
		steps = append(steps, step{sentBy[contact.PhoneNumber], url.Values{"destination": {sentTo[contact.PhoneNumber]}}, ""})
	case firstEmail:
		steps = append(steps, step{sentBy[contact.EmailAddress], url.Values{"destination": {sentTo[contact.EmailAddress]}}, ""})
	}
	return steps, nil
}
