package tokenapi

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/auth"
	"tamga/internal/web/rest"
)

// password is the grant of RFC 6749, 4.3, with the parameter resource of the
// interface family.
func (a *API) password(ctx context.Context, client auth.Client, form rest.Form) (auth.Token, error) {
	login := form.Get("username")
	t, err := a.identity.PasswordGrant(ctx, client, login, form.Get("password"), form.Get("resource"), form.Get("scope"))
	if err == nil {
		rest.Identified(ctx, audit.Principal{UserID: t.UserID, Login: login, ClientID: client.ID, Method: "password"})
	}
	return t, err
}
