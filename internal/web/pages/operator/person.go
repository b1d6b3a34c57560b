// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// personView is the record of a user.
type personView struct {
	Bar    string   // key of what keeps the user from signing in; "": nothing
	Marks  []string // keys, see marksOf
	Name   string
	Groups []recordSection
}

// recordSection is a part of a record: facts and what can be done about them.
type recordSection = table

// person is the whole record of a user.
func (a *API) person(ctx context.Context, r struct {
	ID   string `path:"id"`
	Done string `query:"done"`
}) (view.View, error) {
	who, id := rest.Caller(ctx), strings.ToLower(r.ID)
	info, err := a.People.ByID(ctx, who, id)
	if err != nil {
		return view.View{}, err
	}
	v := personView{Name: nameOf(info), Marks: marksOf(who, info)}
	if info.Locked {
		v.Bar = barKey(info)
	}
	sections := []func(context.Context, audit.Principal, user.Info) (table, error){
		a.personAccount, a.personContacts, a.personSignIn, a.personDevices, a.personCertificates, a.personRequests, a.personOperations, a.personRules, a.personPolicies,
	}
	v.Groups = make([]recordSection, len(sections))
	parts := make([]func() error, len(sections))
	for i, read := range sections {
		parts[i] = func() (err error) {
			v.Groups[i], err = read(ctx, who, info)
			return err
		}
	}
	if err := view.Concurrently(parts...); err != nil {
		return view.View{}, err
	}
	shown := a.office(ctx, "person", "person.title", r.Done, v)
	shown.About = v.Name
	return shown, nil
}

// links returns the links to commands on a user.
func (a *API) links(id, of string, names ...string) (list []link) {
	for _, name := range names {
		list = append(list, a.commandLink(peopleCommands, id, name, of))
	}
	return list
}

// linksFrom are links in a list of many people, which the commands on something of one lead back to.
// from is one of lists, or "" on the page of the person.
func (a *API) linksFrom(from, id, of string, names ...string) []link {
	links := a.links(id, of, names...)
	if from == "" {
		return links
	}
	for i := range links {
		links[i].Address += "&" + fromField + "=" + from // after of
	}
	return links
}

// lists are the lists of many people whose rows have commands on one of them.
var lists = map[string]string{"requests": "/operator/requests", "operations": "/operator/operations", "tokens": "/operator/tokens"}

// peopleCommands is where commands on users are.
const peopleCommands = "/operator/people/{id}"

func fact(key string, c cell) row { return row{Cells: []cell{{Key: key}, c}} }

func (a *API) personAccount(ctx context.Context, who audit.Principal, u user.Info) (table, error) {
	logins, err := a.People.Logins(ctx, who, u.ID)
	if err != nil {
		return table{}, err
	}
	t := table{Title: "person.account", Facts: true}
	t.Rows = append(t.Rows, fact("people.name", cell{Text: u.DisplayName}), fact("column.Rdn", cell{Text: u.Name}), fact("column.Group", cell{Text: u.Group}),
		fact("person.created", cell{At: u.CreatedAt}), fact("people.seen", seenCell(u)), fact("person.id", cell{Text: u.ID, Code: true}))
	for _, l := range logins {
		login := row{Cells: []cell{{Key: "column.Login"}, {Text: l.Login}}}
		if l.Issuer != a.People.LocalIssuer {
			login.Cells[1].Text += " – " + l.Issuer
			login.Commands = a.links(u.ID, l.Issuer, "login-external-delete")
		}
		t.Rows = append(t.Rows, login)
	}
	state, approval := cell{Key: "person.open"}, "disapprove"
	unapproved := u.Unapproved && u.LockedAt.IsZero() // and nothing else that an unlock would end
	switch {
	case unapproved:
		state = cell{Key: "people.unapproved"}
	case u.Locked:
		state = cell{Key: "people.locked"}
	}
	if u.Unapproved {
		approval = "approve"
	}
	t.Rows = append(t.Rows, fact("certificate.state", state))
	if !u.LockedAt.IsZero() {
		t.Rows = append(t.Rows, fact("person.lock_at", cell{At: u.LockedAt}))
	}
	if !u.Locked || unapproved {
		t.Commands = a.links(u.ID, "", "lock")
	}
	switch {
	case u.LockedAt.After(a.Now()):
		t.Commands = append(t.Commands, a.links(u.ID, "", "lock-cancel")...)
	case u.Locked && !unapproved:
		t.Commands = append(t.Commands, a.links(u.ID, "", "unlock")...)
	}
	t.Commands = append(t.Commands, a.links(u.ID, "", "sign-out", "name", "dn", "group", "login", "login-delete")...)
	if len(a.People.Issuers) > 0 {
		t.Commands = append(t.Commands, a.links(u.ID, "", "login-external")...)
	}
	t.Commands = append(t.Commands, a.links(u.ID, "", approval, "delete")...)
	t.Commands = append(t.Commands, link{personAt(u.ID) + "/history", "history.title"})
	return t, nil
}

