package tokenapi

import (
	"context"
	"encoding/hex"

	"tamga/internal/domain/auth"
	"tamga/internal/domain/password"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
)

// Attempts bounds how often passwords may be tried here. What it decides depends on the
// caller and on what was sent, never on whether a login exists: an answer tells nothing
// of it, nor does the time it takes.
type Attempts struct {
	// Addresses counts the attempts of an address, Logins those at one login as it was
	// typed, both of strangers. Trusted callers have counts of their own. nil is no limit.
	Addresses, Logins               *limit.Limiter
	TrustedAddresses, TrustedLogins *limit.Limiter
	// Known are the addresses somebody signed in from by password. nil: none is known.
	Known *limit.Known
}

// Limiting sets the limits of password attempts; without it there are none.
func (a *API) Limiting(attempts Attempts) *API {
	a.attempts = attempts
	return a
}

// attempt counts a password attempt before it is judged. The context it returns says who
// tries. proved: the client proved its secret. The fault is too_many_requests.
func (a *API) attempt(ctx context.Context, client auth.Client, proved bool, login string) (context.Context, error) {
	remote := rest.Remote(ctx)
	known := a.attempts.Known != nil && a.attempts.Known.Has(remote)
	who := password.Visitor{Key: "address " + limit.Network(remote)}
	addresses, logins := a.attempts.Addresses, a.attempts.Logins
	switch {
	case proved: // all users of an application come from its address
		who = password.Visitor{Key: "client " + client.ID, Standing: password.Proved}
		addresses, logins = nil, a.attempts.TrustedLogins
	case known:
		who.Standing = password.Known
		addresses, logins = a.attempts.TrustedAddresses, a.attempts.TrustedLogins
	}
	if addresses != nil {
		if err := addresses.Admit(remote); err != nil {
			return ctx, err
		}
	}
	if logins != nil {
		key := auth.KeyOf(login)
		if err := logins.AdmitCaller(hex.EncodeToString(key[:]), 1); err != nil {
			return ctx, err
		}
	}
	return password.WithVisitor(ctx, who), nil
}

// succeeded remembers the address of a correct password.
func (a *API) succeeded(ctx context.Context) {
	if a.attempts.Known != nil {
		a.attempts.Known.Add(rest.Remote(ctx))
	}
}
