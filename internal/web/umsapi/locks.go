// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"fmt"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

func (a *API) lockRoutes() []rest.Route {
	return []rest.Route{
		rest.Handle("POST /ums/user/{id}/lockout", "SetUserLockoutState", Operator, a.lockout),
		rest.Handle("POST /ums/user/{id}/lockoutex", "SetUserLockoutStateEx", Operator, a.lockoutEx),
		// The specification writes this path without ums.
		rest.Handle("POST /user/{id}/grants/revoke", "RevokeUserGrants", Operator, a.revokeGrants),
		rest.Handle("POST /ums/user/{id}/grants/revoke", "RevokeUserGrants", Operator, a.revokeGrants),
	}
}

func (a *API) lockout(ctx context.Context, r struct {
	ID   userID `path:"id"`
	Lock flag   `query:"lock"`
}) (rest.None, error) {
	if !r.Lock.given {
		return rest.None{}, fault.New(fault.InvalidParameters, "lock is missing: want True or False in the query")
	}
	rest.Detail(ctx, fmt.Sprintf("lock=%t", r.Lock.value))
	return rest.None{}, a.users.SetLocked(ctx, caller(ctx), string(r.ID), r.Lock.value)
}

// lockoutOrder is UserLockoutRequest.
type lockoutOrder struct {
	LockUser        *bool
	UseLockoutDelay bool
	LockoutDelay    int64 // seconds, unless configured otherwise
}

func (a *API) lockoutEx(ctx context.Context, r struct {
	ID   userID `path:"id"`
	Body lockoutOrder
}) (rest.None, error) {
	o := r.Body
	if o.LockUser == nil {
		return rest.None{}, fault.New(fault.InvalidParameters, "LockUser is missing: want true or false")
	}
	rest.Detail(ctx, fmt.Sprintf("lock=%t delay=%t %d", *o.LockUser, o.UseLockoutDelay, o.LockoutDelay))
	return rest.None{}, a.users.SetLockedEx(ctx, caller(ctx), string(r.ID), user.LockOrder{
		Lock: *o.LockUser, UseDelay: o.UseLockoutDelay, Delay: o.LockoutDelay,
	})
}

func (a *API) revokeGrants(ctx context.Context, r onUser) (rest.None, error) {
	return rest.None{}, a.identity.RevokeGrants(ctx, caller(ctx), string(r.ID))
}
