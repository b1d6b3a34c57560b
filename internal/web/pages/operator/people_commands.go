// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// commands lists everything that operators do on the pages.
func (a *API) commands() []commandGroup {
	onPeople := slices.Concat(a.accountCommands(), in("/sign-in", a.contactCommands()), in("/sign-in", a.signInCommands()), in("/devices", a.deviceCommands()), in("/certificates", a.certificateCommands()), in("/rules", a.policyCommands()))
	return slices.Concat([]commandGroup{
		{at: peopleCommands, right: Operator, reads: "GetUserById", list: onPeople, object: a.personObject},
		{at: "/operator/people", right: Operator, reads: "GetPolicy", list: []command{a.registration()}},
		{at: "/operator/people", right: Administrator, reads: "GetPolicy", list: a.listCommands()},
	}, a.installationCommands())
}

// in says which page of a person commands lead back to, unless they say so themselves.
func in(tab string, list []command) []command {
	for i := range list {
		if list[i].tab == "" {
			list[i].tab = tab
		}
	}
	return list
}

// personObject finds a user within reach.
func (a *API) personObject(ctx context.Context, id, of string) (*object, error) {
	u, err := a.People.ByID(ctx, rest.Caller(ctx), id)
	if err != nil {
		return nil, err
	}
	o := objectOf(u)
	o.Of, o.Name = of, cmp.Or(of, o.Name)
	return o, nil
}

// noteOf returns the name of a user with the display name, if it says more.
func noteOf(u user.Info) string {
	note := nameOf(u)
	if u.DisplayName != "" && u.DisplayName != note {
		note += " – " + u.DisplayName
	}
	return note
}

// silent is a command without a result to show.
func silent(do func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error) func(context.Context, *object, rest.Form) (*made, error) {
	return func(ctx context.Context, o *object, f rest.Form) (*made, error) {
		return nil, do(ctx, rest.Caller(ctx), o, f)
	}
}

// mostOffered is the number of groups in a choice. A longer list is not looked through.
const mostOffered = 200

// groupField asks for a group of the operator.
func (a *API) groupField(ctx context.Context) (field, error) {
	groups, err := a.People.GroupsOf(ctx, rest.Caller(ctx), mostOffered+1)
	return groupChoice(groups), err
}

// groupChoice offers groups, or asks for the name of one if there are many.
func groupChoice(groups []string) field {
	if len(groups) > mostOffered {
		return field{name: "group", required: true, hint: "field.hint.group"}
	}
	f := field{name: "group", kind: kindChoice, required: true}
	for _, g := range groups {
		f.choices = append(f.choices, pick{Value: g, Text: g})
	}
	return f
}

// Keys of what was done, for commands whose name does not say it: a lock with a delay, and a role that
// was taken from a contact.
const (
	lockLater = "lock-later"
	roleGone  = "role-gone"
)

// lockDelays are the delays of a lock that the form offers, in hours.
var lockDelays = []int{0, 1, 8, 24, 72, 168}

