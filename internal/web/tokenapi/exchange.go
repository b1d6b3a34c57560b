// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// refresh is the grant of RFC 6749, 6.
func (a *API) refresh(ctx context.Context, client signin.Client, form rest.Form) (token.Token, error) {
	t, err := a.tokens.RefreshGrant(ctx, client.ID, form.Get("refresh_token"), form.Get("resource"), form.Get("scope"))
	if err == nil {
		rest.Identified(ctx, audit.Principal{UserID: t.UserID, ClientID: client.ID, Method: "refresh_token"})
	}
	return t, err
}

// exchange is the grant of RFC 8693: an operator gets a token to act as a user. The audit
// entries name the operator as the caller and the user as the object, for refusals too.
func (a *API) exchange(ctx context.Context, client signin.Client, form rest.Form) (token.Token, error) {
	t, who, err := a.identity.ExchangeGrant(ctx, client, signin.Exchange{
		Actor: form.Get("actor_token"), ActorType: form.Get("actor_token_type"),
		Subject: form.Get("subject_token"), SubjectType: form.Get("subject_token_type"),
		Resource: form.Get("resource"), Scope: form.Get("scope"),
	})
	if who.UserID != "" {
		rest.Identified(ctx, who)
	}
	rest.Concerning(ctx, t.UserID)
	return t, err
}
