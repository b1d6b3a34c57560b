// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"testing"
)

func TestFreeName(t *testing.T) {
	taken := map[string]bool{"a.txt.p7m": true, "a.p7m": true, ".p7m": true, "a.pdf": true, "a (2).pdf": true, "document": true}
	long := strings.Repeat("ф", 200)
	taken[strings.Repeat("ф", 125)+".sig"] = true
	for name, want := range map[string]string{
		"A.pdf": "A (3).pdf", "b": "b", "": "document (2)", `a/b\c"<d>:|?*.txt`: "c__d_____.txt", "../../etc/passwd": "passwd", "x/..": "document (2)",
		"a.txt.p7m": "a (2).txt.p7m", "a.P7M": "a (2).P7M", "b.tar.gz.enc": "b.tar.gz.enc",
		strings.Repeat("a", 250) + ".txt.sig": strings.Repeat("a", 250) + ".sig",
		long + ".sig":                         strings.Repeat("ф", 123) + " (2).sig", "x." + long: "x." + strings.Repeat("ф", 126),
	} {
		if got := FreeName(name, taken); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
