// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// Approvals is what package confirm needs of devices: which ones may confirm for a user,
// what they answered, and a push that makes them poll. It is separate from Service, which
// ends confirmations.
type Approvals struct {
	receiver
	messages Messages
}

// ApprovalDeps are what Approvals works with.
type ApprovalDeps struct {
	Devices  Store
	Keys     ServiceKeyStore
	Vault    notify.Sealer
	Users    Users
	Messages Messages
	Now      func() time.Time
	Rand     io.Reader // safe for concurrent use
}

// NewApprovals checks the settings, which are those of the Service.
func NewApprovals(s Settings, d ApprovalDeps) (*Approvals, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &Approvals{receiver{records{d.Devices, d.Keys, d.Vault, d.Rand}, s, d.Users, d.Now}, d.Messages}, nil
}

// Approvers returns the devices that may act for a user now, the oldest first.
func (s *Approvals) Approvers(ctx context.Context, userID string) ([]Device, error) {
	list, err := s.devices(ctx, userID)
	now := s.now()
	return slices.DeleteFunc(list, func(d Device) bool { return !d.Active(now) }), err
}

// Decision is the answer of a device to an operation.
type Decision struct {
	UserID   string // of the device
	Kid      string
	ID       string // of the operation
	What     []byte // digest that the device computed
	Approved bool
	Declined []int
	Number   string
	NotMe    bool      // the user has not begun it; never of an approval
	SignedAt time.Time // by the clock of the device
	Key      []byte    // of the device, a SubjectPublicKeyInfo
	// Describes is Device.Describes.
	Describes int
}

// OpenDecision checks a message of the type confirm, decline or deliver and spends its number.
// Faults besides those of Service.Poll: access_denied for a device that was not verified;
// invalid_parameters for a delivered message that the device did not sign before.
func (s *Approvals) OpenDecision(ctx context.Context, signed []byte) (Decision, error) {
	var text message.Signed
	if err := json.Unmarshal(signed, &text); err != nil {
		return Decision{}, fault.New(fault.InvalidParameters, "want a message of a device")
	}
	m, err := message.Parse(text)
	if err != nil {
		return Decision{}, refused(err)
	}
	switch m.Type {
	case message.Confirm, message.Decline:
		var v message.Decision
		m, heard, err := s.hear(ctx, text, m.Type, &v)
		if err != nil {
			return Decision{}, err
		}
		return s.decision(ctx, m, heard, m, v)
	case message.Deliver:
		var d message.Delivery
		m, heard, err := s.hear(ctx, text, m.Type, &d)
		if err != nil {
			return Decision{}, err
		}
		inner, v, err := s.delivered(m, heard, d.Message)
		if err != nil {
			return Decision{}, err
		}
		return s.decision(ctx, m, heard, inner, v)
	}
	return Decision{}, fault.Newf(fault.InvalidParameters, "typ: want %s, %s or %s", message.Confirm, message.Decline, message.Deliver)
}

// delivered reads a message that the device signed before and sends inside of m. It may be
// as old as its operation, whose identifier it names and which takes one decision.
func (s *Approvals) delivered(m *message.Message, d Device, signed message.Signed) (*message.Message, message.Decision, error) {
	inner, err := message.Parse(signed)
	if err != nil {
		return nil, message.Decision{}, refused(fmt.Errorf("message: %w", err))
	}
	var v message.Decision
	switch {
	case inner.Type != message.Approval && inner.Type != message.Refusal:
		err = fault.Newf(fault.InvalidParameters, "message: typ: want %s or %s", message.Approval, message.Refusal)
	case inner.Service != m.Service || inner.Kid != m.Kid:
		err = fault.New(fault.InvalidParameters, "message: aud, kid: want those of the message around it")
	case !inner.Verify(d.Key):
		err = unknownDevice()
	case inner.Number >= m.Number:
		err = fault.New(fault.InvalidParameters, "message: num: want a message that was signed before the one around it")
	case inner.Time > m.Time+int64(s.settings.Skew/time.Second):
		err = fault.New(fault.InvalidParameters, "message: iat: the clock of the device was wrong when it signed: sign again")
	case json.Unmarshal(inner.Payload, &v) != nil:
		err = fault.New(fault.InvalidParameters, "message: payload: want a decision")
	}
	return inner, v, err
}

// decision spends the number of a message m of a device. inner is m, or the message in m that
// has the decision.
func (s *Approvals) decision(ctx context.Context, m *message.Message, heard Device, inner *message.Message, v message.Decision) (Decision, error) {
	approved := inner.Type == message.Confirm || inner.Type == message.Approval
	what, err := hex.DecodeString(v.What)
	switch {
	case err != nil:
		return Decision{}, fault.New(fault.InvalidParameters, "what: want hexadecimal digits")
	case !approved && (len(v.Declined) > 0 || v.Number != ""):
		return Decision{}, fault.Newf(fault.InvalidParameters, "declined, number: a message of type %s has neither, it declines the whole operation", inner.Type)
	case approved && v.NotMe:
		return Decision{}, fault.Newf(fault.InvalidParameters, "not_me: a message of type %s approves the operation: decline it", inner.Type)
	}
	d, _, err := s.count(ctx, m, heard.Key)
	if err != nil {
		return Decision{}, err
	}
	if !d.Active(s.now()) {
		return Decision{}, fault.New(fault.AccessDenied, "the device is not verified: scan the verification code of the operator first")
	}
	return Decision{
		UserID: d.UserID, Kid: d.Kid, ID: v.ID, What: what, Approved: approved, Declined: v.Declined, Number: v.Number, NotMe: v.NotMe,
		SignedAt: time.Unix(inner.Time, 0).UTC(), Key: d.Key, Describes: d.Describes,
	}, nil
}

// Wake orders a push message for a device of a user, in the transaction of ctx. The message
// says nothing about the operation. Without a push address, and when a budget of messages is
// used up, there is none: the device polls anyway.
func (s *Approvals) Wake(ctx context.Context, userID, kid string) error {
	if !slices.Contains(s.messages.Available(), notify.Push) {
		return nil
	}
	d, _, err := s.owned(ctx, userID, kid)
	if err != nil || d.Push == nil || !d.Push.Listed || !d.Active(s.now()) {
		return err
	}
	to, err := json.Marshal(PushTarget{Kid: d.Kid, Address: d.Push.Address, OSType: d.Push.OSType, SystemID: d.Push.SystemID})
	if err != nil {
		return err
	}
	err = s.messages.Order(ctx, notify.Direct{
		Channel: notify.Push, To: string(to), Template: notify.TemplateDeviceWake, UserID: userID, Actor: userID,
		Expires: s.now().Add(wakeLife),
	})
	if fault.Is(err, fault.TooManyRequests) {
		return nil
	}
	return err
}

// wakeLife is how long a push that wakes a device is worth sending.
const wakeLife = 5 * time.Minute
