// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"os"
	"path/filepath"
	"testing"
)

// Chromium returns the path of Chromium.
func Chromium(t testing.TB) string {
	t.Helper()
	return Program(t, "chromium")
}

// Axe returns the text of axe-core, the script that looks for barriers to people who do not see
// a page or have no mouse.
func Axe(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(judges(t), "axe", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		missing(t, "the npm package axe-core is not there (./test.sh installs it)")
	}
	return string(text)
}
