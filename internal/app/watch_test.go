// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/fault"
)

// TestWatch lets an outage of an hour meet ten errors a second, and counts the lines and bytes of the log.
func TestWatch(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := newWatching(slog.NewJSONHandler(&out, nil))
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	h.watch.now = func() time.Time { return now }
	log := slog.New(h).With("process", "one")
	outage := &fault.Outage{Message: "the database is not available now: try again later", Err: errors.New("connection refused\nsecond line")}
	log.Error("another task", "error", errors.New("of its own"))
	for range 10 * 3600 {
		log.Error("delivering messages", "error", fmt.Errorf("claiming: %w", outage))
		now = now.Add(100 * time.Millisecond)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 61 || out.Len() > 1<<20 {
		t.Errorf("%d lines, %d bytes", len(lines), out.Len())
	}
	for n, want := range []string{`"ERROR","msg":"another task","process":"one"`, `"WARN","msg":"not ready: an outage begins","part":"database"`, `"not ready: the outage lasts","part":"database","since":"2026-11-29T12:00:00Z","failures":601`} {
		if !strings.Contains(lines[n], want) {
			t.Errorf("line %d is %s, want %s", n, lines[n], want)
		}
	}
	h.watch.note(part{Kind: "database"}, nil)
	h.watch.note(part{Kind: "database"}, nil)
	h.watch.note(part{Kind: "mail"}, nil) // was never away
	log.Warn("keeping a document", "error", &fault.Outage{Message: "the storage is away", Part: "documents", Err: errors.New("x")})
	lines = strings.Split(strings.TrimSpace(out.String()), "\n")[61:]
	if len(lines) != 2 || !strings.Contains(lines[0], `"INFO","msg":"the outage is over","part":"database","lasted":"1h0m0s","failures":36000`) || !strings.Contains(lines[1], `"part":"documents"`) {
		t.Errorf("afterwards:\n%s", strings.Join(lines, "\n"))
	}
	if list := h.watch.states(); len(list) != 3 || list[0].Kind != "database" || list[0].Err != nil || list[0].Total != 36000 || list[1].Err == nil || list[2].Err != nil {
		t.Errorf("states are %+v", list)
	}
}

// TestHourOfOutages lets everything that a server needs be away for an hour: needs of /readyz are asked every five seconds, what is in
// the network and the tasks every minute, and ten requests a second meet the database. The log stays below 1 MB.
func TestHourOfOutages(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := newWatching(slog.NewJSONHandler(&out, nil))
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	h.watch.now = func() time.Time { return now }
	s := &Server{services: &Services{Base: &Base{log: slog.New(h), watch: h.watch}}}
	long := errors.New("dial tcp 10.1.2.3:5432: connect: connection refused; " + strings.Repeat("what else the system says, ", 8))
	outage := &fault.Outage{Message: "the database is not available now: try again later", Err: long}
	needs := []string{"database", "documents", "disk", "keys", "clock"}
	network := []part{{"mail", ""}, {"sms", ""}, {"push", ""}, {"sign_in", "one"}, {"sign_in", "other"}, {"stamps", "one"}, {"stamps", "other"}, {"revocation", "authority host"}, {"traces", ""}, {"tls", ""}}
	tasks := []string{"deleting what has ended", "renewing revocation lists", "asking other authorities about their certificates"}
	for second := range 3600 {
		for range 10 {
			s.services.log.Error("answering a request", "error", fmt.Errorf("signing: %w", outage))
		}
		if second%int(needsEvery/time.Second) == 0 {
			for _, name := range needs {
				s.services.noted(t.Context(), name, long)
			}
		}
		if second%int(dependenciesEvery/time.Second) == 0 {
			for _, p := range network {
				h.watch.note(p, long)
			}
			for _, name := range tasks {
				s.ended(name, long)
				s.ended(name, outage)
			}
		}
		now = now.Add(time.Second)
	}
	if lines := strings.Count(out.String(), "\n"); out.Len() > 1_000_000 || lines < 61*len(network) {
		t.Errorf("%d lines, %d bytes", lines, out.Len())
	}
}
