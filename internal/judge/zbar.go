// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Reader is zbarimg, which reads bar codes in pictures (package zbar-tools).
type Reader struct {
	t       testing.TB
	program string
}

// ZBar finds the program zbarimg.
func ZBar(t testing.TB) *Reader {
	t.Helper()
	program, err := exec.LookPath("zbarimg")
	if err != nil {
		missing(t, "zbarimg is not installed (package zbar-tools)")
	}
	return &Reader{t, program}
}

// Read returns the text of the only QR code in a picture. It fails the test if there is
// none. ending is the format of the picture, such as "gif".
func (r *Reader) Read(picture []byte, ending string) string {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "qr."+ending)
	if err := os.WriteFile(file, picture, 0o600); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	// Without this option zbarimg would also look for other kinds of codes and find some.
	cmd := exec.CommandContext(ctx, r.program, "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", file)
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("zbarimg: %v: %s", err, errors.String())
	}
	return strings.TrimSuffix(out.String(), "\n")
}
