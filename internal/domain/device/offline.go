// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"encoding/json"
	"time"

	"tamga/internal/domain/device/message"
)

// OfflineOrder says what a device confirms without a network.
type OfflineOrder struct {
	ID     string // of the operation
	What   []byte // its digest
	Text   string // for the user
	Number bool   // whether a decision that is delivered later needs the number
	Before time.Time
}

// Offline returns the text of a QR code that a device of a user confirms without a network,
// and the code that the device makes from it. Both are empty for a device that may not act
// now, and for one that knows no valid key of the service: it must register again.
// The private key of the challenge is gone when Offline returns.
func (s *Approvals) Offline(ctx context.Context, userID, kid string, o OfflineOrder) (qr, code string, err error) {
	d, _, err := s.owned(ctx, userID, kid)
	if err != nil || !d.Active(s.now()) || len(d.Pinned) == 0 {
		return "", "", err
	}
	key, err := s.pinnedKey(ctx, d, s.now())
	if err != nil || key == nil {
		return "", "", err
	}
	c, code, err := message.NewChallenge(message.ChallengeData{
		Kid: kid, ServiceURL: s.settings.ServiceURL, ID: o.ID, Number: o.Number, Before: o.Before.Unix(),
	}, o.What, o.Text, d.Key, key, s.rand)
	if err != nil {
		return "", "", err
	}
	text, err := json.Marshal(c)
	return string(text), code, err
}
