// SPDX-License-Identifier: Apache-2.0

package look

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestIcon: an icon is a drawing without a name for screen readers, and a name without a drawing is an error.
func TestIcon(t *testing.T) {
	for _, name := range Icons() {
		icon, err := Icon(name)
		if err != nil || !strings.HasPrefix(string(icon), `<svg class="i" viewBox="0 0 `) || !strings.Contains(string(icon), `aria-hidden="true"`) {
			t.Errorf("%s: %v, %s", name, err, icon)
		}
	}
	if icon, err := Icon("seal-valid", "seal"); err != nil || !strings.HasPrefix(string(icon), `<svg class="seal" `) {
		t.Errorf("%v, %s", err, icon)
	}
	if icon, err := Icon("missing"); err == nil {
		t.Errorf("an icon that is missing: %s", icon)
	}
}

// TestStyle: the stylesheet loads nothing, has each value that it uses, and its address changes with its text.
func TestStyle(t *testing.T) {
	text := string(Style.content)
	for _, from := range regexp.MustCompile(`url\(\s*"?([^)]{0,40})`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(from[1], "data:image/svg+xml,") {
			t.Errorf("the stylesheet loads %q", from[1])
		}
	}
	var set []string
	for _, name := range regexp.MustCompile(`(--[a-z0-9-]+):`).FindAllStringSubmatch(text, -1) {
		set = append(set, name[1])
	}
	for _, name := range regexp.MustCompile(`var\((--[a-z0-9-]+)\)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(set, name[1]) {
			t.Errorf("the stylesheet uses %s, which has no value", name[1])
		}
	}
	if other := newAsset("tamga", ".css", "text/css", text+" "); other.Path == Style.Path {
		t.Error("two texts have one address")
	}
}
