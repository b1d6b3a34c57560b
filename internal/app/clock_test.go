// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClockOfServices checks that every service gets the time of the database. Rate limits, outages and
// the monotonic clock measure durations in this process.
func TestClockOfServices(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	// The first two are of a program without a database, such as a doctor.
	own := regexp.MustCompile(`^\s*return time\.Now$|notifiers\(c, time\.Now, nil\)|limit\.New|began :=|:= provider\(|slowly\(|newWatch\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.HasSuffix(file, "_test.go") && strings.Contains(line, "time.Now") && !own.MatchString(line) {
				t.Errorf("%s:%d: time.Now: want DB.Now: %s", file, i+1, strings.TrimSpace(line))
			}
		}
	}
}
