// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"testing"

	"tamga/internal/web/pages/view"
)

// TestTemplates parses every page in every language. A server parses a page only when it is first
// shown, so it would start with a wrong one.
func TestTemplates(t *testing.T) {
	for _, w := range view.Languages {
		pages, language := w.Templates(), w.Language
		if len(pages) < 20 {
			t.Errorf("%s: %d pages", language, len(pages))
		}
		for name, parse := range pages {
			if parse().Lookup("frame") == nil || parse().Lookup("page") == nil {
				t.Errorf("%s: page %s lacks its frame or its own part", language, name)
			}
		}
	}
}
