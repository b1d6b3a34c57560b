// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"fmt"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/effect"
	"tamga/internal/web/rest"
)

// surface is the difference between phones and e-mails on the wire.
type surface struct {
	kind   contact.Kind
	plural string // element of the path
	single string // element of the path of the legacy view
	name   string // in the names of operations
	legacy func(contact.Contact) any
}

var surfaces = []surface{
	{contact.Phone, "phones", "phonenumber", "Phone", phoneInfo},
	{contact.Email, "emails", "email", "Email", emailInfo},
}

// phoneInfo is UserPhoneInfo.
func phoneInfo(c contact.Contact) any {
	return struct {
		PhoneNumber *string
		Confirmed   bool
	}{rest.OrNull(c.Value), c.Confirmed}
}

// emailInfo is UserEmailInfo.
func emailInfo(c contact.Contact) any {
	return struct {
		Email     *string
		Confirmed bool
	}{rest.OrNull(c.Value), c.Confirmed}
}

func (a *API) contactRoutes() []rest.Route {
	var routes []rest.Route
	for _, s := range surfaces {
		c := contactAPI{a, s}
		all := "/ums/user/{id}/" + s.plural
		one := all + "/{value}"
		routes = append(routes,
			rest.Handle("GET "+all, "GetUser"+s.name+"s", Operator, c.list),
			rest.Handle("POST "+all, "AddUser"+s.name, Operator, c.add).Effects(effect.None),
			// The specification checks e-mails under phones, so the value decides.
			rest.Handle("POST /ums/user/"+s.plural+"/{value}/isunique", "Check"+s.name+"Unique", Operator, c.isUnique).Effects(effect.None),
			rest.Handle("DELETE "+one, "DeleteUser"+s.name, Operator, c.delete).Effects(effect.RemovesFactor),
			rest.Handle("GET /ums/user/{id}/"+s.single, "GetUser"+s.name+"TokenInfo", Operator, c.main).Answering(s.legacy(contact.Contact{})),
			rest.Handle("POST /ums/user/{id}/"+s.single, "SetUserMain"+s.name, Operator, c.setMain).Effects(effect.AddsFactor|effect.RemovesFactor),
			rest.Handle("DELETE /ums/user/{id}/"+s.single, "DeleteUser"+s.name, Operator, c.deleteMain).Effects(effect.RemovesFactor),
		)
		for _, r := range []rest.Route{
			rest.Handle("POST "+one+"/confirm", "ConfirmUser"+s.name, Operator, c.confirm).Effects(effect.None),
			rest.Handle("POST "+one+"/requireconfirm", "RequireUser"+s.name+"Confirmation", Operator, c.requireConfirmation).Effects(effect.None),
			rest.Handle("POST "+one+"/submitconfirm", "SubmitUser"+s.name+"Confirmation", Operator, c.submitConfirmation).Effects(effect.None),
			rest.Handle("POST "+one+"/primary", "SetUserPrimary"+s.name, Operator, c.setPrimary).Effects(effect.AddsFactor | effect.RemovesFactor),
			rest.Handle("POST "+one+"/notification", "SetUserNotification"+s.name, Operator, c.setNotification).Effects(effect.None),
			rest.Handle("POST "+one+"/secondaryauth", "SetUserSecondaryAuth"+s.name, Operator, c.setSecondaryAuth).Effects(effect.AddsFactor | effect.RemovesFactor),
		} {
			routes = append(routes, r, r.Also("PATCH"))
		}
	}
	return routes
}

// contactAPI serves one kind of contact.
type contactAPI struct {
	*API
	surface
}

// onContact is a request that names a user and a contact and nothing else.
type onContact struct {
	ID    userID `path:"id"`
	Value string `path:"value"`
}

// usage is one entry of Usages.
type usage struct{ Type, Title, Description string }

// contactInfo is UserContactInfo.
type contactInfo struct {
	Type         string
	Contact      string
	Confirmed    bool
	Primary      bool
	Notification bool
	Usages       []usage
}

func describeContact(c contact.Contact) contactInfo {
	d := contactInfo{
		Type: string(c.Type), Contact: c.Value, Confirmed: c.Confirmed,
		Primary: c.Primary, Notification: c.Notification, Usages: []usage{},
	}
	if c.SecondaryAuth {
		d.Usages = append(d.Usages, usage{"OTP", "Одноразовые пароли", "Контакт получает одноразовые пароли для аутентификации"})
	}
	return d
}

