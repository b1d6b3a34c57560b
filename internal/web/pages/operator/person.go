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

// personView is a page of the record of a user.
type personView struct {
	ID, Name, Login, Group, Initials string

	Bar    string   // key of what keeps the user from signing in; "": nothing
	Marks  []string // keys, see marksOf
	Tabs   []view.Tab
	Acts   []link // beside the name
	Lead   *overview
	Tables []table
}

// overview is the first page of a record.
type overview struct {
	Attention          []item
	Ways, Certificates []item
	Facts              table
	Acts               []link // less usual ones
}

// item is a thing in a list: a sign, a name and what can be done about it.
type item struct {
	Icon, Kind  string // Kind is that of the sign and of the tag: good, warn, bad, or "" for neither
	Title, Hint string
	Tag         string // a word for its state; "": none
	Commands    []link
}

// Disc is the class of the sign.
func (i item) Disc() string { return cmp.Or(i.Kind, "off") }

// section reads a part of a record.
type section = func(context.Context, audit.Principal, user.Info) (table, error)

// personTab is a page of a record, below the first one.
type personTab struct {
	at, key  string
	sections func(a *API) []section
	hidden   bool // the list of pages does not have it: the button "Change" leads to it
}

var personTabs = []personTab{
	{at: "/sign-in", key: "person.sign_in", sections: func(a *API) []section { return []section{a.personSignIn, a.personContacts} }},
	{at: "/certificates", key: "person.certificates", sections: func(a *API) []section { return []section{a.personCertificates, a.personRequests} }},
	{at: "/devices", key: "person.devices", sections: func(a *API) []section { return []section{a.personDevices} }},
	{at: "/operations", key: "person.tab_operations", sections: func(a *API) []section { return []section{a.personOperations} }},
	{at: "/rules", key: "person.tab_rules", sections: func(a *API) []section { return []section{a.personRules, a.personPolicies} }},
	{at: "/account", key: "person.account", hidden: true, sections: func(a *API) []section { return []section{a.personAccount} }},
}

// Places of pages with counts in the list of pages, where the first page is before personTabs.
const (
	tabCertificates = 2
	tabDevices      = 3
)

// onPerson asks for a page of a record. Of is what Done was done to.
type onPerson struct {
	ID   string `path:"id"`
	Done string `query:"done"`
	Of   string `query:"of"`
}

// record begins a page of the record of a user.
func (a *API) record(ctx context.Context, id, at string) (v personView, info user.Info, err error) {
	who := rest.Caller(ctx)
	if info, err = a.People.ByID(ctx, who, strings.ToLower(id)); err != nil {
		return v, info, err
	}
	name := cmp.Or(view.Visible(strings.Join(strings.Fields(info.DisplayName), " ")), nameOf(info))
	v = personView{ID: info.ID, Name: name, Login: info.Login, Group: info.Group, Initials: view.Initials(name), Marks: marksOf(who, info)}
	commands := []string{"lock"}
	switch {
	case unapproved(info):
		v.Bar, commands = barKey(info), []string{"approve", "lock"}
	case info.Locked:
		v.Bar, commands = barKey(info), []string{"unlock"}
	}
	if v.Acts, err = a.acts(ctx, objectOf(info), commands...); err != nil {
		return v, info, err
	}
	if last := len(commands) - 1; commands[last] == "lock" {
		v.Acts[last].Class = "danger"
	}
	v.Tabs = []view.Tab{{Address: personAt(info.ID), Key: "person.overview", Here: at == ""}}
	for _, t := range personTabs {
		if !t.hidden {
			v.Tabs = append(v.Tabs, view.Tab{Address: personAt(info.ID) + t.at, Key: t.key, Here: at == t.at})
		}
	}
	v.Tabs = append(v.Tabs, view.Tab{Address: personAt(info.ID) + "/history", Key: "history.title", Here: at == "/history"})
	if at == "" { // the first page counts what it lists
		return v, info, nil
	}
	return v, info, view.Concurrently(
		func() error {
			list, err := a.Keys.List(ctx, info.ID)
			v.Tabs[tabCertificates].N = len(list)
			return err
		},
		func() error {
			has, err := a.Devices.Info(ctx, who, info.ID)
			v.Tabs[tabDevices].N = len(has.Devices)
			return err
		})
}

