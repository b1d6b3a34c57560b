// SPDX-License-Identifier: Apache-2.0

package view

import (
	"os"
	"path/filepath"
)

// The tests look at the texts of all areas. This package imports none of them, so the tests read their catalogues.
func init() {
	list, err := filepath.Glob("../*/words")
	if err != nil || len(list) < 6 {
		panic("view: the catalogues of the areas are missing")
	}
	for _, dir := range append(list, "../words") {
		if area := filepath.Dir(dir); area != "../view" {
			for _, w := range Languages {
				w.read(os.DirFS(area))
			}
		}
	}
}
