// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
)

// Devices are the mobile devices of users.
type Devices interface {
	// Approvers returns the devices of a user that may confirm now.
	Approvers(ctx context.Context, userID string) ([]Approver, error)
	// OpenDecision checks the signature and the freshness of a message of a device and
	// reads it. A device that was blocked, removed or replaced is refused. The error is a
	// fault of package device.
	OpenDecision(ctx context.Context, signed []byte) (Decision, error)
	// Wake makes the devices of a user poll, in the transaction of ctx. It sends nothing
	// that is confirmed.
	Wake(ctx context.Context, userID, kid string) error
	// Offline returns the text of a QR code that a device confirms without a network, and
	// the code that it makes from it. Both are empty for a device that cannot.
	Offline(ctx context.Context, userID, kid string, o OfflineOrder) (qr, code string, err error)
}

// OfflineOrder says what a device confirms without a network.
type OfflineOrder struct {
	ID     string // of the record
	What   []byte
	Text   string // for the user
	Number bool   // whether a decision that is delivered later needs the number
	Before time.Time
}

// Approver is a device that may confirm.
type Approver struct {
	Kid  string // identifier of the device
	Name string // as the user knows it
	// Describes is the latest version of the digest that the device computes; 0 is [what.OneWay].
	Describes int
}

// Decision is the answer of a device to a record, as the device signed it.
type Decision struct {
	UserID   string // user of the device
	Kid      string
	ID       string // of the record
	What     []byte // the digest as the device computed it from what it has shown
	Approved bool
	Declined []int     // with Approved: indexes of the documents that the user declined
	Number   string    // the two digits that the user chose; "" for none
	NotMe    bool      // the user has not begun it; never with Approved
	SignedAt time.Time // earlier than now for a decision that was made offline
	Key      []byte    // public key of the device that signed it, a SubjectPublicKeyInfo; nil: not known
	// Describes is Approver.Describes.
	Describes int
}

// byDevice waits for the decision of a device, which Approve takes, or for the code that the
// device makes from a QR code without a network.
type byDevice struct {
	s    *Service
	name string
}

func newByDevice(name string) func(s *Service) Method {
	return func(s *Service) Method { return byDevice{s, name} }
}

// Choices implements Method. Without devices in this installation there are none.
func (m byDevice) Choices(ctx context.Context, userID string) ([]Choice, error) {
	if m.s.deps.Devices == nil {
		return nil, nil
	}
	devices, err := m.s.deps.Devices.Approvers(ctx, userID)
	list := make([]Choice, len(devices))
	for i, d := range devices {
		list[i] = Choice{Address: d.Kid, Label: d.Name, to: d.Kid, describes: max(d.Describes, what.OneWay)}
	}
	return list, err
}

// Begin implements Method. A repetition has the QR code of the challenge that it repeats.
func (m byDevice) Begin(ctx context.Context, r *Record, f *what.Fields) error {
	if r.Resends == 0 {
		if err := m.s.beginOffline(ctx, r, f); err != nil {
			return err
		}
	}
	return m.s.deps.Devices.Wake(ctx, r.UserID, r.Address)
}

// withKey returns the signed message of a device with the public key beside it, as a
// record keeps it: the device may be deleted before the evidence is needed.
func withKey(signed, key []byte) ([]byte, error) {
	if len(key) == 0 {
		return signed, nil
	}
	message := map[string]any{}
	if err := json.Unmarshal(signed, &message); err != nil {
		return nil, fmt.Errorf("confirm: the message of a device: %w", err)
	}
	message["key"] = key
	return json.Marshal(message)
}

// Check implements Method: the answer is the code of the QR code. Spaces in it do not count.
func (m byDevice) Check(ctx context.Context, r *Record, answer string) error {
	o, err := m.s.offline(ctx, r)
	if err != nil {
		return err
	}
	if o.Code == "" {
		return fault.New(fault.InvalidParameters, "Value: the device answers this challenge by itself: it has no code for it, since it registered before there were such codes")
	}
	usable, err := m.Choices(ctx, r.UserID)
	if err == nil {
		usable, err = m.s.describing(ctx, r, usable)
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(usable, func(c Choice) bool { return c.to == r.Address }) {
		return fault.New(fault.AccessDenied, "the device is blocked or its key has expired: ask the operator")
	}
	given := strings.Join(strings.Fields(answer), "")
	if subtle.ConstantTimeCompare([]byte(given), []byte(o.Code)) != 1 {
		return fault.New(fault.InvalidCode, "the code is wrong")
	}
	return nil
}

// offlineChallenge is what a device answers without a network, or the random part of what a
// passkey signs. It is stored sealed, until the record ends.
type offlineChallenge struct {
	Round int    `json:"round"`
	Kid   string `json:"kid"`
	QR    string `json:"qr"`
	Code  string `json:"code"`
}

func offlinePlace(id string) vault.Place {
	return vault.Place{Purpose: "confirmation", Table: "confirmation_contents", Row: id, Column: "offline"}
}

// beginOffline makes and stores the QR code of a challenge, in the transaction of ctx.
func (s *Service) beginOffline(ctx context.Context, r *Record, f *what.Fields) error {
	text, err := f.Short(s.settings.Language)
	if err != nil {
		return err
	}
	o := offlineChallenge{Round: r.Round, Kid: r.Address}
	o.QR, o.Code, err = s.deps.Devices.Offline(ctx, r.UserID, r.Address, OfflineOrder{
		ID: r.ID, What: r.What[:], Text: text, Number: r.Number != "", Before: r.ConfirmBefore,
	})
	if err != nil {
		return err
	}
	if o.Code == "" {
		return s.deps.Store.SetOffline(ctx, r.ID, nil)
	}
	return s.setOffline(ctx, r.ID, o)
}

// setOffline stores the challenge of a record.
func (s *Service) setOffline(ctx context.Context, id string, o offlineChallenge) error {
	plain, err := json.Marshal(o)
	if err != nil {
		return err
	}
	defer clear(plain)
	sealed, err := s.deps.Vault.Seal(offlinePlace(id), plain)
	if err != nil {
		return err
	}
	return s.deps.Store.SetOffline(ctx, id, sealed)
}

// offline returns what a device answers to the challenge of r without a network, the zero
// value if there is nothing.
func (s *Service) offline(ctx context.Context, r *Record) (o offlineChallenge, err error) {
	stored, found, err := s.deps.Store.ConfirmationContent(ctx, r.ID)
	if err != nil || !found || len(stored.Offline) == 0 {
		return offlineChallenge{}, err
	}
	plain, err := s.deps.Vault.Open(offlinePlace(r.ID), stored.Offline)
	if err != nil {
		return offlineChallenge{}, fmt.Errorf("confirm: record %s: %w", r.ID, err)
	}
	defer clear(plain)
	if err := json.Unmarshal(plain, &o); err != nil {
		return offlineChallenge{}, fmt.Errorf("confirm: record %s: the offline challenge: %w", r.ID, err)
	}
	if o.Round != r.Round || o.Kid != r.Address {
		return offlineChallenge{}, nil // of another challenge of the record
	}
	return o, nil
}
