// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// ZoneStore has the time zones of users, by their names in the database of time zones; "" for a user who has chosen none.
type ZoneStore interface {
	TimeZone(ctx context.Context, id string) (string, error)
	SetTimeZone(ctx context.Context, id, name string) error
}

// TimeZone returns the time zone that a user has chosen, "" for none.
func (s *Service) TimeZone(ctx context.Context, id string) (string, error) {
	return s.Zones.TimeZone(ctx, id)
}

// SetTimeZone chooses the time zone of a user, "" for that of the installation. Faults: invalid_parameters, user_not_found.
func (s *Service) SetTimeZone(ctx context.Context, id, name string) error {
	if name != "" && notify.Zone(name, nil) == nil {
		return fault.New(fault.InvalidParameters, "the time zone is unknown: want a name such as Asia/Yekaterinburg")
	}
	return notFound(s.Zones.SetTimeZone(ctx, id, name))
}
