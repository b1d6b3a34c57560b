// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"fmt"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

func (a *API) lockRoutes() []rest.Route {
	return []rest.Route{
		rest.Weigh(rest.Handle("POST /ums/user/{id}/lockout", "SetUserLockoutState", Operator, a.lockout), effect.EndsAccess|effect.GivesAccess,
			func(_ context.Context, r lockoutRequest) (effect.Set, error) {
				return r.Lock.either(effect.EndsAccess, effect.GivesAccess), nil
			}),
		rest.Weigh(rest.Handle("POST /ums/user/{id}/lockoutex", "SetUserLockoutStateEx", Operator, a.lockoutEx), effect.EndsAccess|effect.GivesAccess,
			func(_ context.Context, r lockoutExRequest) (effect.Set, error) {
				lock := r.Body.LockUser
				return flag{lock != nil, lock != nil && *lock}.either(effect.EndsAccess, effect.GivesAccess), nil
			}),
		// The specification writes this path without ums.
		rest.Handle("POST /user/{id}/grants/revoke", "RevokeUserGrants", Operator, a.revokeGrants).Effects(effect.EndsAccess),
		rest.Handle("POST /ums/user/{id}/grants/revoke", "RevokeUserGrants", Operator, a.revokeGrants).Effects(effect.EndsAccess),
	}
}

// lockoutRequest locks or unlocks a user at once.
type lockoutRequest struct {
	ID   userID `path:"id"`
	Lock flag   `query:"lock"`
}

func (a *API) lockout(ctx context.Context, r lockoutRequest) (rest.None, error) {
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

// lockoutExRequest locks or unlocks a user.
type lockoutExRequest struct {
	ID   userID `path:"id"`
	Body lockoutOrder
}

func (a *API) lockoutEx(ctx context.Context, r lockoutExRequest) (rest.None, error) {
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
