// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"testing"
	"time"
)

// TestZoneOfUser checks that a message has the zone of its user, also in the detail, and otherwise that of the installation.
func TestZoneOfUser(t *testing.T) {
	all, err := NewTemplates("Tamga", nil)
	if err != nil {
		t.Fatal(err)
	}
	all.Zone = Zone("Europe/Moscow", nil)
	data := map[string]string{"Description": "x", "Detail": "LockUser 1", valueWhen: "2026-01-31 12:00 UTC", "Time": "2026-01-31 10:00 UTC"}
	for _, c := range []struct {
		zone string
		want []string
	}{
		{"", []string{"LockUser 1, 31.01.2026 15:00 МСК\n", "Время: 31.01.2026 13:00 МСК"}},
		{"Asia/Yekaterinburg", []string{"LockUser 1, 31.01.2026 17:00 UTC+5\n", "Время: 31.01.2026 15:00 UTC+5"}},
		{"UTC", []string{"LockUser 1, 31.01.2026 12:00 UTC\n"}},
	} {
		made, err := all.render(TemplateEvent, "ru", Email, Zone(c.zone, nil), data)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(made.Text, want) {
				t.Errorf("in the zone %q the message has no %q:\n%s", c.zone, want, made.Text)
			}
		}
	}
	for _, name := range []string{"", "Local", "../etc/passwd", "Europe//Moscow", "/etc/localtime", "Mars/Phobos", strings.Repeat("a", 65)} {
		if zone := Zone(name, nil); zone != nil {
			t.Errorf("%q is the zone %s", name, zone)
		}
	}
	if Zone("x", time.UTC) != time.UTC {
		t.Error("an unknown zone is not the other one")
	}
}
