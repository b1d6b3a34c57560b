// SPDX-License-Identifier: Apache-2.0

package phone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/confirm/what"
	devmsg "tamga/internal/domain/device/message"
)

// formerKey is a key of the service that another one follows.
type formerKey struct {
	Key   []byte `json:"key"`   // SubjectPublicKeyInfo
	Until int64  `json:"until"` // Unix seconds by the clock of the service
}

// now returns the time by the clock of the service, in Unix seconds.
func (p *phone) now() int64 { return time.Now().Unix() + p.Offset }

// poll asks for the operations that wait. If the service has a new key, poll keeps it and tells the
// service.
func (f phoneFlags) poll(ctx context.Context, p *phone, payload devmsg.PollRequest) (devmsg.Answer, error) {
	payload.Describes = what.Latest
	a, err := f.send(ctx, p, devmsg.Poll, payload)
	if err != nil || a.Successor == nil {
		return a, err
	}
	if err := p.follow(a.Successor); err != nil {
		return devmsg.Answer{}, err
	}
	if _, err := f.send(ctx, p, devmsg.ServiceKey, devmsg.KnownKey{Key: p.ServiceKey}); err != nil {
		return devmsg.Answer{}, fmt.Errorf("telling the service that this device knows its new key: %w", err)
	}
	return a, nil
}

// follow keeps the new key of the service if the key that the device knows has signed it. The former
// key verifies QR codes until its end, but introduces no other key.
func (p *phone) follow(n *devmsg.Successor) error {
	if bytes.Equal(n.Key, p.ServiceKey) {
		return nil // the service has not heard that the device knows it
	}
	now := p.now()
	switch {
	case !n.Verify(p.Service, p.ServiceKey):
		return errors.New("the answer has a new key of the service that the key which this device knows did not sign: an attacker may be between this device and the service; the device keeps its key")
	case n.Until <= now || n.Until > now+int64(devmsg.MaxKeyOverlap/time.Second):
		return fmt.Errorf("the answer has a new key of the service, but the end of the old one, %s, is over or too late; the device keeps its key", time.Unix(n.Until, 0).UTC().Format(time.RFC3339))
	}
	p.Former = &formerKey{p.ServiceKey, n.Until}
	p.ServiceKey = n.Key
	return p.save()
}

// ofService reports whether the service signed a challenge.
func (p *phone) ofService(d *devmsg.ChallengeData) bool {
	return d.Verify(p.ServiceKey) || p.Former != nil && p.now() < p.Former.Until && d.Verify(p.Former.Key)
}
