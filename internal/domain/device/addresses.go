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

// Addresses knows the push addresses of users' devices and browsers. It is separate from Service, which sends
// messages: package notify needs the addresses first.
type Addresses struct {
	records
	browsers browsers
	now      func() time.Time
}

// NewAddresses returns the addresses of the devices and browsers in stores.
func NewAddresses(store Store, of BrowserStore, vault notify.Sealer, now func() time.Time) *Addresses {
	return &Addresses{records{store: store, vault: vault}, browsers{of, records{vault: vault}}, now}
}

// NotificationAddresses implements [notify.Recipients]. It returns the targets of devices
// that are Active and have the notification role, and of browsers that have it.
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
		text, err := json.Marshal(PushTarget{Kid: d.Kid, Address: d.Push.Address, OSType: d.Push.OSType, SystemID: d.Push.SystemID})
		if err != nil {
			return nil, err
		}
		list = append(list, string(text))
	}
	browsers, err := s.browsers.of(ctx, userID)
	if err != nil {
		return nil, err
	}
	for i := range browsers {
		if p := &browsers[i].Push; !p.Listed || !p.Notification {
			continue
		}
		text, err := browsers[i].target()
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

// ConfirmedAddresses returns the same, for [notify.Recipients]. An active device is confirmed, and
// nothing is sent to a device without the role.
func (s *Addresses) ConfirmedAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	return s.NotificationAddresses(ctx, userID, channel)
}

// PushGone is called by a sender when an address does not exist any more. It removes the
// address from the device, unless the device has another one by now. A browser is removed: its identifier is that of
// its address.
func (s *Addresses) PushGone(ctx context.Context, t PushTarget) error {
	if t.Browser != "" {
		r, found, err := s.browsers.store.Browser(ctx, t.Browser)
		if err == nil && found {
			_, err = s.browsers.store.DeleteBrowser(ctx, r.UserID, r.ID)
		}
		return err
	}
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
