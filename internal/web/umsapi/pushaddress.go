// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"encoding/json"
	"strconv"

	"tamga/internal/domain/device"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

func (a deviceAPI) pushRoutes() []rest.Route {
	const push = "/ums/user/{id}/pushaddress"
	routes := []rest.Route{
		rest.Handle("GET "+push+"/{activeOnly}", "GetUserPushAddresses", Operator, a.pushAddresses),
		rest.Handle("GET "+push, "GetUserPushAddresses", Operator, a.filteredPushAddresses),
		rest.Handle("DELETE "+push, "DeleteUserPushAddress", Operator, a.deletePush).Effects(effect.None),
	}
	for _, r := range []rest.Route{
		rest.Handle("POST "+push+"/restore", "RestoreUserPushAdressContact", Operator, a.restorePush).Effects(effect.None),
		rest.Handle("POST "+push+"/notification/{notification}", "SetUserNotificationPushAdress", Operator, a.setPushNotification).Effects(effect.None),
	} {
		routes = append(routes, r, r.Also("PATCH"))
	}
	return routes
}

// pushAddressInfo is PushAddressInfo in answers.
type pushAddressInfo struct {
	Address  string
	OSType   int    `json:"OsType"`
	SystemID string `json:"SystemId"`
}

// pushContact is PushAddressContactInfo.
type pushContact struct {
	PushAddress  pushAddressInfo
	SystemID     string `json:"SystemId"`
	SystemName   string
	Kid          string
	DeviceName   *string
	State        string
	ExtendedInfo *string
	DataSource   string
	Type         string
	Contact      string // PushAddressInfo as JSON
	Confirmed    bool
	Primary      bool
	Notification bool
	Usages       []usage
}

func describePush(c device.PushContact) (pushContact, error) {
	address := pushAddressInfo{c.Push.Address, c.Push.OSType, c.Push.SystemID}
	text, err := json.Marshal(address)
	return pushContact{
		PushAddress: address, SystemID: c.Push.SystemID, SystemName: c.SystemName, Kid: c.Kid, DeviceName: rest.OrNull(c.Name),
		State: c.State(), DataSource: c.Source, Type: "PushAddress", Contact: string(text),
		Confirmed: c.Verified, Notification: c.Push.Notification,
	}, err
}

func describePushes(list []device.PushContact) ([]pushContact, error) {
	described := make([]pushContact, len(list))
	for i, c := range list {
		var err error
		if described[i], err = describePush(c); err != nil {
			return nil, err
		}
	}
	return described, nil
}

func (a deviceAPI) pushAddresses(ctx context.Context, r struct {
	ID         userID `path:"id"`
	ActiveOnly flag   `path:"activeOnly"`
}) ([]pushContact, error) {
	list, err := a.devices.PushAddresses(ctx, caller(ctx), string(r.ID), device.PushFilter{ActiveOnly: r.ActiveOnly.value})
	if err != nil {
		return nil, err
	}
	return describePushes(list)
}

func (a deviceAPI) filteredPushAddresses(ctx context.Context, r struct {
	ID         userID `path:"id"`
	DataSource string `query:"DataSource"`
	ActiveOnly flag   `query:"ActiveOnly"`
}) ([]pushContact, error) {
	list, err := a.devices.PushAddresses(ctx, caller(ctx), string(r.ID), device.PushFilter{Source: r.DataSource, ActiveOnly: r.ActiveOnly.value})
	if err != nil {
		return nil, err
	}
	return describePushes(list)
}

// pushAddressRequest is PushAddressInfo in requests.
type pushAddressRequest struct {
	Address  string
	OSType   *rest.Text `json:"OsType" api:"integer"`
	SystemID string     `json:"SystemId"`
}

func (r pushAddressRequest) address() (device.PushAddress, error) {
	a := device.PushAddress{Address: r.Address, SystemID: r.SystemID}
	if r.Address == "" {
		return a, fault.New(fault.InvalidContactInfo, "Address is missing: want the push address as it is listed")
	}
	if r.OSType != nil && *r.OSType != "" {
		n, err := strconv.Atoi(string(*r.OSType))
		if err != nil {
			return a, fault.New(fault.InvalidParameters, "OsType: want a whole number")
		}
		a.OSType = &n
	}
	return a, nil
}

// onPush is a request that names a user and a push address and nothing else.
type onPush struct {
	ID   userID `path:"id"`
	Body pushAddressRequest
}

// changedPush answers a change of one push address. The table of the specification has one
// object here. Its examples of two operations have a list.
func changedPush(c device.PushContact, err error) (pushContact, error) {
	if err != nil {
		return pushContact{}, err
	}
	return describePush(c)
}

func (a deviceAPI) restorePush(ctx context.Context, r onPush) (pushContact, error) {
	address, err := r.Body.address()
	if err != nil {
		return pushContact{}, err
	}
	return changedPush(a.devices.RestorePush(ctx, caller(ctx), string(r.ID), address))
}

func (a deviceAPI) setPushNotification(ctx context.Context, r struct {
	ID           userID `path:"id"`
	Notification flag   `path:"notification"`
	Body         pushAddressRequest
}) (pushContact, error) {
	address, err := r.Body.address()
	if err != nil {
		return pushContact{}, err
	}
	return changedPush(a.devices.SetPushNotification(ctx, caller(ctx), string(r.ID), address, r.Notification.value))
}

func (a deviceAPI) deletePush(ctx context.Context, r onPush) (pushContact, error) {
	address, err := r.Body.address()
	if err != nil {
		return pushContact{}, err
	}
	return changedPush(a.devices.DeletePush(ctx, caller(ctx), string(r.ID), address))
}
