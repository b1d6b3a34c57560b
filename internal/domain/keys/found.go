// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"

	"tamga/internal/domain/audit"
)

// Sought selects requests or certificates: those of users, and those with a number or a serial number.
type Sought struct {
	Users  []string
	Number int64 // 0: none
	// SerialFrom and SerialUntil are the smallest and the first too large content of a serial
	// number, nil for none.
	SerialFrom, SerialUntil []byte
}

// minSerial is the number of hexadecimal digits that a search for a serial number needs.
const minSerial = 6

// SeekSerial adds the certificates whose serial numbers begin with the hexadecimal digits of a text, which
// may be separated by blanks, colons or hyphens. Any other text adds none.
func (s *Sought) SeekSerial(text string) {
	digits := strings.ToLower(strings.NewReplacer(" ", "", ":", "", "-", "").Replace(text))
	if len(digits) < minSerial || len(digits) > 64 {
		return
	}
	from, err := hex.DecodeString(digits + strings.Repeat("0", len(digits)%2))
	if err != nil {
		return
	}
	until := append([]byte{}, from...)
	step := byte(1)
	if len(digits)%2 == 1 {
		step = 16
	}
	for i := len(until) - 1; i >= 0; i-- {
		sum := until[i] + step
		overflow := sum < step
		if until[i] = sum; !overflow {
			s.SerialFrom, s.SerialUntil = from, until
			return
		}
		step = 1
	}
	s.SerialFrom, s.SerialUntil = from, bytes.Repeat([]byte{0xff}, 64) // after all serial numbers, which are shorter
}

// FindRequests returns requests of users within reach of an operator, the newest first.
func (s *Service) FindRequests(ctx context.Context, who audit.Principal, sought Sought, limit int) ([]*Request, error) {
	if len(sought.Users) == 0 && sought.Number == 0 {
		return nil, nil
	}
	records, err := s.RequestStore.FindRequests(ctx, who.UserID, sought, limit, s.Now())
	return s.requests(ctx, records, err)
}

// FindCertificates returns certificates of users within reach of an operator, the newest first.
func (s *Service) FindCertificates(ctx context.Context, who audit.Principal, sought Sought, limit int) ([]*Certificate, error) {
	if len(sought.Users) == 0 && sought.Number == 0 && sought.SerialFrom == nil {
		return nil, nil
	}
	records, err := s.RequestStore.FindCertificates(ctx, who.UserID, sought, limit, s.Now())
	if err != nil {
		return nil, err
	}
	list := make([]*Certificate, len(records))
	for i, r := range records {
		if list[i], err = s.certificate(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}
