// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"slices"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

// contactsOf returns the confirmed contacts of a kind that a user has. The one that gets codes is the
// first.
func (a *API) contactsOf(ctx context.Context, id string, kind contact.Kind) ([]contact.Contact, error) {
	list, err := a.Operators.Contacts.List(ctx, rest.Caller(ctx), id, kind)
	list = slices.DeleteFunc(list, func(c contact.Contact) bool { return !c.Confirmed })
	slices.SortStableFunc(list, func(x, y contact.Contact) int {
		switch {
		case x.SecondaryAuth == y.SecondaryAuth:
			return 0
		case x.SecondaryAuth:
			return -1
		}
		return 1
	})
	return list, err
}

// hasConfirmed reports whether a user has a confirmed contact of a kind. It reads them only if the
// record does not say so.
func (a *API) hasConfirmed(ctx context.Context, u user.Info, kind contact.Kind) (bool, error) {
	shown, confirmed := u.PhoneNumber, u.PhoneConfirmed
	if kind.Type == contact.EmailAddress {
		shown, confirmed = u.Email, u.EmailConfirmed
	}
	if confirmed || shown == "" {
		return confirmed, nil
	}
	list, err := a.contactsOf(ctx, u.ID, kind)
	return len(list) > 0, err
}

// contactChoice offers contacts. none is the key of an entry for none of them, "" for no such entry.
func contactChoice(name, none string, list []contact.Contact) field {
	f := field{name: name, kind: kindChoice}
	if none != "" {
		f.choices = []pick{{Key: none}}
	}
	for _, c := range list {
		f.choices = append(f.choices, pick{Value: c.Value, Text: c.Value})
	}
	return f
}

// missing says why something is not offered, and leads to what mends that.
type missing struct {
	Key   string
	Deeds []link
}

// sentBy are the deeds that send a password, by the kind of contact. Their names end the keys of
// what lacks.
var sentBy = map[contact.Type]string{contact.PhoneNumber: "password-sms", contact.EmailAddress: "password-email"}

// passwordLinks are the links to the ways to give a user a new password that are possible.
func (a *API) passwordLinks(ctx context.Context, u user.Info) (links []link, lacks []missing, err error) {
	identity := a.Operators.SignIns
	if identity.Deliverable(signin.Delivery{Raw: true}) == nil {
		links = a.links(u.ID, "", "password-show")
	}
	for _, k := range contactKinds {
		if identity.Deliverable(sentTo(k.kind, "")) != nil {
			continue
		}
		name := sentBy[k.kind.Type]
		switch has, err := a.hasConfirmed(ctx, u, k.kind); {
		case err != nil:
			return nil, nil, err
		case has:
			links = append(links, a.links(u.ID, "", name)...)
		default:
			lacks = append(lacks, missing{"lack." + name, a.links(u.ID, "", k.name+"-add")})
		}
	}
	if identity.Deliverable(signin.Delivery{Print: signin.PDF}) == nil {
		links = append(links, a.links(u.ID, "", "password-print")...)
	}
	return links, lacks, nil
}

// sentTo is the delivery of a password to a contact, "" for the one that gets codes.
func sentTo(kind contact.Kind, value string) signin.Delivery {
	return signin.Delivery{Destinations: []signin.Destination{{Type: string(kind.Type), Value: value}}}
}

// sendable returns the fault for a user to whom no password can be sent.
func (a *API) sendable(ctx context.Context, o *object, kind contact.Kind) error {
	if err := a.Operators.SignIns.Deliverable(sentTo(kind, "")); err != nil {
		return err
	}
	list, err := a.contactsOf(ctx, o.ID, kind)
	switch {
	case err != nil || len(list) > 0:
		return err
	case kind.Type == contact.PhoneNumber:
		return fault.New(fault.ContactUnconfirmed, "the person has no confirmed phone: add one in the record, and confirm it")
	}
	return fault.New(fault.ContactUnconfirmed, "the person has no confirmed e-mail: add one in the record, and confirm it")
}

// codeKinds are the kinds of contacts that an activation code can go to.
func (a *API) codeKinds() (names []string) {
	for _, k := range contactKinds {
		if slices.Contains(a.Operators.Devices.Sending().Channels, k.kind.Channel) {
			names = append(names, k.name)
		}
	}
	return names
}

// takesCode reports whether an activation code can reach a user, or none is needed.
func (a *API) takesCode(ctx context.Context, u user.Info) (bool, error) {
	sending := a.Operators.Devices.Sending()
	if !sending.Code || !sending.Confirmed {
		return true, nil
	}
	names := a.codeKinds()
	for _, k := range contactKinds {
		if !slices.Contains(names, k.name) {
			continue
		}
		if has, err := a.hasConfirmed(ctx, u, k.kind); err != nil || has {
			return has, err
		}
	}
	return false, nil
}

// codeable returns the fault for a user whom no activation code can reach.
func (a *API) codeable(ctx context.Context, o *object) error {
	u, err := a.Operators.People.ByID(ctx, rest.Caller(ctx), o.ID)
	if err != nil {
		return err
	}
	takes, err := a.takesCode(ctx, u)
	if err == nil && !takes {
		err = fault.New(fault.ContactUnconfirmed, "the activation code needs a confirmed phone or e-mail of the person: add one in the record, and confirm it")
	}
	return err
}

// codeFields ask for the contacts that the activation code goes to. Without codes, there are none.
// Where a code may go to any contact, it is typed.
func (a *API) codeFields(ctx context.Context, o *object) (fields []field, err error) {
	sending, names := a.Operators.Devices.Sending(), a.codeKinds()
	if !sending.Code {
		return nil, nil
	}
	var offered [][]contact.Contact
	for _, k := range contactKinds {
		if !slices.Contains(names, k.name) {
			continue
		}
		if !sending.Confirmed {
			fields = append(fields, field{name: k.name})
			continue
		}
		list, err := a.contactsOf(ctx, o.ID, k.kind)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			fields, offered = append(fields, field{name: k.name}), append(offered, list)
		}
	}
	for i, list := range offered {
		none := ""
		if len(offered) > 1 { // one of them is enough
			none = "device.no_code"
		}
		name := fields[i].name
		fields[i] = contactChoice(name, none, list)
		if i == 0 {
			fields[i].value = list[0].Value
		}
	}
	if len(fields) > 0 && sending.Confirmed {
		fields[0].hint = "field.hint.code_to"
	}
	return fields, nil
}

// pictured returns the fault for a user to whom the QR code of a device cannot be sent.
func (a *API) pictured(ctx context.Context, o *object) error {
	if err := a.connecting(ctx, o); err != nil {
		return err
	}
	sending := a.Operators.Devices.Sending()
	if !sending.Picture || !sending.Confirmed {
		return nil // the room says so
	}
	list, err := a.contactsOf(ctx, o.ID, contact.Email)
	if err == nil && len(list) == 0 {
		err = fault.New(fault.ContactUnconfirmed, "the person has no confirmed e-mail: add one in the record, and confirm it")
	}
	return err
}

// pictureFields ask for the e-mail that the QR code goes to.
func (a *API) pictureFields(ctx context.Context, o *object) ([]field, error) {
	if !a.Operators.Devices.Sending().Confirmed {
		return []field{{name: "email", required: true}}, nil
	}
	list, err := a.contactsOf(ctx, o.ID, contact.Email)
	return []field{contactChoice("email", "", list)}, err
}
