// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"encoding/json"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// Addresses knows the push addresses of users' devices. It is separate from Service, which sends
// messages: package notify needs the addresses first.
type Addresses struct {
	records
	now func() time.Time
}

// NewAddresses returns the addresses of the devices in a store.
func NewAddresses(store Store, vault notify.Sealer, now func() time.Time) *Addresses {
	return &Addresses{records{store: store, vault: vault}, now}
}

// NotificationAddresses implements [notify.Recipients]. It returns the targets of devices
// that are Active and have the notification role.
func (s *Addresses) NotificationAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	if channel.Info().To != notify.ToDevices {
		return nil, nil
	}
	devices, err := s.devices(ctx, userID)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, d := range devices {
		if d.Push == nil || !d.Push.Listed || !d.Push.Notification || !d.Active(s.now().UTC().Truncate(time.Millisecond)) {
			continue
		}
		text, err := json.Marshal(PushTarget{d.Kid, d.Push.Address, d.Push.OSType, d.Push.SystemID})
		if err != nil {
			return nil, err
		}
		list = append(list, string(text))
	}
	return list, nil
}

// ConfirmedAddresses returns the same, for [notify.Recipients]. An active device is confirmed, and
// nothing is sent to a device without the role.
func (s *Addresses) ConfirmedAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	return s.NotificationAddresses(ctx, userID, channel)
}

// PushGone is called by a sender when an address does not exist any more. It removes the
// address from the device, unless the device has another one by now.
func (s *Addresses) PushGone(ctx context.Context, t PushTarget) error {
	before, found, err := s.store.Device(ctx, t.Kid)
	if err != nil || !found {
		return err
	}
	return s.store.Atomic(ctx, lock.User(before.UserID), func(ctx context.Context) error {
		r, found, err := s.store.Device(ctx, t.Kid)
		if err != nil || !found || r.UserID != before.UserID {
			return err // a user has just got the device: the next push finds the address again
		}
		d, err := s.read(r)
		if err != nil || d.Push == nil || d.Push.Address != t.Address {
			return err
		}
		d.Push = nil
		return fault.Rollback(s.change(ctx, r, d))
	})
}