func (c contactAPI) list(ctx context.Context, r onUser) ([]contactInfo, error) {
	have, err := c.contacts.List(ctx, caller(ctx), string(r.ID), c.kind)
	list := make([]contactInfo, len(have))
	for i, x := range have {
		list[i] = describeContact(x)
	}
	return list, err
}

// textBody is a request whose body is one JSON string.
type textBody struct {
	ID   userID `path:"id"`
	Body rest.Text
}

func (c contactAPI) add(ctx context.Context, r textBody) (contactInfo, error) {
	rest.Detail(ctx, string(r.Body))
	made, err := c.contacts.Add(ctx, caller(ctx), string(r.ID), c.kind, string(r.Body))
	return describeContact(made), err
}

func (c contactAPI) isUnique(ctx context.Context, r struct {
	Value string `path:"value"`
}) (uniqueResult, error) {
	if err := c.check(ctx, 1); err != nil {
		return uniqueResult{}, err
	}
	u, err := c.contacts.IsUnique(ctx, r.Value)
	return uniqueResult{u.Data, u.IsUnique, u.Required}, err
}

func (c contactAPI) delete(ctx context.Context, r onContact) (rest.None, error) {
	rest.Detail(ctx, r.Value)
	return rest.None{}, c.contacts.Delete(ctx, caller(ctx), string(r.ID), c.kind, r.Value)
}

func (c contactAPI) confirm(ctx context.Context, r onContact) (contactInfo, error) {
	rest.Detail(ctx, r.Value)
	x, err := c.contacts.Confirm(ctx, caller(ctx), string(r.ID), c.kind, r.Value)
	return describeContact(x), err
}

func (c contactAPI) requireConfirmation(ctx context.Context, r onContact) (rest.None, error) {
	rest.Detail(ctx, r.Value)
	return rest.None{}, c.contacts.RequireConfirmation(ctx, caller(ctx), string(r.ID), c.kind, r.Value)
}

func (c contactAPI) submitConfirmation(ctx context.Context, r struct {
	ID    userID `path:"id"`
	Value string `path:"value"`
	Body  rest.Text
}) (contactInfo, error) {
	rest.Detail(ctx, r.Value)
	x, err := c.contacts.SubmitConfirmation(ctx, caller(ctx), string(r.ID), c.kind, r.Value, string(r.Body))
	return describeContact(x), err
}

// setRole assigns a role to a contact or removes it.
type setRole func(b *contact.Book, ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value string, has bool) (contact.Contact, error)

func (c contactAPI) setPrimary(ctx context.Context, r struct {
	ID      userID `path:"id"`
	Value   string `path:"value"`
	Primary flag   `query:"primary"`
	Body    any    `api:"boolean"`
}) (contactInfo, error) {
	return c.role(ctx, (*contact.Book).SetPrimary, r.ID, r.Value, "primary", r.Body, r.Primary)
}

func (c contactAPI) setNotification(ctx context.Context, r struct {
	ID           userID `path:"id"`
	Value        string `path:"value"`
	Notification flag   `query:"notification"`
	Body         any    `api:"boolean"`
}) (contactInfo, error) {
	return c.role(ctx, (*contact.Book).SetNotification, r.ID, r.Value, "notification", r.Body, r.Notification)
}

func (c contactAPI) role(ctx context.Context, set setRole, id userID, value, name string, body any, query flag) (contactInfo, error) {
	has, err := flagOf(name, body, query)
	if err != nil {
		return contactInfo{}, err
	}
	rest.Detail(ctx, fmt.Sprintf("%s %s=%t", value, name, has))
	x, err := set(c.contacts, ctx, caller(ctx), string(id), c.kind, value, has)
	return describeContact(x), err
}

func (c contactAPI) setSecondaryAuth(ctx context.Context, r onContact) (rest.None, error) {
	rest.Detail(ctx, r.Value)
	return rest.None{}, c.contacts.SetSecondaryAuth(ctx, caller(ctx), string(r.ID), c.kind, r.Value)
}

func (c contactAPI) main(ctx context.Context, r onUser) (any, error) {
	x, _, err := c.contacts.Main(ctx, caller(ctx), string(r.ID), c.kind)
	return c.legacy(x), err
}

func (c contactAPI) setMain(ctx context.Context, r textBody) (rest.None, error) {
	rest.Detail(ctx, string(r.Body))
	return rest.None{}, c.contacts.SetMain(ctx, caller(ctx), string(r.ID), c.kind, string(r.Body))
}

func (c contactAPI) deleteMain(ctx context.Context, r onUser) (rest.None, error) {
	return rest.None{}, c.contacts.DeleteMain(ctx, caller(ctx), string(r.ID), c.kind)
}
