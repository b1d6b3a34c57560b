// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"strings"
	"testing"
)

func TestKeep(t *testing.T) {
	form := map[string]string{"certificate": "1", "pin": "1234", "stamp_page": "3", "format": "a&b", "evil": "1"}
	if got := keep(func(name string) string { return form[name] }); got != "certificate=1&format=a%26b" {
		t.Errorf("%q", got)
	}
	form["stamp"] = "yes"
	if got := keep(func(name string) string { return form[name] }); got != "certificate=1&format=a%26b&stamp=yes&stamp_page=3" {
		t.Errorf("%q", got)
	}
	form["format"] = strings.Repeat("a", maxKept)
	if got := keep(func(name string) string { return form[name] }); got != "" {
		t.Errorf("%d bytes in an address", len(got))
	}
}