// contactKinds are the kinds of contacts with their names in addresses and operations, and the fault
// for a missing one.
var contactKinds = []struct {
	kind      contact.Kind
	name      string
	operation string
	gone      func(value string) error
}{
	{contact.Phone, "phone", "Phone", func(value string) error {
		return fault.Newf(fault.NotFound, "the record has no phone %.64q: it was deleted, or the link is wrong", value)
	}},
	{contact.Email, "email", "Email", func(value string) error {
		return fault.Newf(fault.NotFound, "the record has no e-mail %.64q: it was deleted, or the link is wrong", value)
	}},
}

// rowOfContact describes a contact.
func rowOfContact(c *contact.Contact) row {
	r := row{Cells: []cell{{Text: c.Value}, {Key: "contact.open"}}}
	if c.Confirmed {
		r.Cells[1].Key = "contact.confirmed"
	}
	for _, role := range []struct {
		has bool
		key string
	}{{c.Primary, "contact.primary"}, {c.Notification, "contact.notification"}, {c.SecondaryAuth, "contact.codes"}} {
		if role.has {
			r.Cells[0].Badges = append(r.Cells[0].Badges, role.key)
		}
	}
	return r
}

func (a *API) personContacts(ctx context.Context, who audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.contacts", Head: []string{"person.contact", "certificate.state"}, Empty: "person.no_contacts"}
	for _, k := range contactKinds {
		list, err := a.Contacts.List(ctx, who, u.ID, k.kind)
		if err != nil {
			return t, err
		}
		for _, c := range list {
			r, names := rowOfContact(&c), []string{"confirm", "code", "submit", "delete"}
			if c.Confirmed {
				names = []string{"primary", "notification", "codes", "delete"}
			}
			for _, n := range names {
				r.Commands = append(r.Commands, a.links(u.ID, c.Value, k.name+"-"+n)...)
			}
			t.Rows = append(t.Rows, r)
		}
	}
	t.Commands = a.links(u.ID, "", "phone-add", "email-add")
	return t, nil
}

// useOf returns the key of what a method at a level is for.
func useOf(m signin.Method, level int) string {
	switch {
	case m.Primary:
		return "method.first"
	case level == signin.LevelPrimary:
		return "method.second.1"
	}
	return "method.second.2"
}

func (a *API) personSignIn(ctx context.Context, who audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.sign_in", Head: []string{"person.method", "person.level"}, Empty: "person.no_methods"}
	scheme, err := a.SignIns.Scheme(ctx, who, u.ID)
	if err != nil {
		return t, err
	}
	has := map[string]bool{}
	for _, m := range scheme {
		method, _ := signin.MethodNamed(m.MethodURI)
		has[method.Route] = true
		t.Rows = append(t.Rows, row{
			Cells: []cell{{Key: "method." + method.Route}, {Key: useOf(method, m.Level)}}, Commands: a.links(u.ID, "", "method-delete-"+method.Route),
		})
	}
	for _, m := range a.SignIns.Methods() {
		if m.Route != "" && !has[m.Route] {
			t.Commands = append(t.Commands, a.links(u.ID, "", "method-add-"+m.Route)...)
		}
	}
	passwords, lacks, err := a.passwordLinks(ctx, u)
	if err != nil {
		return t, err
	}
	t.Commands, t.Lacks = slices.Concat(t.Commands, passwords, a.links(u.ID, "", "token-set", "token-app")), lacks
	switch token, err := a.OneTime.Token(ctx, who, u.ID); {
	case err == nil:
		t.Rows = append(t.Rows, row{Cells: []cell{{Key: "person.token"}, tokenCell(view.VisitorOf(ctx).Words, token)}, Commands: a.links(u.ID, token.Serial, "token-sync", "token-remove")})
	case !fault.Is(err, fault.KeyNotFound):
		return t, err
	}
	if a.Passkeys == nil {
		return t, nil
	}
	passkeys, err := a.Passkeys.List(ctx, who, u.ID)
	for _, p := range passkeys {
		t.Rows = append(t.Rows, row{Cells: []cell{{Key: "person.passkey"}, {Text: p.Name}}, Commands: a.links(u.ID, p.ID, "passkey-remove")})
	}
	return t, err
}

