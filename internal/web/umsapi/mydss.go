// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"fmt"
	"slices"

	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// deviceAPI serves the mobile devices of users and their push addresses.
type deviceAPI struct{ devices *device.Service }

// DeviceRoutes returns the operations on mobile devices and push addresses. Mount them
// beside [API.Routes] at the same gate.
func DeviceRoutes(devices *device.Service) []rest.Route {
	a := deviceAPI{devices}
	return slices.Concat(a.mydssRoutes(), a.pushRoutes())
}

func (a deviceAPI) mydssRoutes() []rest.Route {
	const mydss = "/ums/user/{id}/mydss"
	info := rest.Handle("GET "+mydss, "GetUserMyDssAuthInfo", Operator, a.info).Effects(effect.None)
	return []rest.Route{
		rest.Handle("POST "+mydss+"/assign", "AssignMyDssKey", Operator, a.assign).Effects(effect.AddsFactor),
		rest.Handle("POST "+mydss+"/init", "CreateMyDssKInit", Operator, a.init).Effects(effect.GivesSecret | effect.AddsFactor),
		rest.Handle("POST "+mydss+"/init/get", "GetMyDssKInit", Operator, a.getKInit).Effects(effect.GivesSecret),
		// The table of the specification has one path, its example the other.
		rest.Handle("POST "+mydss+"/init/sendqr", "SendMyDssKInit", Operator, a.sendQR).Effects(effect.GivesSecret),
		rest.Handle("POST "+mydss+"/sendqr", "SendMyDssKInit", Operator, a.sendQR).Effects(effect.GivesSecret),
		rest.Handle("POST "+mydss+"/init/resendotp", "ResendMyDssKInitOtp", Operator, a.resendCode).Effects(effect.GivesSecret),
		rest.Handle("POST "+mydss+"/init/delete", "DeleteMyDssKInit", Operator, a.deleteKInit).Effects(effect.None), // no factor yet
		rest.Handle("POST "+mydss+"/verify/get", "GetMyDssVerificationData", Operator, a.verification).Effects(effect.GivesSecret | effect.AddsFactor),
		info, info.Also("POST"), // here too
		rest.Weigh(rest.Handle("POST "+mydss+"/lockout", "LockoutMyDssDevice", Operator, a.lockout), effect.EndsAccess|effect.AddsFactor,
			func(_ context.Context, r lockDevice) (effect.Set, error) {
				return r.Body.Lock.either(effect.EndsAccess, effect.AddsFactor), nil
			}),
		rest.Handle("POST "+mydss+"/delete", "DeleteMyDssKey", Operator, a.delete).Effects(effect.RemovesFactor),
		rest.Handle("DELETE "+mydss, "DeleteAllMyDssKeys", Operator, a.deleteAll).Effects(effect.RemovesFactor),
	}
}

// keyInfo is MyDssKeyInfo.
type keyInfo struct {
	UID           string `json:"Uid"`
	Kid           string
	DeviceName    *string
	NotBefore     int64 // Unix seconds
	NotAfter      int64
	State         string
	UserName      *string
	Profile       *string
	NonceRequired bool
}

// describeKey returns the description of a device. Our devices have no profile.
func describeKey(d device.Device) keyInfo {
	return keyInfo{
		UID: d.UserID, Kid: d.Kid, DeviceName: rest.OrNull(d.Name), NotBefore: d.NotBefore.Unix(), NotAfter: d.NotAfter.Unix(),
		State: d.State(), UserName: rest.OrNull(d.UserName), NonceRequired: !d.Verified,
	}
}

// createdKeyInfo is the KeyInfo of MyDssCreatedKeyInfoEx. The fields before the address of
// the service belong to another device protocol.
type createdKeyInfo struct {
	EncryptedBlobs     *string
	PublicKey          *string
	Seed               *string
	ActivationRequired bool
	ServiceURL         string `json:"ServiceUrl"`
	Alias              *string
	keyInfo
}

// createdKey is MyDssCreatedKeyInfoEx.
type createdKey struct {
	KeyInfo    createdKeyInfo
	QRCode     []byte `json:"QrCode"` // GIF
	QRCodeData string
}

func describeKInit(k device.KInit) createdKey {
	info := describeKey(device.Device{
		Kid: k.Kid, UserID: k.UserID, UserName: k.UserName, NotBefore: k.NotBefore, NotAfter: k.NotAfter,
		Verified: true, // so the state is Active, as the specification demands
	})
	info.NonceRequired = true // of the device after its registration
	return createdKey{
		KeyInfo: createdKeyInfo{ActivationRequired: k.Activation, ServiceURL: k.ServiceURL, Alias: rest.OrNull(k.UserName), keyInfo: info},
		QRCode:  k.QR, QRCodeData: k.QRText,
	}
}

