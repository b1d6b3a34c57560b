package policy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/fault"
)

// Bounds of a notification policy: it is kept with every user.
const (
	maxEvents    = 256
	maxEventName = 128 // characters
)

// channels are the names of notifiers on the wire. One that is not configured may be
// in a policy: it counts from the day it is.
var channels = []string{"Email", "SMS", "Push"}

// normalNotifiers spells names of notifiers as the interface does, once each. Names of
// events are kept as they are, since there are more of them than anybody here knows.
func normalNotifiers(by map[string][]string) (map[string][]string, error) {
	if len(by) > maxEvents {
		return nil, fault.Newf(fault.InvalidParameters, "Policy: %d types of events, want at most %d", len(by), maxEvents)
	}
	normal := make(map[string][]string, len(by))
	for event, notifiers := range by {
		if !isEventName(event) {
			return nil, fault.Newf(fault.InvalidParameters, "Policy: %.40q is no type of event: want 1 to %d characters without spaces", event, maxEventName)
		}
		list := []string{}
		for _, n := range notifiers {
			i := slices.IndexFunc(channels, func(c string) bool { return strings.EqualFold(c, n) })
			if i < 0 {
				return nil, fault.Newf(fault.InvalidParameters, "Policy: %s: unknown notifier %.40q, want %s", event, n, strings.Join(channels, ", "))
			}
			if !slices.Contains(list, channels[i]) {
				list = append(list, channels[i])
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