func (a *API) accountCommands() []command {
	people := a.People
	delays := field{name: "delay", kind: kindChoice, value: "0"}
	for _, h := range lockDelays {
		delays.choices = append(delays.choices, pick{Value: strconv.Itoa(h), Key: "delay." + strconv.Itoa(h)})
	}
	unlock := silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
		rest.Detail(ctx, "lock=false delay=false 0")
		return people.SetLockedEx(ctx, who, o.ID, user.LockOrder{})
	})
	return []command{
		{name: "lock", operation: "SetUserLockoutStateEx", effects: does(effect.EndsAccess), fields: []field{delays}, dialog: true, undo: "unlock", ends: a.lockEnds, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			hours, err := strconv.ParseInt(cmp.Or(f.Get("delay"), "0"), 10, 32)
			if err != nil {
				return nil, fault.New(fault.InvalidParameters, "delay: want a number of hours")
			}
			delay := time.Duration(hours) * time.Hour / cmp.Or(people.LockDelayUnit, time.Second)
			rest.Detail(ctx, fmt.Sprintf("lock=true delay=%t %d", hours != 0, int64(delay)))
			m := &made{done: "lock"}
			if hours != 0 {
				m.done = lockLater
			}
			return m, people.SetLockedEx(ctx, rest.Caller(ctx), o.ID, user.LockOrder{Lock: true, UseDelay: hours != 0, Delay: int64(delay)})
		}},
		{name: "unlock", operation: "SetUserLockoutStateEx", effects: does(effect.GivesAccess), plain: true, do: unlock},
		{name: "lock-cancel", operation: "SetUserLockoutStateEx", effects: does(effect.GivesAccess), plain: true, do: unlock}, // of a lock that is to come
		{name: "sign-out", operation: "RevokeUserGrants", effects: does(effect.EndsAccess), do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return a.SignIns.RevokeGrants(ctx, who, o.ID)
		})},
		{name: "name", tab: "/account", operation: "SetUserProperty", effects: does(effect.None), more: func(ctx context.Context, o *object) ([]field, error) {
			u, err := people.ByID(ctx, rest.Caller(ctx), o.ID)
			return []field{{name: "name", value: u.DisplayName}}, err
		}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			rest.Detail(ctx, "DisplayName")
			return people.SetProperty(ctx, who, o.ID, user.DisplayName, f.Get("name"))
		})},
		{name: "dn", tab: "/account", operation: "SetUserDistinguishedName", effects: does(effect.None), more: a.nameFields, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			if f.Get(view.AsIsField) == "" {
				if err := a.checkNumbers(ctx, o, f); err != nil {
					return err
				}
			}
			return view.VisitorOf(ctx).Words.InLabels(people.SetDN(ctx, who, o.ID, nameParts(f)), people.Naming.Components())
		})},
		{name: "group", tab: "/account", operation: "SetUserGroup", effects: does(effect.WeakensPolicy), more: func(ctx context.Context, o *object) ([]field, error) {
			f, err := a.groupField(ctx)
			if err != nil {
				return nil, err
			}
			f.value, err = people.GroupOf(ctx, rest.Caller(ctx), o.ID)
			return []field{f}, err
		}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			rest.Detail(ctx, "group="+f.Get("group"))
			return people.SetGroup(ctx, who, o.ID, f.Get("group"), nil)
		})},
		{name: "login", tab: "/account", operation: "SetUserLocalLogin", effects: does(effect.EndsAccess), fields: []field{{name: "login", required: true}}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			return people.SetLocalLogin(ctx, who, o.ID, f.Get("login"))
		})},
		{name: "login-delete", tab: "/account", operation: "DeleteUserLocalLogin", effects: does(effect.EndsAccess), named: true, possible: func(ctx context.Context, o *object) error {
			u, err := people.ByID(ctx, rest.Caller(ctx), o.ID)
			if err == nil && u.Login == "" {
				err = fault.New(fault.NotFound, "the person has no login here: it was deleted already")
			}
			return err
		}, do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return people.DeleteLocalLogin(ctx, who, o.ID)
		})},
		{name: "login-external", tab: "/account", operation: "SetUserLogin", effects: does(effect.AddsFactor | effect.RemovesFactor), fields: []field{{name: "login", required: true}}, more: func(context.Context, *object) ([]field, error) {
			f := field{name: "issuer", kind: kindChoice}
			for _, i := range people.Issuers {
				f.choices = append(f.choices, pick{Value: i.Name, Text: cmp.Or(i.DisplayName, i.Name)})
			}
			return []field{f}, nil
		}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			if !slices.ContainsFunc(people.Issuers, func(i user.Issuer) bool { return i.Name == f.Get("issuer") }) { // another name would set the login of this service
				return fault.New(fault.InvalidParameters, "issuer: want an identity provider of the list")
			}
			return people.SetLogin(ctx, who, o.ID, user.ExternalLogin{Login: f.Get("login"), Issuer: f.Get("issuer")})
		})},
		{name: "login-external-delete", tab: "/account", operation: "DeleteUserLogin", effects: does(effect.RemovesFactor), named: true, about: a.aboutLogin, do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return people.DeleteLogin(ctx, who, o.ID, o.Of)
		})},
		{name: "approve", operation: "SetUserApprovedStateAsync", effects: does(effect.GivesAccess), plain: true, do: a.approval(true)},
		{name: "disapprove", operation: "SetUserApprovedStateAsync", effects: does(effect.EndsAccess), named: true, do: a.approval(false)},
		{name: "delete", operation: "DeleteUser", effects: does(effect.EndsAccess | effect.Deletes), named: true, ends: a.deleteEnds, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			return &made{to: "/operator/people"}, people.Delete(ctx, rest.Caller(ctx), o.ID, true) // the page says what is lost, and the login was typed
		}},
	}
}

