// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/passkey"
	"tamga/internal/web/rest"
)

// Passkeys lists and removes the passkeys of users; *passkey.Service satisfies it.
type Passkeys interface {
	List(ctx context.Context, who audit.Principal, userID string) ([]passkey.Passkey, error)
	Remove(ctx context.Context, who audit.Principal, userID, id string) error
}

// PasskeyRoutes returns our own operations on the passkeys of users. People register passkeys
// in a browser. Without passkeys, which is nil, the operations are refused. Mount them beside
// [API.Routes] at the same gate.
func PasskeyRoutes(passkeys Passkeys) []rest.Route {
	a := passkeyAPI{passkeys}
	const path = "/ums/user/{id}/passkeys"
	return []rest.Route{
		rest.Handle("GET "+path, "GetUserPasskeys", Operator, a.list),
		rest.Handle("DELETE "+path+"/{passkey}", "RemoveUserPasskey", Operator, a.remove).Effects(effect.RemovesFactor),
	}
}

type passkeyAPI struct{ passkeys Passkeys }

// available refuses if the installation has no passkeys.
func (a passkeyAPI) available() error {
	if a.passkeys == nil {
		return fault.New(fault.WrongOperation, "this installation has no passkeys: name the method passkey in confirmation.methods")
	}
	return nil
}

// passkeyInfo is a passkey of a user. UsedAt is null until it is used.
type passkeyInfo struct {
	ID        string `json:"Id"`
	Name      string
	CreatedAt string
	UsedAt    *string
}

func (a passkeyAPI) list(ctx context.Context, r onUser) ([]passkeyInfo, error) {
	if err := a.available(); err != nil {
		return nil, err
	}
	list, err := a.passkeys.List(ctx, caller(ctx), string(r.ID))
	described := make([]passkeyInfo, len(list))
	for i, p := range list {
		described[i] = passkeyInfo{ID: p.ID, Name: p.Name, CreatedAt: isoTime(p.CreatedAt)}
		if !p.UsedAt.IsZero() {
			described[i].UsedAt = new(isoTime(p.UsedAt))
		}
	}
	return described, err
}

func (a passkeyAPI) remove(ctx context.Context, r struct {
	ID      userID `path:"id"`
	Passkey string `path:"passkey"`
}) (rest.None, error) {
	if err := a.available(); err != nil {
		return rest.None{}, err
	}
	rest.Detail(ctx, r.Passkey)
	return rest.None{}, a.passkeys.Remove(ctx, caller(ctx), string(r.ID), r.Passkey)
}
