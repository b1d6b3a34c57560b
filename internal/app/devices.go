// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"time"

	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/signing"
	"tamga/internal/web/deviceapi"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
)

// deviceAPI returns the interface for mobile devices.
func (s *Services) deviceAPI(operations *signing.Operations) *deviceapi.API {
	c := &s.Config.Devices
	return deviceapi.New(deviceapi.Deps{
		Devices: s.Devices, Confirm: s.Confirm, Documents: confirmedDocuments{operations}, Readable: int64(c.Readable),
		Admit: limit.New(c.CallsPerSecond, c.CallsAtOnce, 10_000, time.Now).Admit,
	})
}

// admitAnonymous bounds the new devices without a QR code of an address.
func admitAnonymous(c *config.Config) func(ctx context.Context) error {
	hourly := c.Devices.AnonymousPerHour
	addresses := limit.New(float64(hourly)/time.Hour.Seconds(), hourly, 10_000, time.Now)
	return func(ctx context.Context) error { return addresses.Admit(rest.Remote(ctx)) }
}

// admitTrials bounds the messages with which a user tries a browser: a person chooses where they go.
func admitTrials() func(userID string) error {
	of := limit.New(1/trialPause.Seconds(), trialsAtOnce, 10_000, time.Now)
	return func(userID string) error { return of.AdmitCaller(userID, 1) }
}

const (
	trialPause   = 10 * time.Second
	trialsAtOnce = 5
)

// confirmedDocuments gives package deviceapi the documents of operations, which it does not know.
type confirmedDocuments struct{ operations *signing.Operations }

// ConfirmedDocument implements deviceapi.Documents.
func (d confirmedDocuments) ConfirmedDocument(ctx context.Context, who audit.Principal, id string, index int, original bool) (deviceapi.Document, error) {
	document, err := d.operations.Shown(ctx, who, id, index, original)
	if err != nil {
		return nil, err
	}
	return document, nil
}

// recipients finds the addresses of messages: the devices and browsers of a user for push, the contacts for
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
		list[i] = confirm.Approver{Kid: d.Kid, Name: cmp.Or(d.Name, d.Kid), Describes: d.Describes}
	}
	return list, err
}

// OpenDecision implements confirm.Devices.
func (a approvers) OpenDecision(ctx context.Context, signed []byte) (confirm.Decision, error) {
	v, err := a.Approvals.OpenDecision(ctx, signed)
	return confirm.Decision(v), err
}

// Offline implements confirm.Devices.
func (a approvers) Offline(ctx context.Context, userID, kid string, o confirm.OfflineOrder) (qr, code string, err error) {
	return a.Approvals.Offline(ctx, userID, kid, device.OfflineOrder(o))
}