// aboutLogin describes a login of a user at another identity provider. The login of this service is
// no such login, although the interface deletes it in the same way.
func (a *API) aboutLogin(ctx context.Context, o *object) (row, error) {
	logins, err := a.People.Logins(ctx, rest.Caller(ctx), o.ID)
	if err != nil {
		return row{}, err
	}
	for _, l := range logins {
		if l.Issuer != a.People.LocalIssuer && user.FoldIssuer(l.Issuer) == user.FoldIssuer(o.Of) {
			return row{Cells: []cell{{Text: l.Login}, {Text: l.Issuer}}}, nil
		}
	}
	return row{}, fault.Newf(fault.NotFound, "the record has no login at the identity provider %.64q: it was deleted, or the link is wrong", o.Of)
}

func (a *API) approval(approved bool) func(context.Context, *object, rest.Form) (*made, error) {
	return silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
		rest.Detail(ctx, fmt.Sprintf("approved=%t", approved))
		return a.People.Approve(ctx, who, o.ID, approved)
	})
}

// lockEnds counts what a lock ends.
func (a *API) lockEnds(ctx context.Context, o *object) ([]ending, error) {
	active, err := a.Active.Active(ctx, audit.Principal{UserID: o.ID})
	for _, op := range active {
		rest.Afterwards(ctx, op)
	}
	return []ending{{"ends.operations", len(active)}}, err
}