// shown returns a page of a record.
func (a *API) shown(ctx context.Context, v personView, r onPerson) (view.View, error) {
	shown := a.office(ctx, "person", "person.title", r.Done, v)
	shown.About = v.Name
	if d := a.commandsByName[r.Done]; d != nil && d.undo != "" {
		undo, err := a.acts(ctx, &object{ID: v.ID, Of: r.Of}, d.undo)
		if err != nil {
			return view.View{}, err
		}
		page := shown.Content.(operatorView)
		page.Undo = &undo[0]
		shown.Content = page
	}
	return shown, nil
}

// personPage makes the function of a page of a record.
func (a *API) personPage(t personTab) func(context.Context, onPerson) (view.View, error) {
	return func(ctx context.Context, r onPerson) (view.View, error) {
		v, info, err := a.record(ctx, r.ID, t.at)
		if err != nil {
			return view.View{}, err
		}
		sections := t.sections(a)
		v.Tables = make([]table, len(sections))
		parts := make([]func() error, len(sections))
		for i, read := range sections {
			parts[i] = func() (err error) {
				v.Tables[i], err = read(ctx, rest.Caller(ctx), info)
				return err
			}
		}
		if err := view.Concurrently(parts...); err != nil {
			return view.View{}, err
		}
		return a.shown(ctx, v, r)
	}
}

// objectOf returns a user as the object of commands.
func objectOf(u user.Info) *object {
	return &object{ID: u.ID, Name: nameOf(u), Note: noteOf(u), back: personAt(u.ID)}
}

// thingOf returns something of a user as the object of commands, by the name that people know it by, "" for the same.
func thingOf(u user.Info, of, name string) *object {
	return &object{ID: u.ID, Of: of, Name: cmp.Or(name, of), back: personAt(u.ID)}
}

// unapproved reports whether nothing but an approval keeps a user from signing in, so that an unlock would end nothing.
func unapproved(u user.Info) bool { return u.Unapproved && u.LockedAt.IsZero() }

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
	t.Rows = append(t.Rows, fact("people.name", cell{Text: u.DisplayName}), fact("column.Rdn", cell{Text: u.Name}), fact("column.Group", cell{Text: u.Group}))
	for _, l := range logins {
		login := row{Cells: []cell{{Key: "column.Login"}, {Text: l.Login}}}
		if l.Issuer != a.People.LocalIssuer {
			login.Cells[1].Text += " – " + l.Issuer
			if login.Commands, err = a.acts(ctx, thingOf(u, l.Issuer, ""), "login-external-delete"); err != nil {
				return table{}, err
			}
		}
		t.Rows = append(t.Rows, login)
	}
	names := []string{"name", "dn", "group", "login", "login-delete"}
	if u.Login == "" {
		names = names[:4]
	}
	if len(a.People.Issuers) > 0 {
		names = append(names, "login-external")
	}
	t.Commands, err = a.acts(ctx, objectOf(u), names...)
	return t, err
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
			if c.SecondaryAuth {
				names = slices.DeleteFunc(names, func(n string) bool { return n == "codes" })
			}
			for i := range names {
				names[i] = k.name + "-" + names[i]
			}
			if r.Commands, err = a.acts(ctx, thingOf(u, c.Value, ""), names...); err != nil {
				return t, err
			}
			for i := range r.Commands { // what a contact has can be taken away
				l := &r.Commands[i]
				switch has, is := map[string]bool{k.name + "-primary": c.Primary, k.name + "-notification": c.Notification}[names[i]]; {
				case is && has:
					l.Key += ".off"
					fallthrough
				case is:
					l.Values = []formValue{{"has", strconv.FormatBool(!has)}}
				}
			}
			t.Rows = append(t.Rows, r)
		}
	}
	var err error
	t.Commands, err = a.acts(ctx, objectOf(u), "phone-add", "email-add")
	return t, err
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
		commands, err := a.acts(ctx, objectOf(u), "method-delete-"+method.Route)
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Key: "method." + method.Route}, {Key: useOf(method, m.Level)}}, Commands: commands})
	}
	var names []string
	for _, m := range a.SignIns.Methods() {
		if m.Route != "" && !has[m.Route] {
			names = append(names, "method-add-"+m.Route)
		}
	}
	passwords, lacks, err := a.passwordActs(ctx, u)
	if err != nil {
		return t, err
	}
	t.Lacks = lacks
	if t.Commands, err = a.acts(ctx, objectOf(u), slices.Concat(names, passwords, []string{"token-set", "token-app"})...); err != nil {
		return t, err
	}
	switch token, err := a.OneTime.Token(ctx, who, u.ID); {
	case err == nil:
		commands, err := a.acts(ctx, thingOf(u, token.Serial, ""), "token-sync", "token-remove")
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Key: "person.token"}, tokenCell(view.VisitorOf(ctx).Words, token)}, Commands: commands})
	case !fault.Is(err, fault.KeyNotFound):
		return t, err
	}
	if a.Passkeys == nil {
		return t, nil
	}
	passkeys, err := a.Passkeys.List(ctx, who, u.ID)
	for _, p := range passkeys {
		commands, err := a.acts(ctx, thingOf(u, p.ID, p.Name), "passkey-remove")
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Key: "person.passkey"}, {Text: p.Name}}, Commands: commands})
	}
	return t, err
}

