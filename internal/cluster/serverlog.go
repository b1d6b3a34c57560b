// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bufio"
	"os"
	"regexp"
	"strings"
)

// waits are what the log of PostgreSQL says about locks.
type waits struct {
	Slow      int      // sessions that waited for a lock for longer than slowLock
	Rows      []string // the tables of the rows that they waited for
	Deadlocks int      // transactions that the server ended
	Examples  []string // lines with the statement that waited
	Circles   []string // lines about deadlocks
}

// mostExamples bounds waits.Examples.
const mostExamples = 5

// waitedFor finds the table of a row that a session waits for.
var waitedFor = regexp.MustCompile(`CONTEXT:  while .* in relation "([^"]+)"`)

// position is how much of the logs was read.
type position map[string]int64

// lockWaits reads the logs of all primaries from a position and moves it. Sessions of the
// checks do not count.
func (c *Cluster) lockWaits(from position) (w waits, err error) {
	for _, s := range c.servers {
		if err := w.read(c.log(s.name), from); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *waits) read(name string, from position) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(from[name], 0); err != nil {
		return err
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	waiting := false          // since a line that names no table yet
	example, deadlock := 0, 0 // lines that still belong to the last example
	for lines.Scan() {
		line := lines.Text()
		from[name] += int64(len(line)) + 1
		switch {
		case strings.Contains(line, "still waiting for"):
			w.Slow++
			example, waiting = 4, true
		case strings.Contains(line, "deadlock detected"):
			w.Deadlocks++
			deadlock = 12
		}
		if deadlock > 0 {
			deadlock--
			if len(w.Circles) < 12*mostExamples {
				w.Circles = append(w.Circles, line)
			}
			continue
		}
		if m := waitedFor.FindStringSubmatch(line); m != nil && waiting {
			w.Rows, waiting = append(w.Rows, m[1]), false
		}
		if example > 0 {
			example--
			if len(w.Examples) < 8*mostExamples {
				w.Examples = append(w.Examples, line)
			}
		}
	}
	return lines.Err()
}
