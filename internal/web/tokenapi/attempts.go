// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"
	"encoding/hex"

	"tamga/internal/domain/password"
	"tamga/internal/domain/signin"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
)

// Attempts is the rate limit of password attempts. Its decisions depend on the caller and
// on what was sent, never on whether a login exists. So neither the answer nor its time
// reveals that a login exists.
type Attempts struct {
	// Addresses counts the attempts of an address, Logins those at one login as it was
	// typed. Both count untrusted callers only: trusted callers have their own counts. nil: no
	// limit.
	Addresses, Logins               *limit.Limiter
	TrustedAddresses, TrustedLogins *limit.Limiter
	// Known has the addresses from which a user signed in by password. nil: none.
	Known *limit.Known
}

// attempt counts a password attempt before the password is checked. The context it returns
// names the caller. proved reports that the client proved its secret. The fault is
// too_many_requests.
func (a *API) attempt(ctx context.Context, client signin.Client, proved bool, login string) (context.Context, error) {
	remote := rest.Remote(ctx)
	known := a.attempts.Known != nil && a.attempts.Known.Has(remote)
	who := password.Visitor{Key: "address " + limit.Network(remote)}
	addresses, logins := a.attempts.Addresses, a.attempts.Logins
	switch {
	case proved: // all users of an application come from its address
		who = password.Visitor{Key: "client " + client.ID, Trust: password.Proved}
		addresses, logins = nil, a.attempts.TrustedLogins
	case known:
		who.Trust = password.Known
		addresses, logins = a.attempts.TrustedAddresses, a.attempts.TrustedLogins
	}
	if addresses != nil {
		if err := addresses.Admit(remote); err != nil {
			return ctx, err
		}
	}
	if logins != nil {
		key := signin.KeyOf(login)
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