// deviceName returns the name by which people know a device.
func deviceName(d *device.Device) string { return cmp.Or(d.Name, d.Kid) }

// rowOfDevice describes a device.
func rowOfDevice(d *device.Device) row {
	return row{Cells: []cell{{Text: deviceName(d)}, {Key: "device.state." + strings.ReplaceAll(d.State(), ",", "_")}, {At: d.NotAfter}}}
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
		if r.Commands, err = a.acts(ctx, thingOf(u, d.Kid, deviceName(&d)), names...); err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, r)
	}
	sending := a.Devices.Sending()
	takes, err := a.takesCode(ctx, u)
	if err != nil {
		return t, err
	}
	if !takes {
		what, kinds := missing{Key: "lack.device-init"}, a.codeKinds()
		for i := range kinds {
			kinds[i] += "-add"
		}
		if what.Commands, err = a.acts(ctx, objectOf(u), kinds...); err != nil {
			return t, err
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
		commands, err := a.acts(ctx, objectOf(u), append(names, "device-cancel")...)
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: k.Kid}, {Key: "person.device_to_be"}, {At: k.NotAfter}}, Commands: commands})
	}
	names := []string{"device-init", "device-assign"}
	if info.KInit != nil || !takes {
		names = names[1:]
	}
	t.Commands, err = a.acts(ctx, objectOf(u), names...)
	return t, err
}

// tokenCell describes a token for one-time passwords.
func tokenCell(w *view.Words, t oath.Token) cell {
	return cell{Text: t.Serial + " – " + w.Text("token.kind."+strings.ToLower(string(t.Type)))}
}

var certificateHead = []string{"certificate.name", "verify.serial", "certificate.suite", "certificate.from", "certificate.until", "certificate.state"}

// certificateRow describes a certificate.
func certificateRow(w *view.Words, c *keys.Certificate) row {
	info := signing.DescribeCertificate(c.X509)
	suite := w.Suite(c.X509.Suite.Name)
	if c.ForEncryption() {
		suite += " · " + w.Text("certificate.encrypts")
	}
	return row{Cells: []cell{
		{Text: "№ " + strconv.FormatInt(c.ID, 10) + " " + cmp.Or(c.FriendlyName, view.PersonIn(info.Subject))}, {Text: info.Serial, Code: true}, {Text: suite}, {At: info.NotBefore}, {At: info.NotAfter}, {Key: "certificate.status." + c.Status.String()},
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
			r.Commands, err = a.acts(ctx, thingOf(u, number, ""), "certificate-hold", "certificate-revoke")
		case keys.Hold:
			r.Commands, err = a.acts(ctx, thingOf(u, number, ""), "certificate-unhold", "certificate-revoke")
		}
		if err != nil {
			return t, err
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
		r, err := a.requestRow(ctx, q, "")
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, r)
	}
	waits := slices.ContainsFunc(list, func(q *keys.Request) bool { return q.Status == keys.Pending && q.Type == keys.ForCertificate })
	if !waits && a.asksForOthers() {
		t.Commands, err = a.acts(ctx, objectOf(u), "request-new")
	}
	return t, err
}

func (a *API) personOperations(ctx context.Context, _ audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.operations", Head: []string{"signed.operation", "certificate.state", "person.begun", "signed.documents"}, Empty: "person.no_operations"}
	list, err := a.Active.Active(ctx, audit.Principal{UserID: u.ID})
	if err != nil {
		return t, err
	}
	for _, o := range list {
		rest.Afterwards(ctx, o)
		commands, err := a.acts(ctx, thingOf(u, o.ID, ""), "operation-cancel")
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: o.ID, Code: true}, {Key: "operation." + string(o.State)}, {At: o.CreatedAt}, {Text: documentNames(o)}}, Commands: commands})
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
	names := []string{"policy-notification"}
	if !operation.Fixed {
		names = append(names, "policy-operation")
	}
	if !access.Fixed {
		names = append(names, "policy-access")
	}
	slices.Reverse(names)
	t.Commands, err = a.acts(ctx, objectOf(u), names...)
	return t, err
}