// deleteEnds counts what the deletion of a user deletes.
func (a *API) deleteEnds(ctx context.Context, o *object) ([]ending, error) {
	ends, err := a.lockEnds(ctx, o)
	if err != nil {
		return nil, err
	}
	certificates, err := a.Keys.List(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	readers := 0
	for _, c := range certificates {
		if c.ForEncryption() {
			readers++
		}
	}
	devices, err := a.Devices.Info(ctx, rest.Caller(ctx), o.ID)
	return append(ends, ending{"ends.certificates", len(certificates)}, ending{"ends.readers", readers}, ending{"ends.devices", len(devices.Devices)}), err
}

// namePart begins the names of the fields of a distinguished name.
const namePart = "dn-"

// nameFields are the components of a distinguished name.
func (a *API) nameFields(ctx context.Context, o *object) (list []field, err error) {
	have, err := a.People.DN(ctx, rest.Caller(ctx), o.ID)
	for _, c := range a.People.Naming.Components() {
		f := field{name: namePart + strconv.Itoa(c.ID), label: c.NameIn(view.VisitorOf(ctx).Words.Language), required: c.Required, value: have[c.ID]}
		if len(c.Values) > 0 {
			f.kind, f.choices = kindChoice, []pick{{}}
			for _, v := range c.Values {
				f.choices = append(f.choices, pick{Value: v, Text: v})
			}
		}
		list = append(list, f)
	}
	return list, err
}

// checkNumbers doubts numbers of a name whose check digits do not fit, if they are new.
func (a *API) checkNumbers(ctx context.Context, o *object, f rest.Form) error {
	have, err := a.People.DN(ctx, rest.Caller(ctx), o.ID)
	if err != nil {
		return err
	}
	parts := nameParts(f)
	for id, value := range have {
		if number := strconv.Itoa(id); parts[number] == value {
			delete(parts, number)
		}
	}
	naming := a.People.Naming
	return view.VisitorOf(ctx).Words.Doubted(naming.CheckNumbers(parts), naming.Components())
}

func nameParts(f rest.Form) map[string]string {
	parts := map[string]string{}
	for name := range f {
		if id, ok := strings.CutPrefix(name, namePart); ok {
			parts[id] = f.Get(name)
		}
	}
	return parts
}

// printFormats are the print forms of a password.
var printFormats = []signin.PrintFormat{signin.PDF, signin.Word, signin.HTML, signin.XML}

func (a *API) signInCommands() []command {
	identity, tokens := a.SignIns, a.OneTime
	formats := field{name: "format", kind: kindChoice}
	for _, f := range printFormats {
		formats.choices = append(formats.choices, pick{Value: string(f), Key: "print." + string(f)})
	}
	sent := func(name, operation string, kind contact.Kind) command {
		return command{name: name, operation: operation, effects: does(effect.GivesSecret | effect.AddsFactor | effect.RemovesFactor), possible: func(ctx context.Context, o *object) error {
			return a.sendable(ctx, o, kind)
		}, more: func(ctx context.Context, o *object) ([]field, error) {
			list, err := a.contactsOf(ctx, o.ID, kind)
			assigned := ""
			if len(list) > 0 && list[0].SecondaryAuth {
				assigned = "password.assigned"
			}
			return []field{contactChoice("destination", assigned, list)}, err
		}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			_, err := identity.ResetPassword(ctx, who, o.ID, sentTo(kind, f.Get("destination")))
			return err
		})}
	}
	codes := []field{{name: "first", varying: true, required: true}, {name: "second", varying: true, hint: "field.hint.second"}}
	otp := func(o *object, f rest.Form) oath.Codes {
		return oath.Codes{Serial: cmp.Or(f.Get("serial"), o.Of), FirstOTP: f.Get("first"), SecondOTP: f.Get("second")}
	}
	again := slices.Clone(codes) // one code does not say where a token is
	again[1].required = true
	aboutToken := func(ctx context.Context, o *object) (row, error) {
		token, err := tokens.Token(ctx, rest.Caller(ctx), o.ID)
		if fault.Is(err, fault.KeyNotFound) || err == nil && stock.Key(token.Serial) != stock.Key(o.Of) {
			err = fault.Newf(fault.NotFound, "the person does not have the token %.64q: it was unassigned or replaced, or the link is wrong", o.Of)
		}
		return row{Cells: []cell{tokenCell(view.VisitorOf(ctx).Words, token)}}, err
	}
	list := []command{
		{name: "password-show", operation: "ResetPassword", effects: does(effect.GivesSecret | effect.AddsFactor | effect.RemovesFactor), do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			out, err := identity.ResetPassword(ctx, rest.Caller(ctx), o.ID, signin.Delivery{Show: true})
			if err != nil || out.Password == "" {
				return nil, err
			}
			return &made{Secret: out.Password, Note: "password.once"}, nil
		}},
		sent(sentBy[contact.PhoneNumber], "ResetPasswordAndSendSms", contact.Phone),
		sent(sentBy[contact.EmailAddress], "ResetPasswordAndSendEmail", contact.Email),
		{name: "password-print", operation: "ResetPasswordAndPrint", effects: does(effect.GivesSecret | effect.AddsFactor | effect.RemovesFactor), fields: []field{formats}, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			format := signin.PrintFormat(f.Get("format"))
			if !slices.Contains(printFormats, format) {
				return nil, fault.New(fault.InvalidParameters, "format: want Html, Xml, Pdf or Word")
			}
			out, err := identity.ResetPassword(ctx, rest.Caller(ctx), o.ID, signin.Delivery{Print: format})
			if err != nil {
				return nil, err
			}
			return &made{file: &rest.File{Content: bytes.NewReader(out.Form.Content), Name: out.Form.Name, Type: out.Form.ContentType}}, nil
		}},
		{name: "token-set", operation: "SetUserOtpToken", effects: does(effect.AddsFactor | effect.RemovesFactor), fields: append([]field{{name: "serial", required: true}}, codes...), do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			return tokens.SetToken(ctx, who, o.ID, otp(o, f))
		})},
		{name: "token-sync", operation: "RestoreUserOtpTokenSync", effects: does(effect.None), fields: again, about: aboutToken, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			return tokens.SyncToken(ctx, who, o.ID, otp(o, f))
		})},
		{name: "token-app", operation: "CreateUserOathAppData", effects: does(effect.GivesSecret | effect.AddsFactor | effect.RemovesFactor), do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			d, err := tokens.CreateAppToken(ctx, rest.Caller(ctx), o.ID)
			if err != nil {
				return nil, err
			}
			return &made{Secret: d.Secret, Text: d.URI, Picture: view.DataURL("image/gif", d.QR), Note: "token.scan"}, nil
		}},
		{name: "token-remove", operation: "RemoveUserOtpToken", effects: does(effect.RemovesFactor), named: true, about: aboutToken, do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return tokens.RemoveToken(ctx, who, o.ID)
		})},
	}
	if passkeys := a.Passkeys; passkeys != nil {
		list = append(list, command{name: "passkey-remove", operation: "RemoveUserPasskey", effects: does(effect.RemovesFactor), named: true, about: func(ctx context.Context, o *object) (row, error) {
			list, err := passkeys.List(ctx, rest.Caller(ctx), o.ID)
			if err != nil {
				return row{}, err
			}
			i := slices.IndexFunc(list, func(p passkey.Passkey) bool { return p.ID == o.Of })
			if i < 0 {
				return row{}, fault.New(fault.NotFound, "the record has no such passkey: it was removed, or the link is wrong")
			}
			o.Name = cmp.Or(list[i].Name, o.Of) // the identifier says nothing to people
			return row{Cells: []cell{{Text: o.Name}, {At: list[i].CreatedAt}}}, nil
		}, do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			rest.Detail(ctx, o.Of)
			return passkeys.Remove(ctx, who, o.ID, o.Of)
		})})
	}
	for _, m := range signin.Methods() {
		if m.Route == "" {
			continue
		}
		level := func(f rest.Form) (*int, error) {
			if f.Get("level") == "" {
				return nil, nil
			}
			n, err := strconv.Atoi(f.Get("level"))
			if err != nil {
				err = fault.New(fault.InvalidParameters, "level: want a number from 0 to 3")
			}
			return &n, err
		}
		add := command{name: "method-add-" + m.Route, words: "method-add", title: "method-add-" + m.Route, operation: "SetUserAuthenticationMethod" + m.Operation, effects: &effects{effect.AddsFactor | effect.WeakensPolicy, func(_ context.Context, _, _ string, f rest.Form) (effect.Set, error) {
			at, err := level(f)
			if m.Weakens(at) {
				return effect.AddsFactor | effect.WeakensPolicy, err
			}
			return effect.AddsFactor, err
		}}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			at, err := level(f)
			if err != nil {
				return err
			}
			if at != nil {
				rest.Detail(ctx, fmt.Sprintf("level=%d", *at))
			}
			return identity.SetMethod(ctx, who, o.ID, m.Route, at)
		})}
		if !m.Primary {
			f := field{name: "level", kind: kindChoice, value: "2"}
			for _, l := range []string{"2", "1"} {
				f.choices = append(f.choices, pick{Value: l, Key: "method.second." + l})
			}
			add.fields = []field{f}
		}
		list = append(list, add, command{name: "method-delete-" + m.Route, words: "method-delete", operation: "DeleteUserAuthenticationMethod" + m.Operation, effects: does(effect.RemovesFactor), do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return identity.DeleteMethod(ctx, who, o.ID, m.Route)
		}), named: true, possible: func(ctx context.Context, o *object) error {
			scheme, err := identity.Scheme(ctx, rest.Caller(ctx), o.ID)
			if err == nil && !slices.ContainsFunc(scheme, func(i signin.AuthenticationInfo) bool {
				has, _ := signin.MethodNamed(i.MethodURI)
				return has.Route == m.Route
			}) {
				err = fault.New(fault.NotFound, "the person does not have this way to sign in: it was removed already")
			}
			return err
		}})
	}
	return list
}

