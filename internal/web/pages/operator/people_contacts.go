// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

// contactsOf returns the confirmed contacts of a kind that a user has. The one that gets codes is the
// first.
func (a *API) contactsOf(ctx context.Context, id string, kind contact.Kind) ([]contact.Contact, error) {
	list, err := a.Contacts.List(ctx, rest.Caller(ctx), id, kind)
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
	Key      string
	Commands []link
}

// sentBy are the commands that send a password, by the kind of contact. Their names end the keys of
// what lacks.
var sentBy = map[contact.Type]string{contact.PhoneNumber: "password-sms", contact.EmailAddress: "password-email"}

// passwordActs are the commands that give a user a new password in a way that is possible.
func (a *API) passwordActs(ctx context.Context, u user.Info) (names []string, lacks []missing, err error) {
	identity := a.SignIns
	if identity.Deliverable(signin.Delivery{Raw: true}) == nil {
		names = append(names, "password-show")
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
			names = append(names, name)
		default:
			add, err := a.acts(ctx, objectOf(u), k.name+"-add")
			if err != nil {
				return nil, nil, err
			}
			lacks = append(lacks, missing{"lack." + name, add})
		}
	}
	if identity.Deliverable(signin.Delivery{Print: signin.PDF}) == nil {
		names = append(names, "password-print")
	}
	return names, lacks, nil
}

// sentTo is the delivery of a password to a contact, "" for the one that gets codes.
func sentTo(kind contact.Kind, value string) signin.Delivery {
	return signin.Delivery{Destinations: []signin.Destination{{Type: string(kind.Type), Value: value}}}
}

// sendable returns the fault for a user to whom no password can be sent.
func (a *API) sendable(ctx context.Context, o *object, kind contact.Kind) error {
	if err := a.SignIns.Deliverable(sentTo(kind, "")); err != nil {
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

func (a *API) contactCommands() (list []command) {
	book := a.Contacts
	for _, k := range contactKinds {
		about := func(ctx context.Context, o *object) (row, error) {
			list, err := book.List(ctx, rest.Caller(ctx), o.ID, k.kind)
			if err != nil {
				return row{}, err
			}
			if i := slices.IndexFunc(list, func(c contact.Contact) bool { return sameContact(k.kind, c.Value, o.Of) }); i >= 0 {
				return rowOfContact(&list[i]), nil
			}
			return row{}, k.gone(o.Of)
		}
		// on makes a command of a call on a contact.
		on := func(name, operation string, e effect.Set, do func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error) command {
			return command{name: k.name + "-" + name, words: "contact-" + name, operation: operation, effects: does(e), about: about, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
				rest.Detail(ctx, o.Of)
				return do(ctx, who, o, f)
			})}
		}
		role := func(name string, e effect.Set, set func(ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value string, has bool) (contact.Contact, error)) command {
			d := on(name, "SetUser"+strings.ToUpper(name[:1])+name[1:]+k.operation, e, nil)
			d.do = func(ctx context.Context, o *object, f rest.Form) (*made, error) {
				has, ok := rest.Truth(f.Get("has"))
				if !ok {
					return nil, fault.New(fault.InvalidParameters, "choose yes or no")
				}
				rest.Detail(ctx, fmt.Sprintf("%s %s=%t", o.Of, name, has))
				_, err := set(ctx, rest.Caller(ctx), o.ID, k.kind, o.Of, has)
				if has {
					return nil, err
				}
				return &made{done: roleGone}, err
			}
			d.plain = true // pages say which of the two
			d.fields = []field{{name: "has", kind: kindChoice, value: "true", choices: []pick{{Value: "true", Key: "choice.yes"}, {Value: "false", Key: "choice.no"}}}}
			return d
		}
		add := command{name: k.name + "-add", operation: "AddUser" + k.operation, effects: does(effect.None), fields: []field{{name: k.name, required: true}}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			rest.Detail(ctx, f.Get(k.name))
			_, err := book.Add(ctx, who, o.ID, k.kind, f.Get(k.name))
			return err
		})}
		confirm := on("confirm", "ConfirmUser"+k.operation, effect.None, func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			_, err := book.Confirm(ctx, who, o.ID, k.kind, o.Of)
			return err
		})
		code := on("code", "RequireUser"+k.operation+"Confirmation", effect.None, func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return book.RequireConfirmation(ctx, who, o.ID, k.kind, o.Of)
		})
		confirm.plain, code.plain = true, true
		submit := on("submit", "SubmitUser"+k.operation+"Confirmation", effect.None, func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			_, err := book.SubmitConfirmation(ctx, who, o.ID, k.kind, o.Of, f.Get("code"))
			return err
		})
		submit.fields = []field{{name: "code", required: true, varying: true}}
		codes := on("codes", "SetUserSecondaryAuth"+k.operation, effect.AddsFactor|effect.RemovesFactor, func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return book.SetSecondaryAuth(ctx, who, o.ID, k.kind, o.Of)
		})
		codes.plain = true
		end := on("delete", "DeleteUser"+k.operation, effect.RemovesFactor, func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return book.Delete(ctx, who, o.ID, k.kind, o.Of)
		})
		end.named = true
		list = append(list, add, confirm, code, submit, role("primary", effect.AddsFactor|effect.RemovesFactor, book.SetPrimary), role("notification", effect.None, book.SetNotification), codes, end)
	}
	return list
}

// sameContact reports whether two values are the same contact.
func sameContact(kind contact.Kind, one, other string) bool {
	a, errA := kind.Stored(one)
	b, errB := kind.Stored(other)
	return errA == nil && errB == nil && a == b
}
