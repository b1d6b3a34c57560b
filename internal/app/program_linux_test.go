// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestReleaseProgram: the process keeps fewer pages of files, and goes on.
func TestReleaseProgram(t *testing.T) {
	ofFiles := func() int {
		t.Helper()
		statm, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.Fields(string(statm))[2])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := ofFiles()
	releaseProgram()
	if after := ofFiles(); after >= before {
		t.Errorf("%d pages of files, before %d", after, before)
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string][2]uintptr{
		"00400000-01a30000": {0x400000, 0x1a30000},
		"Anonymous:":        {},
		"x-10":              {},
		"10-x":              {},
		"":                  {},
	} {
		if from, to := addresses(text); from != want[0] || to != want[1] {
			t.Errorf("%q: %x to %x, want %x", text, from, to, want)
		}
	}
}