// reasons are the reasons of a revocation (RFC 5280, 5.3.1) that the form offers.
var reasons = []int{0, 1, 3, 4, 5, 9}

func (a *API) certificateCommands() []command {
	service := a.Keys
	f := field{name: "reason", kind: kindChoice, value: "0"}
	for _, r := range reasons {
		f.choices = append(f.choices, pick{Value: strconv.Itoa(r), Key: "reason." + strconv.Itoa(r)})
	}
	// on makes a command of a call on a certificate of the user.
	on := func(do func(ctx context.Context, id int64, f rest.Form) error) func(context.Context, *object, rest.Form) (*made, error) {
		return silent(func(ctx context.Context, _ audit.Principal, o *object, f rest.Form) error {
			c, err := service.Find(ctx, o.ID, o.Of)
			if err != nil {
				return err
			}
			rest.Detail(ctx, fmt.Sprintf("certificate %d", c.ID))
			return do(ctx, c.ID, f)
		})
	}
	// request makes a command of the decision about a request of the user.
	request := func(decide func(ctx context.Context, id int64) error) func(context.Context, *object, rest.Form) (*made, error) {
		return silent(func(ctx context.Context, _ audit.Principal, o *object, f rest.Form) error {
			q, err := service.Request(ctx, audit.Principal{UserID: o.ID}, o.Of)
			if err != nil {
				return err
			}
			detail := fmt.Sprintf("request %d", q.ID)
			for i, name := range differing(o.parts) {
				detail += map[bool]string{true: ", differs: ", false: ", "}[i == 0] + name
			}
			if seen := f.Get("document"); seen != "" {
				detail += ", compared with: " + seen
			}
			rest.Detail(ctx, detail)
			return decide(ctx, q.ID)
		})
	}
	aboutOne := func(ctx context.Context, o *object) (row, error) {
		if o.Of == "" { // the default one of the user
			return row{}, fault.New(fault.NotFound, "the link names no certificate: choose one in the record")
		}
		c, err := service.Find(ctx, o.ID, o.Of)
		if err != nil {
			return row{}, err
		}
		return certificateRow(view.VisitorOf(ctx).Words, c), nil
	}
	aboutRequest := func(ctx context.Context, o *object) (row, error) {
		q, err := service.Request(ctx, audit.Principal{UserID: o.ID}, o.Of)
		if err != nil {
			return row{}, err
		}
		r, err := a.requestRow(ctx, q, "")
		if err != nil {
			return row{}, err
		}
		r.Cells[0] = cell{Text: "№ " + o.Of}
		if q.Subject != "" { // all of the name: the authority will certify it
			r.Cells[2] = cell{Text: q.Subject, Code: true}
		}
		if q.Parsed == nil {
			return r, nil
		}
		o.request = q
		o.parts, err = service.Compare(ctx, o.ID, q.Parsed.Subject)
		slices.SortStableFunc(o.parts, func(x, y keys.Part) int { // those that differ first
			switch {
			case x.Differs == y.Differs:
				return 0
			case x.Differs:
				return -1
			}
			return 1
		})
		return r, err
	}
	return []command{
		{name: "certificate-revoke", operation: "RevokeCertificate", effects: does(effect.EndsAccess), fields: []field{f}, named: true, about: aboutOne, ends: a.revokeEnds, do: on(func(ctx context.Context, id int64, f rest.Form) error {
			reason, err := strconv.Atoi(f.Get("reason"))
			if err != nil || !slices.Contains(reasons, reason) {
				return fault.New(fault.InvalidParameters, "reason: want one of the list")
			}
			return service.Revoke(ctx, id, reason)
		})},
		{name: "certificate-hold", operation: "RevokeCertificate", effects: does(effect.EndsAccess), plain: true, undo: "certificate-unhold", about: aboutOne, do: on(func(ctx context.Context, id int64, _ rest.Form) error {
			return service.Revoke(ctx, id, keys.ReasonHold)
		})},
		{name: "certificate-unhold", operation: "UnholdCertificate", effects: does(effect.GivesAccess), plain: true, about: aboutOne, do: on(func(ctx context.Context, id int64, _ rest.Form) error { return service.Unhold(ctx, id) })},
		{name: "request-new", operation: "CreateRequest", effects: does(effect.GivesAccess), tab: "/certificates", do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			q, err := service.RequestFor(ctx, who, o.ID, keys.CertificateOrder{})
			if err == nil {
				rest.Detail(ctx, fmt.Sprintf("request %d", q.ID))
			}
			return err
		})},
		{name: "request-approve", operation: "ApproveRequest", effects: does(effect.GivesAccess), page: true, about: aboutRequest, more: a.compared, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			if len(differing(o.parts)) > 0 && f.Get("seen") != "yes" {
				return nil, fault.New(fault.InvalidParameters, "nothing was done: tick that you have compared the name with a document")
			}
			return request(func(ctx context.Context, id int64) error { _, err := service.Approve(ctx, id); return err })(ctx, o, f)
		}},
		{name: "request-reject", operation: "RejectRequest", effects: does(effect.None), fields: []field{{name: "refusal", required: true, hint: "field.hint.refusal"}}, about: aboutRequest, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			if strings.TrimSpace(f.Get("refusal")) == "" {
				return nil, fault.New(fault.InvalidParameters, "nothing was done: say why the request is refused, for its user")
			}
			return request(func(ctx context.Context, id int64) error {
				_, err := service.Reject(ctx, id, f.Get("refusal"))
				return err
			})(ctx, o, f)
		}},
		{name: "operation-cancel", tab: "/operations", operation: "CancelOperation", effects: does(effect.None), about: a.aboutOperation, do: silent(func(ctx context.Context, _ audit.Principal, o *object, _ rest.Form) error {
			rest.Detail(ctx, "operation "+o.Of)
			return a.Active.Cancel(ctx, audit.Principal{UserID: o.ID}, o.Of)
		})},
	}
}

