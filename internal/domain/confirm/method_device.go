// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"time"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
)

// Devices are the mobile devices of users.
type Devices interface {
	// Approvers returns the devices of a user that may confirm now.
	Approvers(ctx context.Context, userID string) ([]Approver, error)
	// OpenVerdict checks the signature and the freshness of a message of a device and
	// reads it. A device that was blocked, removed or replaced is refused. The error is a
	// fault of package device.
	OpenVerdict(ctx context.Context, signed []byte) (Verdict, error)
	// Wake makes the devices of a user poll, in the transaction of ctx. It sends nothing
	// that is confirmed.
	Wake(ctx context.Context, userID, kid string) error
}

// Approver is a device that may confirm.
type Approver struct {
	Kid  string // identifier of the device
	Name string // as the user knows it
}

// Verdict is the answer of a device to a record, as the device signed it.
type Verdict struct {
	UserID   string // user of the device
	Kid      string
	ID       string // of the record
	What     []byte // the digest as the device computed it from what it has shown
	Approved bool
	Declined []int     // with Approved: indexes of the documents that the user declined
	Number   string    // the two digits that the user chose; "" for none
	SignedAt time.Time // earlier than now for a verdict that was made offline
}

// byDevice waits for the verdict of a device. Approve and Decline take it.
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
		list[i] = Choice{Address: d.Kid, Label: d.Name, to: d.Kid}
	}
	return list, err
}

// Begin implements Method.
func (m byDevice) Begin(ctx context.Context, r *Record, _ *what.Fields) error {
	return m.s.deps.Devices.Wake(ctx, r.UserID, r.Address)
}

// Check implements Method. There is no code to type.
func (m byDevice) Check(context.Context, *Record, string) error {
	return fault.New(fault.InvalidParameters, "Value: the device answers this challenge, there is no code to send")
}
