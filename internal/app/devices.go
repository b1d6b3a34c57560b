// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"time"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
	"tamga/internal/web/deviceapi"
	"tamga/internal/web/rest/limit"
)

// deviceAPI returns the interface for mobile devices.
func (r *Rooms) deviceAPI() *deviceapi.API {
	c := &r.Config.Devices
	return deviceapi.New(r.Devices, r.Confirm, limit.New(c.CallsPerSecond, c.CallsAtOnce, 10_000, time.Now).Admit)
}

// recipients finds the addresses of messages: the devices of a user for push, the contacts for
// other channels.
type recipients struct {
	contacts contact.Addresses
	devices  *device.Addresses
}

// NotificationAddresses implements notify.Recipients.
func (r recipients) NotificationAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	if channel.Info().To == notify.ToDevices {
		return r.devices.NotificationAddresses(ctx, userID, channel)
	}
	return r.contacts.NotificationAddresses(ctx, userID, channel)
}

// ConfirmedAddresses implements notify.Recipients.
func (r recipients) ConfirmedAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	if channel.Info().To == notify.ToDevices {
		return r.devices.ConfirmedAddresses(ctx, userID, channel)
	}
	return r.contacts.ConfirmedAddresses(ctx, userID, channel)
}

// approvers gives package confirm the devices of users, which it does not know.
type approvers struct{ *device.Approvals }

// Approvers implements confirm.Devices.
func (a approvers) Approvers(ctx context.Context, userID string) ([]confirm.Approver, error) {
	devices, err := a.Approvals.Approvers(ctx, userID)
	list := make([]confirm.Approver, len(devices))
	for i, d := range devices {
		list[i] = confirm.Approver{Kid: d.Kid, Name: cmp.Or(d.Name, d.Kid)}
	}
	return list, err
}

// OpenVerdict implements confirm.Devices.
func (a approvers) OpenVerdict(ctx context.Context, signed []byte) (confirm.Verdict, error) {
	v, err := a.Approvals.OpenVerdict(ctx, signed)
	return confirm.Verdict(v), err
}