// revokeEnds says what the revocation of a certificate ends besides: the last one to sign with, and access to messages.
func (a *API) revokeEnds(ctx context.Context, o *object) ([]ending, error) {
	list, err := a.Keys.List(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	var ends []ending
	others, signs := 0, false
	for _, c := range list {
		this, active := strconv.FormatInt(c.ID, 10) == o.Of, c.Status == keys.Active || c.Status == keys.Hold
		switch {
		case this && c.ForEncryption() && a.Keys.RefuseEnded:
			ends = append(ends, ending{"ends.messages", 1})
		case this && !c.ForEncryption():
			signs = true
		case !this && active && !c.ForEncryption():
			others++
		}
	}
	if signs && others == 0 {
		ends = append(ends, ending{"ends.last", 1})
	}
	return ends, nil
}

// aboutOperation describes an operation under way of a user, or one that was cancelled: the form of a
// second tab may cancel it again. One that ended otherwise is not under way.
func (a *API) aboutOperation(ctx context.Context, o *object) (row, error) {
	op, err := a.Active.Find(ctx, audit.Principal{UserID: o.ID}, o.Of)
	if op != nil {
		rest.Afterwards(ctx, op)
	}
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && !op.State.Active() && op.State != operation.Cancelled:
		return row{}, fault.Newf(fault.NotFound, "the operation %.64q is not under way: it has ended, or the link is wrong", o.Of)
	case err != nil:
		return row{}, err
	}
	return row{Cells: []cell{{Key: "action." + op.Action}, {Key: "operation." + string(op.State)}, {At: op.CreatedAt}, {Text: documentNames(op)}}}, nil
}