// rowOfDevice describes a device.
func rowOfDevice(d *device.Device) row {
	return row{Cells: []cell{{Text: cmp.Or(d.Name, d.Kid)}, {Key: "device.state." + strings.ReplaceAll(d.State(), ",", "_")}, {At: d.NotAfter}}}
}

func (a *API) personDevices(ctx context.Context, who audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.devices", Head: []string{"person.device", "certificate.state", "certificate.until"}, Empty: "person.no_devices"}
	info, err := a.Devices.Info(ctx, who, u.ID)
	if err != nil {
		return t, err
	}
	for _, d := range info.Devices {
		names := []string{"device-verify", "device-block", "device-delete"}
		switch {
		case d.Blocked:
			names = []string{"device-unblock", "device-delete"}
		case d.Verified:
			names = []string{"device-block", "device-delete"}
		}
		r := rowOfDevice(&d)
		r.Commands = a.links(u.ID, d.Kid, names...)
		t.Rows = append(t.Rows, r)
	}
	sending := a.Devices.Sending()
	takes, err := a.takesCode(ctx, u)
	if err != nil {
		return t, err
	}
	if !takes {
		what := missing{Key: "lack.device-init"}
		for _, name := range a.codeKinds() {
			what.Commands = append(what.Commands, a.links(u.ID, "", name+"-add")...)
		}
		t.Lacks = append(t.Lacks, what)
	}
	if k := info.KInit; k != nil {
		names := []string{"device-show"}
		if mail := slices.Contains(sending.Channels, contact.Email.Channel); mail && sending.Picture {
			has, err := a.hasConfirmed(ctx, u, contact.Email)
			if err != nil {
				return t, err
			}
			if has || !sending.Confirmed {
				names = append(names, "device-send")
			}
		}
		if takes && sending.Code {
			names = append(names, "device-code")
		}
		t.Rows = append(t.Rows, row{
			Cells: []cell{{Text: k.Kid}, {Key: "person.device_to_be"}, {At: k.NotAfter}}, Commands: a.links(u.ID, "", append(names, "device-cancel")...),
		})
	} else if takes {
		t.Commands = a.links(u.ID, "", "device-init")
	}
	t.Commands = append(t.Commands, a.links(u.ID, "", "device-assign")...)
	return t, nil
}

// tokenCell describes a token for one-time passwords.
func tokenCell(w *view.Words, t oath.Token) cell {
	return cell{Text: t.Serial + " – " + w.Text("token.kind."+strings.ToLower(string(t.Type)))}
}

var certificateHead = []string{"certificate.name", "verify.serial", "certificate.suite", "certificate.from", "certificate.until", "certificate.state"}

// certificateRow describes a certificate.
func certificateRow(w *view.Words, c *keys.Certificate) row {
	info := signing.DescribeCertificate(c.X509)
	return row{Cells: []cell{
		{Text: "№ " + strconv.FormatInt(c.ID, 10) + " " + cmp.Or(c.FriendlyName, view.PersonIn(info.Subject))}, {Text: info.Serial, Code: true}, {Text: w.Suite(c.X509.Suite.Name)}, {At: info.NotBefore}, {At: info.NotAfter}, {Key: "certificate.status." + c.Status.String()},
	}}
}

