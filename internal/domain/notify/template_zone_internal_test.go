// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"testing"
	"time"
)

// TestTimesOfMessages checks that a message has times in the zone of the installation, and names it.
func TestTimesOfMessages(t *testing.T) {
	moscow, err := time.LoadLocation("Europe/Moscow")
	if err != nil {
		t.Fatal(err)
	}
	kathmandu, err := time.LoadLocation("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		zone       *time.Location
		lang, want string
	}{
		{nil, "ru", "31.01.2026 12:00 UTC"}, {moscow, "ru", "31.01.2026 15:00 МСК"}, {moscow, "en", "2026-01-31 15:00 MSK"},
		{kathmandu, "ru", "31.01.2026 17:45 UTC+5:45"}, {time.UTC, "en", "2026-01-31 12:00 UTC"},
	} {
		all, err := NewTemplates("T", nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Zone = c.zone
		made, err := all.render(TemplateDeviceQR, c.lang, Email, nil, map[string]string{"Expires": "2026-01-31 12:00 UTC"})
		if err != nil || !strings.Contains(made.Text, c.want) {
			t.Errorf("%v in %s: %q, %v, want %s", c.zone, c.lang, made.Text, err, c.want)
		}
	}
}
