// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"testing"
	"time"
)

// TestZone checks that a stamp names the zone of its time.
func TestZone(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for in, want := range map[*time.Location]string{time.UTC: " UTC", time.FixedZone("MSK", 3*3600): " (МСК)", time.FixedZone("", 5*3600+1800): " (UTC+05:30)", time.FixedZone("+05", 5*3600): " (UTC+05:00)"} {
		if got := zone(at.In(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
