// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"fmt"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestUploadFields: the fields of a form with files stay in memory, so all of them together are
// bounded, with their names. The number of parts is bounded for documents only.
func TestUploadFields(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, tamgatest.Start(t))
	many := func(n, name, value int) map[string]string {
		fields := map[string]string{}
		for i := range n {
			fields[fmt.Sprintf("%d%s", i, strings.Repeat("n", name))] = strings.Repeat("v", value)
		}
		return fields
	}
	for what, fields := range map[string]map[string]string{
		"texts": many(100, 1, 4000), "names": many(100, 4000, 1), "short fields": many(2000, 1, 1), "empty fields": many(2000, 1, 0),
	} {
		if p := b.upload("/verify", fields, file{"file", "a.txt", "text"}); p.status != 413 {
			t.Errorf("%s: %d %.200s", what, p.status, p.text)
		}
	}
	if p := b.upload("/verify", many(50, 10, 100), file{"file", "a.txt", "text"}); p.status == 413 {
		t.Error("an honest form is too large")
	}
}
