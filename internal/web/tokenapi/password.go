// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// password is the grant of RFC 6749, 4.3, with the parameter resource of the
// interface family.
func (a *API) password(ctx context.Context, client signin.Client, form rest.Form) (token.Token, error) {
	login, password := form.Get("username"), form.Get("password")
	if password != "" {
		var err error
		if ctx, err = a.attempt(ctx, client, !client.Public, login); err != nil {
			return token.Token{}, err
		}
	}
	t, err := a.identity.PasswordGrant(ctx, client, login, password, form.Get("resource"), form.Get("scope"))
	if err == nil && password != "" {
		a.succeeded(ctx)
	}
	if err == nil {
		rest.Identified(ctx, audit.Principal{UserID: t.UserID, Login: login, ClientID: client.ID, Method: "password"})
	}
	return t, err
}
