// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
	"tamga/internal/web/deviceapi"
	"tamga/internal/web/rest/limit"
)

// deviceAPI returns the interface for mobile devices.
func (r *Rooms) deviceAPI() *deviceapi.API {
	c := &r.Config.Devices
	return deviceapi.New(r.Devices, limit.New(c.CallsPerSecond, c.CallsAtOnce, 10_000, time.Now).Admit)
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
