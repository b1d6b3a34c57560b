// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
)

// receiver checks messages of devices. Service and Approvals share it.
type receiver struct {
	records
	settings Settings
	users    Users
	clock    func() time.Time
}

// now returns the time with the precision of stores.
func (s receiver) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// hear reads a message of a known device and verifies it with the key of the device, which
// it returns. That is done before the transaction, which other requests wait for.
func (s receiver) hear(ctx context.Context, signed message.Signed, kind string, payload any) (m *message.Message, d Device, err error) {
	if m, err = s.parse(signed, kind); err != nil {
		return nil, Device{}, err
	}
	if m.Kid == "" {
		return nil, Device{}, fault.New(fault.InvalidParameters, "kid: want the identifier of the device")
	}
	d, found, err := s.device(ctx, m.Kid)
	if err != nil {
		return nil, Device{}, err
	}
	if !found || !m.Verify(d.Key) {
		return nil, Device{}, unknownDevice()
	}
	if d.UserID != "" {
		if err := audit.Known(ctx, audit.Principal{UserID: d.UserID, Method: Method}); err != nil {
			return nil, Device{}, err
		}
	}
	if err := json.Unmarshal(m.Payload, payload); err != nil {
		return nil, Device{}, fault.Newf(fault.InvalidParameters, "payload: want the object that belongs to a message of type %s", kind)
	}
	return m, d, nil
}

// count spends the number of a message and returns the device as stored then. That row
// decides whether the message is accepted.
func (s receiver) count(ctx context.Context, m *message.Message, key []byte) (Device, Record, error) {
	r, counted, err := s.store.CountMessage(ctx, m.Kid, m.Number)
	if err != nil || !counted {
		return Device{}, Record{}, orReplayed(err)
	}
	d, err := s.read(r)
	if err != nil {
		return Device{}, Record{}, err
	}
	switch {
	case !hmac.Equal(d.Key, key):
		return Device{}, Record{}, unknownDevice()
	case !d.live(s.now()):
		return Device{}, Record{}, notListened()
	case d.UserID != "":
		err = s.mayAct(ctx, d.UserID)
	}
	return d, r, err
}

// parse reads a message of one type and checks its address and time.
func (s receiver) parse(signed message.Signed, kind string) (*message.Message, error) {
	m, err := message.Parse(signed)
	if err != nil {
		return nil, refused(err)
	}
	if m.Type != kind {
		return nil, fault.Newf(fault.InvalidParameters, "typ: want %s at this address", kind)
	}
	if m.Service != s.settings.ServiceURL {
		return nil, fault.Newf(fault.InvalidParameters, "aud: want %s, which is the service_url of the QR code", s.settings.ServiceURL)
	}
	if off := s.now().Unix() - m.Time; off > int64(s.settings.Skew/time.Second) || off < -int64(s.settings.Skew/time.Second) {
		return nil, fault.New(fault.WrongTime, "iat: the clock of the device is wrong: the header Date of this answer has the time of the service")
	}
	return m, nil
}

// device returns a device by its kid.
func (s receiver) device(ctx context.Context, kid string) (d Device, found bool, err error) {
	r, found, err := s.store.Device(ctx, kid)
	if err == nil && found {
		d, err = s.read(r)
	}
	return d, found, err
}

// mayAct refuses devices of users who are locked.
func (s receiver) mayAct(ctx context.Context, userID string) error {
	u, err := s.users.Get(ctx, userID)
	if err == nil && u.Barred(s.now()) {
		err = fault.New(fault.AccessDenied, "the user is locked: ask the operator")
	}
	return err
}
