// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// waits are what the log of PostgreSQL says about locks.
type waits struct {
	List      []lockWait // longer than slowLock
	Deadlocks int        // transactions that the server ended
	Circles   []string   // lines about deadlocks
}

// lockWait is a session that waited for a lock.
type lockWait struct {
	Waiter    string // application name
	Table     string // of the row that it waited for; "" if the log does not say
	Statement string
	Took      time.Duration // slowLock if the log does not say
	Holder    string        // what the session did that held the lock; "" if it was not seen

	pid int
	at  time.Time
}

const (
	mostCircles   = 60  // lines about deadlocks that are kept
	mostStatement = 160 // bytes of a statement in a report
)

// The lines of the log about one wait, in their order. Those of other sessions may be between
// them.
var (
	logLine  = regexp.MustCompile(`^(\S+ \S+) UTC \[(\d+)\] (\S*) ([A-Z]+):  (.*)`)
	acquired = regexp.MustCompile(`^process \d+ acquired .* after ([0-9.]+) ms`)
	relation = regexp.MustCompile(`^while .* in relation "([^"]+)"`)
)

// position is how much of the logs was read.
type position map[string]int64

// lockWaits reads the logs of all primaries from a position and moves it.
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
	if _, err := f.Seek(from[name], io.SeekStart); err != nil {
		return err
	}
	n, err := w.parse(f)
	from[name] += n
	return err
}

// parse reads lines of a log and returns how many bytes it read.
func (w *waits) parse(r io.Reader) (n int64, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	of := map[int]int{} // the last wait of a session, as an index
	statement := -1     // the wait whose statement continues on the next line
	circle := 0         // lines that still belong to a deadlock
	for lines.Scan() {
		line := lines.Text()
		n += int64(len(line)) + 1
		if strings.Contains(line, "deadlock detected") {
			w.Deadlocks++
			circle = 12
		}
		if circle > 0 {
			circle--
			if len(w.Circles) < mostCircles {
				w.Circles = append(w.Circles, line)
			}
			continue
		}
		m := logLine.FindStringSubmatch(line)
		if m == nil {
			if statement >= 0 {
				w.List[statement].Statement += " " + line
			}
			continue
		}
		statement = -1
		pid, _ := strconv.Atoi(m[2]) // digits
		i, known := of[pid]
		switch text := m[5]; {
		case m[4] == "LOG" && strings.Contains(text, " still waiting for "):
			at, _ := time.Parse("2006-01-02 15:04:05.999", m[1]) // zero: no holder is found
			of[pid] = len(w.List)
			w.List = append(w.List, lockWait{Waiter: m[3], Took: slowLock, pid: pid, at: at})
		case !known:
		case m[4] == "LOG":
			if a := acquired.FindStringSubmatch(text); a != nil {
				ms, _ := strconv.ParseFloat(a[1], 64)
				w.List[i].Took = time.Duration(ms * float64(time.Millisecond))
			}
			delete(of, pid)
		case m[4] == "CONTEXT":
			if c := relation.FindStringSubmatch(text); c != nil {
				w.List[i].Table = c[1]
			}
		case m[4] == "STATEMENT" && w.List[i].Statement == "":
			w.List[i].Statement, statement = text, i
		}
	}
	return n, lines.Err()
}

// String names what waited for what.
func (w lockWait) String() string {
	return fmt.Sprintf("%s waited %v for a row of %s: %s; held by %s", w.Waiter, w.Took.Round(time.Millisecond), cmp.Or(w.Table, "a table that the log does not name"),
		oneLine(w.Statement), cmp.Or(w.Holder, "a session that was not seen"))
}

// oneLine shortens a statement.
func oneLine(statement string) string {
	s := strings.Join(strings.Fields(statement), " ")
	if len(s) > mostStatement {
		s = strings.ToValidUTF8(s[:mostStatement], "") + "..."
	}
	return s
}

// holders looks who holds the locks that sessions wait for.
type holders struct {
	mu   sync.Mutex
	seen []holding
}

type holding struct {
	pid  int // of the session that waits
	at   time.Time
	text string // what the other one does
}

// look asks the server again and again until ctx ends. It asks often enough to see every wait
// of slowLock. A question that fails is asked again: the server may be away.
func (h *holders) look(ctx context.Context, c *Cluster) {
	for wait(ctx, slowLock/2) == nil {
		rows, err := c.db.QueryContext(ctx, `SELECT w.pid, h.application_name || ', ' || h.state || ', waits for '
				|| COALESCE(h.wait_event_type || ' ' || h.wait_event, 'nothing') || ', last statement: ' || h.query
			FROM pg_stat_activity w CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b(pid) JOIN pg_stat_activity h ON h.pid = b.pid
			WHERE w.wait_event_type = 'Lock'`)
		if err != nil {
			continue
		}
		at := time.Now()
		h.mu.Lock()
		for rows.Next() {
			one := holding{at: at}
			if rows.Scan(&one.pid, &one.text) == nil {
				h.seen = append(h.seen, one)
			}
		}
		h.mu.Unlock()
		rows.Close()
	}
}

// name sets the holders of waits: what they were seen to do last, before the log wrote of the
// wait.
func (h *holders) name(list []lockWait) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range list {
		w := &list[i]
		for _, s := range h.seen {
			if s.pid == w.pid && s.at.After(w.at.Add(-slowLock)) && s.at.Before(w.at.Add(w.Took)) {
				w.Holder = oneLine(s.text)
			}
		}
	}
}
