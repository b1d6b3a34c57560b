// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tamga/internal/files"

	"tamga/internal/tamgatest"
)

func dumpable(t *testing.T) int {
	t.Helper()
	n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A server leaves no core dump; what it and its metrics read of /proc is still there.
func TestNoCoreDumps(t *testing.T) {
	limit := func(env string) string {
		t.Helper()
		t.Setenv(files.AllowCoreDumps, env)
		server := tamgatest.StartProcess(t, t.TempDir())
		status, body := server.Do(t.Context(), "GET", server.URL+"/metrics", "", nil)
		if status != 200 || !strings.Contains(string(body), "process_open_fds ") || !strings.Contains(string(body), "process_resident_memory_bytes ") {
			t.Errorf("the metrics do not have the process: %d", status)
		}
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", server.Process().Pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(line, "Max core file size"); ok {
				return strings.Join(strings.Fields(rest), " ")
			}
		}
		return ""
	}
	if got := limit(""); got != "0 0 bytes" {
		t.Errorf("core dumps may have %s", got)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &before); err != nil {
		t.Fatal(err)
	}
	if got := limit("1"); before.Max > 0 && got == "0 0 bytes" {
		t.Errorf("with %s=1 core dumps may have %s", files.AllowCoreDumps, got)
	}

	if dumpable(t) != 1 {
		t.Skip("the tests are not dumpable themselves")
	}
	defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	if err := files.PrivateMemory(); err != nil {
		t.Fatal(err)
	}
	if dumpable(t) != 0 {
		t.Error("the process is dumpable")
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err != nil || len(fds) < 3 {
		t.Errorf("/proc/self/fd: %v", err)
	}
}
