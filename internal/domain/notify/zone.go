// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"path"
	"strings"
	"sync"
	"time"
)

// zones are the time zones that were asked for, by name. There are no more of them than names in the database of time
// zones, because a name has one form: Europe//Moscow is the same file as Europe/Moscow.
var zones sync.Map

// Zone returns a time zone by its name in the database of time zones, or otherwise if no zone has the name. The name
// may be hostile.
func Zone(name string, otherwise *time.Location) *time.Location {
	if name == "" || len(name) > 64 || name == "Local" || path.Clean(name) != name || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") != "" {
		return otherwise
	}
	if known, has := zones.Load(name); has {
		return known.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return otherwise
	}
	zones.Store(name, zone)
	return zone
}