func (a *API) personCertificates(ctx context.Context, _ audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.certificates", Head: certificateHead, Empty: "person.no_certificates"}
	list, err := a.Keys.List(ctx, u.ID)
	if err != nil {
		return t, err
	}
	for _, c := range list {
		number, r := strconv.FormatInt(c.ID, 10), certificateRow(view.VisitorOf(ctx).Words, c)
		switch c.Status {
		case keys.Active:
			r.Commands = a.links(u.ID, number, "certificate-hold", "certificate-revoke")
		case keys.Hold:
			r.Commands = a.links(u.ID, number, "certificate-unhold", "certificate-revoke")
		}
		t.Rows = append(t.Rows, r)
	}
	return t, nil
}

func (a *API) personRequests(ctx context.Context, _ audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.requests", Head: requestHead, Empty: "person.no_requests"}
	list, err := a.Keys.Requests(ctx, audit.Principal{UserID: u.ID})
	if err != nil {
		return t, err
	}
	for _, q := range list {
		t.Rows = append(t.Rows, a.requestRow(q, ""))
	}
	return t, nil
}

func (a *API) personOperations(ctx context.Context, _ audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.operations", Head: []string{"signed.operation", "certificate.state", "person.begun", "signed.documents"}, Empty: "person.no_operations"}
	list, err := a.Active.Active(ctx, audit.Principal{UserID: u.ID})
	if err != nil {
		return t, err
	}
	for _, o := range list {
		rest.Afterwards(ctx, o)
		t.Rows = append(t.Rows, row{
			Cells:    []cell{{Text: o.ID, Code: true}, {Key: "operation." + string(o.State)}, {At: o.CreatedAt}, {Text: documentNames(o)}},
			Commands: a.links(u.ID, o.ID, "operation-cancel"),
		})
	}
	return t, nil
}

// documentNames names the first documents of an operation.
func documentNames(o *operation.Operation) string {
	var names []string
	for i := range o.Documents {
		if len(names) == 5 {
			names = append(names, "…")
			break
		}
		names = append(names, o.Documents[i].OriginalName)
	}
	return strings.Join(names, ", ")
}

// personRules says where the rules for a user are set.
func (a *API) personRules(ctx context.Context, who audit.Principal, u user.Info) (table, error) {
	t, w := table{Title: "person.rules", Facts: true}, view.VisitorOf(ctx).Words
	for _, kind := range policy.Kinds() {
		setting, scope, err := a.Policies.Scoped(ctx, who, u.ID, kind)
		if err != nil {
			return t, err
		}
		from := cell{Key: "rules." + string(scope)}
		if scope == policy.ForGroup {
			from = cell{Text: w.Text("rules.group", u.Group)}
		}
		if setting.Fixed {
			from.Notes = []string{"rules.fixed"}
		}
		t.Rows = append(t.Rows, fact("policy.kind."+string(kind), from))
	}
	t.Rows = append(t.Rows, fact("person.sign_in", cell{Key: "rules.user"}))
	return t, nil
}

// personPolicies says in words what a user may do.
func (a *API) personPolicies(ctx context.Context, who audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.policies", Head: []string{"policy.action", "policy.access", "policy.operation"}}
	access, err := a.Policies.Get(ctx, who, u.ID, policy.Access)
	if err != nil {
		return t, err
	}
	operation, err := a.Policies.Get(ctx, who, u.ID, policy.Operation)
	if err != nil {
		return t, err
	}
	for _, action := range policy.Actions() {
		may, asks := cell{Key: "policy.allowed"}, cell{Key: "policy.at_once"}
		if access.Actions&action != 0 {
			may = cell{Key: "policy.denied"}
		}
		if operation.Actions&action != 0 {
			asks = cell{Key: "policy.confirmed"}
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Key: "action." + action.String()}, may, asks}})
	}
	for _, p := range []struct {
		setting policy.Setting
		command string
	}{{access, "policy-access"}, {operation, "policy-operation"}} {
		if !p.setting.Fixed {
			t.Commands = append(t.Commands, a.links(u.ID, "", p.command)...)
		}
	}
	t.Commands = append(t.Commands, a.links(u.ID, "", "policy-notification")...)
	return t, nil
}