// onKey is a request that names a user and a device and nothing else.
type onKey struct {
	ID   userID `path:"id"`
	Body struct{ Kid rest.Text }
}

func (a deviceAPI) assign(ctx context.Context, r onKey) (keyInfo, error) {
	d, err := a.devices.Assign(ctx, caller(ctx), string(r.ID), string(r.Body.Kid))
	return describeKey(d), err
}

// kinitRequest is MyDssKInitRequest.
type kinitRequest struct {
	ID   userID `path:"id"`
	Body struct {
		Msisdn   rest.Text
		Email    string
		SystemID string `json:"SystemId"`
	}
}

func (r kinitRequest) order() device.KInitOrder {
	return device.KInitOrder{Phone: string(r.Body.Msisdn), Email: r.Body.Email, SystemID: r.Body.SystemID}
}

func (a deviceAPI) init(ctx context.Context, r kinitRequest) (createdKey, error) {
	k, err := a.devices.Init(ctx, caller(ctx), string(r.ID), r.order())
	return describeKInit(k), err
}

func (a deviceAPI) getKInit(ctx context.Context, r onUser) (createdKey, error) {
	k, err := a.devices.GetKInit(ctx, caller(ctx), string(r.ID))
	return describeKInit(k), err
}

func (a deviceAPI) sendQR(ctx context.Context, r struct {
	ID   userID `path:"id"`
	Body struct{ Email string }
}) (rest.None, error) {
	return rest.None{}, a.devices.SendKInit(ctx, caller(ctx), string(r.ID), r.Body.Email)
}

func (a deviceAPI) resendCode(ctx context.Context, r kinitRequest) (rest.None, error) {
	return rest.None{}, a.devices.ResendCode(ctx, caller(ctx), string(r.ID), r.order())
}

func (a deviceAPI) deleteKInit(ctx context.Context, r onUser) (rest.None, error) {
	return rest.None{}, a.devices.DeleteKInit(ctx, caller(ctx), string(r.ID))
}

// verificationData answers with the QR code that a device is verified with.
type verificationData struct {
	QRCode     []byte `json:"QrCode"` // GIF
	QRCodeData string `json:"QrCodeData"`
	Data       message.Verification
}

func (a deviceAPI) verification(ctx context.Context, r onKey) (verificationData, error) {
	v, err := a.devices.BeginVerification(ctx, caller(ctx), string(r.ID), string(r.Body.Kid))
	return verificationData{v.QR, v.QRText, v.Data}, err
}

// authInfo is UserMyDssAuthInfo.
type authInfo struct {
	UserID              string `json:"UserId"`
	Keys                []keyInfo
	InitializationToken *keyInfo
}

func (a deviceAPI) info(ctx context.Context, r onUser) (authInfo, error) {
	have, err := a.devices.Info(ctx, caller(ctx), string(r.ID))
	info := authInfo{UserID: have.UserID, Keys: make([]keyInfo, len(have.Devices))}
	for i, d := range have.Devices {
		info.Keys[i] = describeKey(d)
	}
	if have.KInit != nil {
		k := describeKey(*have.KInit)
		k.NonceRequired = true
		info.InitializationToken = &k
	}
	return info, err
}

// lockDevice blocks or unblocks a device.
type lockDevice struct {
	ID   userID `path:"id"`
	Body struct {
		Kid  rest.Text
		Lock flag
	}
}

func (a deviceAPI) lockout(ctx context.Context, r lockDevice) (keyInfo, error) {
	if !r.Body.Lock.given {
		return keyInfo{}, fault.New(fault.InvalidParameters, "Lock is missing: want true or false")
	}
	block := r.Body.Lock.value
	rest.Detail(ctx, fmt.Sprintf("%s lock=%t", r.Body.Kid, block))
	d, err := a.devices.SetBlocked(ctx, caller(ctx), string(r.ID), string(r.Body.Kid), block)
	return describeKey(d), err
}

func (a deviceAPI) delete(ctx context.Context, r onKey) (rest.None, error) {
	rest.Detail(ctx, string(r.Body.Kid))
	return rest.None{}, a.devices.Delete(ctx, caller(ctx), string(r.ID), string(r.Body.Kid))
}

func (a deviceAPI) deleteAll(ctx context.Context, r onUser) (rest.None, error) {
	return rest.None{}, a.devices.DeleteAll(ctx, caller(ctx), string(r.ID))
}
