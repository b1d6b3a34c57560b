// SPDX-License-Identifier: Apache-2.0

//go:build unix

package verify_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tamga/internal/tamgatest"
)

// TestVerifyDoesNotOpenPipes checks that a named pipe, which waits for a writer when it is opened, is refused as a
// device is.
func TestVerifyDoesNotOpenPipes(t *testing.T) {
	newSignedFiles(t)
	if err := unix.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"pipe"}, {"/dev/null"}, {"alone.p7s", "--original", "pipe"}} {
		r := tamgatest.Run(t.Context(), "", append([]string{"verify"}, args...)...)
		if r.Code != 2 || !strings.Contains(r.Err, args[len(args)-1]+" is not a file") {
			t.Errorf("%v: exit code %d, %s", args, r.Code, r.Err)
		}
	}
}
