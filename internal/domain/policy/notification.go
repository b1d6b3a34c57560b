// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// Limits of a notification policy, which is stored with each user.
const (
	maxEvents    = 256
	maxEventName = 128 // characters
)

// normalNotifiers returns the names of notifiers as the specification spells them, once
// each. A policy may name a notifier that is not configured. It has effect once the notifier
// is configured. Names of events are kept as they are: clients use more of them than this
// program knows.
func normalNotifiers(by map[string][]string) (map[string][]string, error) {
	if len(by) > maxEvents {
		return nil, fault.Newf(fault.InvalidParameters, "Policy: %d types of events, want at most %d", len(by), maxEvents)
	}
	channels := notify.ForUsers()
	normal := make(map[string][]string, len(by))
	for event, notifiers := range by {
		if !isEventName(event) {
			return nil, fault.Newf(fault.InvalidParameters, "Policy: %.40q is not a type of event: want 1 to %d characters without spaces", event, maxEventName)
		}
		list := []string{}
		for _, n := range notifiers {
			i := slices.IndexFunc(channels, func(c notify.ChannelInfo) bool { return strings.EqualFold(string(c.Channel), n) })
			if i < 0 {
				return nil, fault.Newf(fault.InvalidParameters, "Policy: %s: unknown notifier %.40q, want %s", event, n, notify.NamesForUsers())
			}
			if name := string(channels[i].Channel); !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
		normal[event] = list
	}
	return normal, nil
}

func isEventName(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxEventName && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Cf)
	})
}
