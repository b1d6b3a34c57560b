// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"io/fs"
	"os"
	"strings"
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
			// A page has a part in the column of all pages, or takes the whole main part.
			whole := parse().Lookup("main") != nil && strings.Contains(parse().Lookup("main").Tree.Root.String(), "desk-head")
			if parse().Lookup("frame") == nil || parse().Lookup("page") == nil && !whole {
				t.Errorf("%s: page %s lacks its frame or its own part", language, name)
			}
		}
	}
}

// TestNothingCut: a browser cuts what is pasted into a field with maxlength, and says nothing. The server refuses
// what is too long.
func TestNothingCut(t *testing.T) {
	templates := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".html") {
			return err
		}
		templates++
		text, err := os.ReadFile(name)
		if strings.Contains(string(text), "maxlength") {
			t.Errorf("%s: a field has maxlength", name)
		}
		return err
	})
	if err != nil || templates < 30 {
		t.Errorf("%d templates, %v", templates, err)
	}
}
