// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

func (a *API) loginRoutes() []rest.Route {
	return []rest.Route{
		rest.Handle("POST /ums/user/{id}/login/local", "SetUserLocalLogin", Operator, a.setLocalLogin).Effects(effect.EndsAccess), // by the name of before
		rest.Handle("POST /ums/user/{id}/login", "SetUserLogin", Operator, a.setLogin).Effects(effect.AddsFactor | effect.RemovesFactor),
		rest.Handle("GET /ums/user/{id}/login", "GetUserLogins", Operator, a.logins),
		rest.Handle("DELETE /ums/user/{id}/login/local", "DeleteUserLocalLogin", Operator, a.deleteLocalLogin).Effects(effect.EndsAccess),
		rest.Handle("DELETE /ums/user/{id}/login", "DeleteUserLogin", Operator, a.deleteLogin).Effects(effect.RemovesFactor),
	}
}

// externalLogin is ExternalLoginInfo.
type externalLogin struct{ Login, IssuerName string }

func (a *API) setLocalLogin(ctx context.Context, r struct {
	ID       userID `path:"id"`
	NewLogin string `query:"newLogin"`
}) (rest.None, error) {
	return rest.None{}, a.users.SetLocalLogin(ctx, caller(ctx), string(r.ID), r.NewLogin)
}

func (a *API) setLogin(ctx context.Context, r struct {
	ID   userID `path:"id"`
	Body externalLogin
}) (rest.None, error) {
	return rest.None{}, a.users.SetLogin(ctx, caller(ctx), string(r.ID), user.ExternalLogin{Login: r.Body.Login, Issuer: r.Body.IssuerName})
}

func (a *API) logins(ctx context.Context, r onUser) ([]externalLogin, error) {
	have, err := a.users.Logins(ctx, caller(ctx), string(r.ID))
	list := make([]externalLogin, len(have))
	for i, l := range have {
		list[i] = externalLogin{l.Login, l.Issuer}
	}
	return list, err
}

func (a *API) deleteLocalLogin(ctx context.Context, r onUser) (rest.None, error) {
	return rest.None{}, a.users.DeleteLocalLogin(ctx, caller(ctx), string(r.ID))
}

func (a *API) deleteLogin(ctx context.Context, r struct {
	ID         userID `path:"id"`
	IssuerName string `query:"issuerName"`
}) (rest.None, error) {
	return rest.None{}, a.users.DeleteLogin(ctx, caller(ctx), string(r.ID), r.IssuerName)
}
