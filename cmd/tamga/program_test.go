// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"tamga/internal/app/dev"
	"tamga/internal/testsize"
)

// The commands that the banner of serve --dev prints work after go run.
func TestBannerAfterGoRun(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("compiles the program")
	}
	t.Parallel()
	cmd := exec.Command("go", "run", "./cmd/tamga", "sign", "README.md", "--data", t.TempDir())
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "go run ./cmd/tamga serve --dev") {
		t.Errorf("%v: %s", err, out)
	}
	var text strings.Builder
	(&dev.Description{}).Explain(&text, "tamga-data", "go run ./cmd/tamga", fmt.Sprintf)
	for _, want := range []string{"  go run ./cmd/tamga sign hello.txt --data tamga-data\n", "  go run ./cmd/tamga verify hello.txt.sig --ca tamga-data\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
