// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/passkey"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Passkeys are those of the caller; see [passkey.Service]. It must reach the caller alone.
type Passkeys interface {
	List(ctx context.Context, who audit.Principal, userID string) ([]passkey.Passkey, error)
	Begin(ctx context.Context, who audit.Principal, name string) ([]byte, error)
	Finish(ctx context.Context, who audit.Principal, answer []byte) error
	Rename(ctx context.Context, who audit.Principal, userID, id, name string) error
	Remove(ctx context.Context, who audit.Principal, userID, id string) error
}

// passkeyRoutes are those of a person's passkeys, none if the installation has none.
func (a *API) passkeyRoutes() []rest.Route {
	if a.Passkeys == nil {
		return nil
	}
	post := func(path, name string, f func(ctx context.Context, who audit.Principal, form rest.Form) error) rest.Route {
		return rest.Handle("POST /devices/do/"+path, name, rest.SignedIn, a.onFactors(path, f)).Answering(rest.Redirect{})
	}
	return []rest.Route{
		view.Handle("POST /devices/do/passkey", "CreatePasskeyByPage", rest.SignedIn, a.createPasskey),
		post("passkey-add", "AddPasskeyByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			return a.Passkeys.Finish(ctx, who, []byte(form.Get("passkey")))
		}),
		post("passkey-rename", "RenamePasskeyByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			rest.Detail(ctx, form.Get("id"))
			return a.Passkeys.Rename(ctx, who, who.UserID, form.Get("id"), form.Get("name"))
		}),
		post("passkey-delete", "DeletePasskeyByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			rest.Detail(ctx, form.Get("id"))
			return a.Passkeys.Remove(ctx, who, who.UserID, form.Get("id"))
		}),
	}
}

// createPasskey shows the page whose script has the browser create a passkey.
func (a *API) createPasskey(ctx context.Context, r formed) (view.View, error) {
	who, err := a.allowed(ctx)
	if err != nil {
		return view.View{}, err
	}
	options, err := a.Passkeys.Begin(ctx, who, r.Body.Get("name"))
	return view.View{Template: "account/passkey", Title: "passkeys.add", Script: rest.PasskeyScript, Content: string(options)}, err
}
