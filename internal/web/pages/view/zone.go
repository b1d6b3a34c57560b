// SPDX-License-Identifier: Apache-2.0

package view

import (
	_ "embed"
	"regexp"
	"strconv"
	"time"

	"tamga/internal/domain/notify"
)

// ZoneCookie has the name of the reader's time zone, which zoneScript sets.
const ZoneCookie = "tamga-zone"

// zoneScript sets ZoneCookie. It is on every page: a person travels.
//
//go:embed zone.js
var zoneScript string

// In returns the texts for a reader in a time zone.
func (w *Words) In(zone *time.Location) *Words {
	there := *w
	there.zone = zone
	return &there
}

// Location returns the time zone of the reader, UTC if it is not known.
func (w *Words) Location() *time.Location {
	if w.zone == nil {
		return time.UTC
	}
	return w.zone
}

// zoneName names the zone of a time as people know it.
func (w *Words) zoneName(t time.Time) string {
	return notify.ZoneName(t.In(w.Location()), w.Language)
}

// A template is parsed once for a language, and its functions do not know the reader. So they write a mark with the
// time, which timesIn replaces when the page is made: a letter for the form and milliseconds, between characters
// for private use.
const (
	markWhen   = "w"
	markMoment = "m"
	markDay    = "d"
	markClock  = "c"
)

var timeMark = regexp.MustCompile("\ue0f1([wmdc])(-?[0-9]{1,18})\ue0f1")

func mark(form string, t time.Time) string {
	return "\ue0f1" + form + strconv.FormatInt(t.UnixMilli(), 10) + "\ue0f1"
}

// timesIn replaces marks by times. A text of a person with a mark in it would become a time, which is harmless.
func (w *Words) timesIn(page []byte) []byte {
	return timeMark.ReplaceAllFunc(page, func(found []byte) []byte {
		parts := timeMark.FindSubmatch(found)
		ms, err := strconv.ParseInt(string(parts[2]), 10, 64)
		if err != nil {
			return found
		}
		t := time.UnixMilli(ms)
		switch string(parts[1]) {
		case markMoment:
			return []byte(w.Moment(t))
		case markDay:
			return []byte(w.Day(t))
		case markClock:
			return []byte(w.Clock(t))
		}
		return []byte(w.When(t))
	})
}
