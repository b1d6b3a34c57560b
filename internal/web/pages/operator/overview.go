// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// person is the first page of the record of a user: what needs attention, how the user signs in, the certificates, and
// beside them the facts.
func (a *API) person(ctx context.Context, r onPerson) (view.View, error) {
	v, info, err := a.record(ctx, r.ID, "")
	if err != nil {
		return view.View{}, err
	}
	who, w := rest.Caller(ctx), view.VisitorOf(ctx).Words
	v.Lead = &overview{}
	var requests, held, ways, certificates []item
	devices := 0
	err = view.Concurrently(
		func() (err error) {
			requests, err = a.requestsAbout(ctx, info)
			return err
		},
		func() (err error) {
			held, err = a.heldFor(ctx, w, info)
			return err
		},
		func() (err error) {
			ways, v.Lead.Ways, err = a.waysOf(ctx, who, info)
			return err
		},
		func() (err error) {
			certificates, v.Lead.Certificates, err = a.certificatesOf(ctx, w, info)
			return err
		},
		func() (err error) {
			has, err := a.Devices.Info(ctx, who, info.ID)
			devices = len(has.Devices)
			return err
		},
		func() (err error) {
			v.Lead.Facts, err = a.factsOf(ctx, who, info)
			return err
		},
		func() (err error) {
			names := []string{"sign-out", "group", "disapprove", "delete"}
			switch {
			case unapproved(info): // a button beside the name approves
				names = slices.Delete(names, 2, 3)
			case info.Unapproved:
				names[2] = "approve"
			}
			if a.SignIns.Deliverable(signin.Delivery{Print: signin.PDF}) == nil {
				names = append([]string{"password-print"}, names...)
			}
			v.Lead.Acts, err = a.acts(ctx, objectOf(info), names...)
			return err
		})
	if err != nil {
		return view.View{}, err
	}
	locked, err := a.lockOf(ctx, w, info)
	if err != nil {
		return view.View{}, err
	}
	for _, list := range [][]item{locked, held, requests, ways, certificates} {
		v.Lead.Attention = append(v.Lead.Attention, list...)
	}
	v.Tabs[tabCertificates].N, v.Tabs[tabDevices].N = len(v.Lead.Certificates), devices
	return a.shown(ctx, v, r)
}

// lockOf says what keeps a user from signing in, or will.
func (a *API) lockOf(ctx context.Context, w *view.Words, u user.Info) (list []item, err error) {
	one, command := item{Icon: "ban", Kind: "bad"}, "unlock"
	switch {
	case u.LockedAt.After(a.Now()):
		one.Title, one.Hint, command = w.Text("person.lock_at")+" "+w.When(u.LockedAt), w.Text("person.lock_later"), "lock-cancel"
	case unapproved(u):
		one.Icon, one.Title, one.Hint, command = "pause", w.Text("people.unapproved_long"), w.Text("person.cannot"), "approve"
	case u.Locked:
		one.Title, one.Hint = w.Text("person.is_locked"), w.Text("person.cannot")
		if !u.LockedAt.IsZero() {
			one.Hint = w.Text("person.lock_at") + " " + w.When(u.LockedAt) + ". " + one.Hint
		}
	default:
		return nil, nil
	}
	one.Commands, err = a.acts(ctx, objectOf(u), command)
	return []item{one}, err
}

// heldFor are the changes of a user that a delay holds.
func (a *API) heldFor(ctx context.Context, w *view.Words, u user.Info) (list []item, err error) {
	held, err := a.Approvals.OfUser(ctx, u.ID)
	for _, h := range held {
		list = append(list, item{
			Icon: "pause", Kind: "warn", Title: w.Audited(h.Operation), Hint: w.Text(approvalState(&h).Key) + ", " + w.Text("person.until", w.When(h.ExpiresAt)),
			Commands: []link{{Address: "/operator/approvals/" + h.ID, Key: "requests.look"}},
		})
	}
	return list, err
}

// requestsAbout are the requests of a user that wait.
func (a *API) requestsAbout(ctx context.Context, u user.Info) (list []item, err error) {
	w := view.VisitorOf(ctx).Words
	requests, err := a.Keys.Requests(ctx, audit.Principal{UserID: u.ID})
	for _, q := range requests {
		if err != nil || q.Status != keys.Pending {
			continue
		}
		one := item{Icon: "certificate", Kind: "warn", Title: w.Text("person.request_waits", q.ID), Hint: w.Text("requests.kind." + q.Type.String())}
		differs, err := a.Keys.DiffersOf(ctx, q)
		if err != nil {
			return nil, err
		}
		if len(differs) > 0 {
			one.Hint = w.Text("person.request_differs")
		}
		if one.Commands, err = a.acts(ctx, &object{ID: u.ID, Of: strconv.FormatInt(q.ID, 10)}, "request-approve"); err != nil {
			return nil, err
		}
		one.Commands[0].Key = "requests.look"
		list = append(list, one)
	}
	return list, err
}

// wayIcons are the signs of methods.
var wayIcons = map[string]string{"otpviasms": "sms", "otpviaemail": "mail", oath.Method: "codes", "mydss": "phone", passkey.Method: "passkey", "cert": "certificate", "password": "lock"}