func (a *API) policyCommands() []command {
	policies := a.Policies
	// weighed are the effects of a new policy, which a form is read as.
	weighed := func(kind policy.Kind, read func(f rest.Form) (policy.Setting, error)) *effects {
		return &effects{effect.WeakensPolicy, func(ctx context.Context, id, _ string, f rest.Form) (effect.Set, error) {
			wanted, err := read(f)
			if err != nil {
				return effect.None, err
			}
			weakens, err := policies.Weakens(ctx, id, kind, wanted)
			return weakening(weakens), err
		}}
	}
	actions := func(name, operation string, kind policy.Kind) command {
		return command{
			name: name, operation: operation, effects: weighed(kind, readActions),
			more: func(ctx context.Context, o *object) ([]field, error) {
				have, err := policies.Get(ctx, rest.Caller(ctx), o.ID, kind)
				return []field{actionField(have.Actions)}, err
			},
			do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
				wanted, err := readActions(f)
				if err != nil {
					return err
				}
				return policies.SetActions(ctx, who, o.ID, kind, wanted.Actions)
			}),
		}
	}
	return []command{
		actions("policy-access", "SetUserAccessPolicy", policy.Access),
		actions("policy-operation", "SetUserOperationPolicy", policy.Operation),
		{
			name: "policy-notification", operation: "SetNotificationPolicy", effects: weighed(policy.Notification, readNotifiers),
			more: func(ctx context.Context, o *object) (list []field, err error) {
				have, err := policies.Get(ctx, rest.Caller(ctx), o.ID, policy.Notification)
				if err != nil {
					return nil, err
				}
				w := view.VisitorOf(ctx).Words
				for _, e := range notify.Events() {
					if !e.ToldUsers() {
						continue
					}
					f := field{name: eventField + string(e.Type), label: e.Description[w.Language], kind: kindMany, values: have.Notifiers[string(e.Type)]}
					for _, n := range policies.Notifiers {
						f.choices = append(f.choices, pick{Value: n, Text: w.TextOr("channel."+n, n)})
					}
					list = append(list, f)
				}
				return list, nil
			},
			do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
				wanted, err := readNotifiers(f)
				if err != nil {
					return err
				}
				return policies.SetNotifiers(ctx, who, o.ID, wanted.Notifiers)
			}),
		},
	}
}

