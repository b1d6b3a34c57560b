// SPDX-License-Identifier: Apache-2.0

package tamga

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// licensed are the endings of source files.
var licensed = []string{".go", ".s", ".sh", ".java", ".js", ".ts", ".py"}

// TestLicence: every source file names its licence in its first two lines.
func TestLicence(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(name, ".") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(licensed, filepath.Ext(name)) {
			return nil
		}
		files++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		head := bytes.SplitN(text, []byte("\n"), 3)
		head = head[:min(2, len(head))]
		if !bytes.Contains(bytes.Join(head, nil), []byte(" SPDX-License-Identifier: Apache-2.0")) {
			t.Errorf("%s: want the line // SPDX-License-Identifier: Apache-2.0 first", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("only %d files were checked", files)
	}
}