// waysOf returns how a user signs in and confirms, and what of that lacks something.
func (a *API) waysOf(ctx context.Context, who audit.Principal, u user.Info) (lacks, ways []item, err error) {
	w := view.VisitorOf(ctx).Words
	scheme, err := a.SignIns.Scheme(ctx, who, u.ID)
	if err != nil {
		return nil, nil, err
	}
	data, err := a.SignIns.RawData(ctx, who, u.ID, nil)
	if err != nil {
		return nil, nil, err
	}
	ready := map[string]signin.RawMethod{}
	for _, m := range data.Methods {
		ready[m.MethodURI] = m
	}
	if len(scheme) == 0 {
		lacks = append(lacks, item{Icon: "lock", Kind: "warn", Title: w.Text("person.no_methods"), Commands: []link{{Address: personAt(u.ID) + "/sign-in", Key: "person.way_add"}}})
	}
	for _, m := range scheme {
		method, _ := signin.MethodNamed(m.MethodURI)
		has := ready[m.MethodURI]
		one := item{Icon: cmp.Or(wayIcons[method.Route], "key"), Kind: "good", Title: w.Text("method." + method.Route), Hint: w.Text(useOf(method, m.Level)), Tag: w.Text("person.works")}
		for _, p := range has.Parameters {
			if p.Key == string(contact.PhoneNumber) || p.Key == string(contact.EmailAddress) || p.Key == "Serial" {
				one.Hint += " · " + view.Visible(p.Value)
			}
		}
		switch {
		case !has.Confirmed && method.Route == "external": // the other provider knows
			one.Kind, one.Tag = "", ""
		case !has.Confirmed:
			one.Kind, one.Tag = "warn", w.Text("person.works_not")
			lack, err := a.lackOf(ctx, who, u, method.Route)
			if err != nil {
				return nil, nil, err
			}
			lack.Icon, lack.Kind, lack.Title = one.Icon, "warn", w.Text("person.will_not_work", one.Title)
			lacks = append(lacks, lack)
			one.Hint += ". " + lack.Hint
		}
		if method.Route == "password" {
			names, _, err := a.passwordActs(ctx, u)
			if err != nil {
				return nil, nil, err
			}
			if len(names) > 0 {
				if one.Commands, err = a.acts(ctx, objectOf(u), names[0]); err != nil {
					return nil, nil, err
				}
			}
		}
		ways = append(ways, one)
	}
	return lacks, ways, nil
}

// lackOf says what a method of a user needs to work, with what can be done about it.
func (a *API) lackOf(ctx context.Context, who audit.Principal, u user.Info, route string) (one item, err error) {
	w := view.VisitorOf(ctx).Words
	one.Hint = w.Text("person.needs." + route)
	one.Commands = []link{{Address: personAt(u.ID) + "/sign-in", Key: "requests.look"}}
	switch route {
	case "mydss":
		one.Commands[0].Address = personAt(u.ID) + "/devices"
	case oath.Method:
		one.Commands, err = a.acts(ctx, objectOf(u), "token-app")
	case "otpviasms", "otpviaemail":
		for _, k := range contactKinds {
			if k.kind.Method != route {
				continue
			}
			list, err := a.contactsOf(ctx, u.ID, k.kind)
			if err != nil {
				return one, err
			}
			if len(list) > 0 {
				one.Hint = w.Text("person.no_codes_to", view.Visible(list[0].Value))
				one.Commands, err = a.acts(ctx, thingOf(u, list[0].Value, ""), k.name+"-codes")
				return one, err
			}
			one.Commands, err = a.acts(ctx, objectOf(u), k.name+"-add")
			return one, err
		}
	}
	return one, err
}

// certificatesOf lists the certificates of a user, and those that end soon.
func (a *API) certificatesOf(ctx context.Context, w *view.Words, u user.Info) (soon, list []item, err error) {
	certificates, err := a.Keys.List(ctx, u.ID)
	for _, c := range certificates {
		d := view.DescribeCertificate(c, a.Now())
		number := strconv.FormatInt(c.ID, 10)
		one := item{
			Icon: "certificate", Kind: "good", Title: "№ " + number + " " + view.Visible(d.Name), Tag: w.Text(d.Status),
			Hint: w.Suite(d.Suite) + ", " + w.Text("person.until", w.Day(d.NotAfter)) + " · " + d.Serial,
		}
		names := []string{"certificate-hold"}
		switch {
		case d.Held:
			one.Kind, names[0] = "warn", "certificate-unhold"
		case !d.Usable:
			one.Kind, names = "", nil
		}
		if one.Commands, err = a.acts(ctx, thingOf(u, number, ""), names...); err != nil {
			return nil, nil, err
		}
		list = append(list, one)
		if d.Soon {
			soon = append(soon, item{Icon: "certificate", Kind: "warn", Title: w.Text("person.certificate_soon", d.ID), Hint: view.Visible(d.Name) + ", " + w.Text("person.until", w.Day(d.NotAfter))})
		}
	}
	return soon, list, err
}

// factsOf are the facts about a user, with the first contacts.
func (a *API) factsOf(ctx context.Context, who audit.Principal, u user.Info) (table, error) {
	t := table{Title: "person.facts", Facts: true, Narrow: true}
	for _, k := range contactKinds {
		list, err := a.Contacts.List(ctx, who, u.ID, k.kind)
		if err != nil {
			return t, err
		}
		for i := range list[:min(len(list), 3)] {
			c := cell{Text: list[i].Value, Bad: !list[i].Confirmed, Badges: []string{rowOfContact(&list[i]).Cells[1].Key}}
			t.Rows = append(t.Rows, fact("field."+k.name, c))
		}
	}
	t.Rows = append(t.Rows, fact("people.seen", seenCell(u)), fact("person.created", cell{At: u.CreatedAt}), fact("column.Rdn", cell{Text: u.Name}), fact("person.id", cell{Text: u.ID, Code: true}))
	return t, nil
}
