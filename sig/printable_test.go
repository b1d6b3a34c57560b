// SPDX-License-Identifier: Apache-2.0

package sig_test

import (
	"testing"

	"tamga/sig"
)

// TestPrintable: what does not show becomes "?", and a long text ends in "...".
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "имя": "имя", "a\n\u202eb": "a??b", "abcdef": "abcde...", "a\xffb": "a\ufffdb",
	} {
		if got := sig.Printable(text, 5, '?'); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