// weakening returns the effects of a policy that may be weaker than before.
func weakening(weakens bool) effect.Set {
	if weakens {
		return effect.WeakensPolicy
	}
	return effect.None
}

// readActions reads a form of actions as the policy that the interface reads a list as.
func readActions(f rest.Form) (policy.Setting, error) {
	set, err := policy.ParseActions(f[actionsField])
	return policy.Setting{Actions: set, Fixed: f.Get("fixed") == "true"}, err
}

// readNotifiers does the same for a form of events.
func readNotifiers(f rest.Form) (policy.Setting, error) {
	notifiers := map[string][]string{}
	for name, values := range f {
		if event, ok := strings.CutPrefix(name, eventField); ok {
			notifiers[event] = values
		}
	}
	return policy.Setting{Notifiers: notifiers}, nil
}

// actionsField is the name of the field of actions.
const actionsField = "actions"

// eventField begins the names of the fields of a notification policy.
const eventField = "event-"

// actionField is a choice of actions.
func actionField(have policy.Action) field {
	f := field{name: actionsField, kind: kindMany}
	for _, a := range policy.Actions() {
		f.choices = append(f.choices, pick{Value: a.String(), Key: "action." + a.String()})
		if have&a != 0 {
			f.values = append(f.values, a.String())
		}
	}
	return f
}
