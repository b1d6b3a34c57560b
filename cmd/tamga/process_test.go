// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

func TestMain(m *testing.M) {
	if os.Getenv(asHostileClients) != "" {
		if err := runHostileClients(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	tamgatest.Main(m)
}

// plainProgram builds the program as it is delivered: the race detector's own
// memory would hide what a test of memory looks for.
func plainProgram(t testing.TB, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tamga")
	build := exec.Command("go", slices.Concat([]string{"build", "-ldflags=-s -w", "-o", program}, flags, []string{"."})...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return program
}

// memory reads a figure of /proc/PID/status in bytes: VmHWM is the peak of the
// resident memory, VmRSS what it is now.
func memory(p *tamgatest.Server, name string) int64 {
	p.T.Helper()
	return statusOf(p.T, p.Process().Pid, name)
}

// statusOf is memory of any process.
func statusOf(t testing.TB, process int, name string) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		t.Skipf("resident memory cannot be read here: %v", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("no %s in the status of the process", name)
	return 0
}

// resetPeak makes VmHWM start again at the present size.
func resetPeak(p *tamgatest.Server) {
	p.T.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Process().Pid), []byte("5"), 0o200); err != nil {
		p.T.Skipf("the peak of resident memory cannot be reset here: %v", err)
	}
}
