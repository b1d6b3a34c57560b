// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"fmt"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestUploadFields: the fields of a form with files stay in memory, so all of them together are
// bounded, with their names. The number of parts is bounded for documents only.
func TestUploadFields(t *testing.T) {
	t.Parallel()
	b := pagetest.New(t, tamgatest.Start(t))
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
		if p := b.Upload("/verify", fields, pagetest.File{Field: "file", Name: "a.txt", Content: "text"}); p.Status != 413 {
			t.Errorf("%s: %d %.200s", what, p.Status, p.Text)
		}
	}
	if p := b.Upload("/verify", many(50, 10, 100), pagetest.File{Field: "file", Name: "a.txt", Content: "text"}); p.Status == 413 {
		t.Error("an honest form is too large")
	}
}
