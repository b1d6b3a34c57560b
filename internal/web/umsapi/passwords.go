// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"bytes"
	"context"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/web/rest"
)

func (a *API) passwordRoutes() []rest.Route {
	// A new password replaces the one of before, and leaves the service in some way.
	const reset = effect.GivesSecret | effect.AddsFactor | effect.RemovesFactor
	return []rest.Route{
		rest.Handle("POST /ums/user/{id}/password", "ResetPassword", Operator, a.resetPassword).Effects(reset),
		rest.Handle("POST /ums/user/{id}/password/send", "ResetPasswordAndSend", Operator, a.resetAndSend).Effects(reset),
		rest.Handle("POST /ums/user/{id}/password/send/sms", "ResetPasswordAndSendSms", Operator, a.resetAndSendTo(contact.Phone)).Effects(reset),
		rest.Handle("POST /ums/user/{id}/password/send/email", "ResetPasswordAndSendEmail", Operator, a.resetAndSendTo(contact.Email)).Effects(reset),
		rest.Handle("POST /ums/user/{id}/password/print", "ResetPasswordAndPrint", Operator, a.resetAndPrint).Effects(reset),
	}
}

// resetPassword answers the password, or an empty string if the settings forbid to show it.
func (a *API) resetPassword(ctx context.Context, r onUser) (string, error) {
	o, err := a.identity.ResetPassword(ctx, caller(ctx), string(r.ID), signin.Delivery{Show: true})
	return o.Password, err
}

// resetOrder is ResetPasswordRequest.
type resetOrder struct {
	NotificationDestinations []struct {
		Type  string
		Value rest.Text
	}
	ReturnRawPassword           bool
	ReturnPrintedPasswordFormat string
}

// resetOutcome is ResetPasswordResponse. Keys for what was not requested are missing.
type resetOutcome struct {
	Password      *string `json:",omitempty"`
	PrintForm     []byte  `json:",omitempty"`
	PrintFormName string  `json:",omitempty"`
}

func (a *API) resetAndSend(ctx context.Context, r struct {
	ID   userID `path:"id"`
	Body resetOrder
}) (resetOutcome, error) {
	d := signin.Delivery{Raw: r.Body.ReturnRawPassword, Print: signin.PrintFormat(r.Body.ReturnPrintedPasswordFormat)}
	for _, to := range r.Body.NotificationDestinations {
		d.Destinations = append(d.Destinations, signin.Destination{Type: to.Type, Value: string(to.Value)})
	}
	o, err := a.identity.ResetPassword(ctx, caller(ctx), string(r.ID), d)
	if err != nil {
		return resetOutcome{}, err
	}
	answer := resetOutcome{}
	if d.Raw {
		answer.Password = &o.Password
	}
	if o.Form != nil {
		answer.PrintForm, answer.PrintFormName = o.Form.Content, o.Form.Name
	}
	return answer, nil
}

// sendTo is a reset whose password is sent to one contact.
type sendTo struct {
	ID          userID `path:"id"`
	Destination string `query:"destination"`
}

func (a *API) resetAndSendTo(kind contact.Kind) func(context.Context, sendTo) (rest.None, error) {
	return func(ctx context.Context, r sendTo) (rest.None, error) {
		_, err := a.identity.ResetPassword(ctx, caller(ctx), string(r.ID), signin.Delivery{
			Destinations: []signin.Destination{{Type: string(kind.Type), Value: r.Destination}},
		})
		return rest.None{}, err
	}
}

func (a *API) resetAndPrint(ctx context.Context, r struct {
	ID     userID `path:"id"`
	Format string `query:"format"`
}) (rest.File, error) {
	if r.Format == "" {
		return rest.File{}, fault.New(fault.InvalidParameters, "format is missing: want Html, Xml, Pdf or Word in the query")
	}
	o, err := a.identity.ResetPassword(ctx, caller(ctx), string(r.ID), signin.Delivery{Print: signin.PrintFormat(r.Format)})
	if err != nil {
		return rest.File{}, err
	}
	return rest.File{Content: bytes.NewReader(o.Form.Content), Name: o.Form.Name, Type: o.Form.ContentType}, nil
}
