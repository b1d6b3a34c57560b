// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// WordTexts returns the plain text that LibreOffice reads from Word documents, all in one
// run of the program.
func WordTexts(t testing.TB, documents ...[]byte) []string {
	t.Helper()
	program, err := exec.LookPath("soffice")
	if err != nil {
		missing(t, "the soffice program is not installed (Debian: libreoffice-writer-nogui)")
	}
	dir := t.TempDir()
	args := []string{
		"-env:UserInstallation=file://" + filepath.Join(dir, "profile"),
		"--headless", "--convert-to", "txt:Text (encoded):UTF8", "--outdir", filepath.Join(dir, "out"),
	}
	for i, d := range documents {
		path := filepath.Join(dir, fmt.Sprintf("%d.docx", i))
		if err := os.WriteFile(path, d, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("judge: soffice: %v: %s", err, errs.String())
	}
	texts := make([]string, len(documents))
	for i := range documents {
		text, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprintf("%d.txt", i)))
		if err != nil {
			t.Fatalf("judge: LibreOffice does not open document %d: %v: %s", i, err, errs.String())
		}
		texts[i] = string(text)
	}
	return texts
}
