// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ProcessorTime returns the processor time of the server since its start: of its running
// processes and of those that have ended. It skips the test where /proc does not have it.
func (c *Cluster) ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	lines, err := os.ReadFile(filepath.Join(c.sockets, "data", "postmaster.pid"))
	must(t, err)
	first, _, _ := strings.Cut(string(lines), "\n")
	parent, err := strconv.Atoi(first)
	must(t, err)
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	must(t, err)
	var ticks int64
	seen := false
	for _, name := range processes {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended; its parent counts it
		}
		_, rest, _ := strings.Cut(string(data), ") ") // the name may contain spaces
		fields := strings.Fields(rest)
		own := name == fmt.Sprintf("/proc/%d/stat", parent)
		if seen = seen || own; len(fields) < 15 || !own && fields[1] != first {
			continue
		}
		counted := fields[11:13] // user and system time
		if own {
			counted = fields[11:15] // and those of children that have ended
		}
		for _, f := range counted {
			n, err := strconv.ParseInt(f, 10, 64)
			must(t, err)
			ticks += n
		}
	}
	if !seen {
		t.Skip("/proc does not show the processes of the database server")
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
