// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"

	"tamga/internal/domain/effect"
	"tamga/internal/web/rest"
)

func (a *API) nameRoutes() []rest.Route {
	return []rest.Route{
		rest.Handle("POST /ums/user/{id}/dn", "SetUserDistinguishedName", Operator, a.setDN).Effects(effect.None),
		rest.Handle("POST /ums/user/dn/isunique", "CheckDistinguishedNameUnique", Operator, a.checkDN).Effects(effect.None),
		rest.Handle("GET /ums/user/{id}/dn", "GetUserDistinguishedName", Operator, a.dn),
		rest.Handle("POST /ums/user/{id}/group", "SetUserGroup", Operator, a.setGroup).Effects(effect.WeakensPolicy), // that of another group may
		rest.Handle("GET /ums/user/{id}/group", "GetUserGroup", Operator, a.group),
	}
}

// components is a dictionary of the components of a distinguished name, by the numbers of
// the policy. Object identifiers and short names are accepted as well.
type components map[string]rest.Text

func (c components) values() map[string]string {
	values := make(map[string]string, len(c))
	for key, value := range c {
		values[key] = string(value)
	}
	return values
}

func (a *API) setDN(ctx context.Context, r struct {
	ID   userID `path:"id"`
	Body components
}) (rest.None, error) {
	return rest.None{}, a.users.SetDN(ctx, caller(ctx), string(r.ID), r.Body.values())
}

func (a *API) checkDN(ctx context.Context, r struct{ Body components }) (uniqueResult, error) {
	if err := a.check(ctx, 1); err != nil {
		return uniqueResult{}, err
	}
	u, err := a.users.CheckDNUnique(ctx, caller(ctx), r.Body.values())
	return uniqueResult{u.Data, u.IsUnique, u.Required}, err
}

func (a *API) dn(ctx context.Context, r onUser) (map[int]string, error) {
	name, err := a.users.DN(ctx, caller(ctx), string(r.ID))
	if name == nil {
		name = map[int]string{} // an object on the wire, not null
	}
	return name, err
}

func (a *API) setGroup(ctx context.Context, r struct {
	ID        userID `path:"id"`
	GroupName string `query:"groupName"`
	Body      components
}) (rest.None, error) {
	rest.Detail(ctx, "group="+r.GroupName)
	return rest.None{}, a.users.SetGroup(ctx, caller(ctx), string(r.ID), r.GroupName, r.Body.values())
}

func (a *API) group(ctx context.Context, r onUser) (string, error) {
	return a.users.GroupOf(ctx, caller(ctx), string(r.ID))
}
