// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/oath"
	"tamga/internal/web/rest"
)

func (a *API) oathRoutes() []rest.Route {
	const oath = "/ums/user/{id}/oath"
	return []rest.Route{
		rest.Handle("POST "+oath, "SetUserOtpToken", Operator, a.setToken).Varying("FirstOtp", "SecondOtp").Effects(effect.AddsFactor | effect.RemovesFactor),
		rest.Handle("POST "+oath+"/sync", "RestoreUserOtpTokenSync", Operator, a.syncToken).Effects(effect.None),
		rest.Handle("POST "+oath+"/app", "CreateUserOathAppData", Operator, a.createAppToken).Effects(effect.GivesSecret | effect.AddsFactor | effect.RemovesFactor),
		rest.Handle("GET "+oath, "GetUserOtpTokenInfo", Operator, a.token),
		rest.Handle("DELETE "+oath, "RemoveUserOtpToken", Operator, a.removeToken).Effects(effect.RemovesFactor),
	}
}

// tokenCodes is OtpTokenInfo. A serial number may be a JSON number. A code may not, because
// a number loses leading zeros.
type tokenCodes struct {
	ID   userID `path:"id"`
	Body struct {
		Serial    rest.Text
		FirstOTP  string `json:"FirstOtp"`
		SecondOTP string `json:"SecondOtp"`
	}
}

func (r tokenCodes) codes() oath.Codes {
	return oath.Codes{Serial: string(r.Body.Serial), FirstOTP: r.Body.FirstOTP, SecondOTP: r.Body.SecondOTP}
}

func (a *API) setToken(ctx context.Context, r tokenCodes) (rest.None, error) {
	return rest.None{}, a.tokens.SetToken(ctx, caller(ctx), string(r.ID), r.codes())
}

func (a *API) syncToken(ctx context.Context, r tokenCodes) (rest.None, error) {
	return rest.None{}, a.tokens.SyncToken(ctx, caller(ctx), string(r.ID), r.codes())
}

// appTokenInfo is UserAppOtpTokenInfo.
type appTokenInfo struct {
	QRCode       []byte `json:"QrCode"` // GIF
	QRCodeData   string `json:"QrCodeData"`
	SecretBase32 string
	Serial       string
	Type         string
}

// createAppToken has no body: OAthAppTokenRequest is an empty object.
func (a *API) createAppToken(ctx context.Context, r onUser) (appTokenInfo, error) {
	d, err := a.tokens.CreateAppToken(ctx, caller(ctx), string(r.ID))
	return appTokenInfo{d.QR, d.URI, d.Secret, d.Serial, string(d.Type)}, err
}

// tokenInfo is UserOtpTokenInfo.
type tokenInfo struct {
	Serial string
	Type   string
}

func (a *API) token(ctx context.Context, r onUser) (tokenInfo, error) {
	t, err := a.tokens.Token(ctx, caller(ctx), string(r.ID))
	return tokenInfo{t.Serial, string(t.Type)}, err
}

func (a *API) removeToken(ctx context.Context, r onUser) (rest.None, error) {
	return rest.None{}, a.tokens.RemoveToken(ctx, caller(ctx), string(r.ID))
}
