// SPDX-License-Identifier: Apache-2.0

package look

import (
	"bytes"
	"compress/gzip"
	"io"
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

// TestGzip asks for a compressed file in each way in which a client can.
func TestGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "gzip, deflate, br, zstd": true, "deflate;q=1, GZIP ; q=0.5": true, "gzip;q=0": false, "gzip; q=0.000": false, "br": false, "xgzip": false,
	} {
		if got := acceptsGzip(header); got != want {
			t.Errorf("%q: %t, want %t", header, got, want)
		}
	}
	r, err := gzip.NewReader(bytes.NewReader(Style.packed()))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || !bytes.Equal(text, Style.content) {
		t.Errorf("%v: the compressed stylesheet is another one", err)
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
	if other := hashed("tamga", ".css", "text/css", text+" "); other.Path == Style.Path {
		t.Error("two texts have one address")
	}
}
