// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	"tamga/sig"
)

// TestFitting: names that are shortened stay apart, also on systems that do not know letter case.
func TestFitting(t *testing.T) {
	taken := map[string]bool{}
	for _, name := range []string{strings.Repeat("a", 250) + ".sig", strings.Repeat("A", 250) + ".sig", strings.Repeat("a", 251) + ".SIG", "straße", "STRASSE"} {
		got := fitting(name, taken)
		if len(got) > most || taken[sig.NameKey(got)] {
			t.Errorf("%q became %q", name, got)
		}
		taken[sig.NameKey(got)] = true
	}
}
