// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"tamga/internal/testsize"
)

// tried are the scenarios of the tests, with how often each has its fault. The command
// bench/cluster runs all of them, and for longer.
var tried = []struct {
	name   string
	rounds int
}{{"mixed", 0}, {"kill", 2}, {"freeze", 1}, {"failover", 1}, {"bucket-freeze", 1}, {"restart", 1}, {"upgrade", 1}}

// TestScenarios runs several processes, breaks some of them, and wants that nothing that was
// acknowledged is lost and nothing is signed twice. Bounds in time have room for other work on the
// machine; in the full size, and by the command, they have none.
func TestScenarios(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("several processes and their peers")
	}
	if err := Installed(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	p, err := Build(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, q := range tried {
		t.Run(q.name, func(t *testing.T) {
			s, rounds := scenario(t, q.name), q.rounds
			if testsize.Of() < testsize.Whole { // a fault once, under a load that leaves processors idle
				s.Load.Pause, rounds = 100*time.Millisecond, min(rounds, 1)
			}
			if err := s.Prepare(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			r, err := s.Run(t.Context(), p, 5*time.Second, rounds, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Details())
			for _, wrong := range r.Wrong {
				t.Errorf("%s", wrong)
			}
			if s.Holds.NoFailures && r.Failed > 0 {
				t.Errorf("%d requests failed", r.Failed)
			}
			bound := s.Holds.Gap
			if testsize.Of() < testsize.Full {
				bound += 20 * time.Second
			}
			if s.Holds.Gap > 0 && r.Gap-r.Away > bound {
				t.Errorf("the survivors answered nothing for %v, of which the database was away for %v: want at most %v more", r.Gap, r.Away, bound)
			}
		})
	}
}

func scenario(t *testing.T, name string) Scenario {
	t.Helper()
	for _, s := range Scenarios {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %q", name)
	return Scenario{}
}

// TestServerLog reads the log of a server in which one session writes between the lines of
// another.
func TestServerLog(t *testing.T) {
	const log = `2026-11-23 07:09:22.000 UTC [1] tamga0 LOG:  duration: 5 ms
2026-11-23 07:09:23.154 UTC [26657] tamga2 LOG:  process 26657 still waiting for ShareLock on transaction 28157 after 50.278 ms
2026-11-23 07:09:23.154 UTC [26657] tamga2 DETAIL:  Process holding the lock: 26641. Wait queue: 26657.
2026-11-23 07:09:23.154 UTC [26657] tamga2 CONTEXT:  while inserting index tuple (4,48) in relation "message_budgets"
2026-11-23 07:09:23.155 UTC [7] tamga1 LOG:  process 7 still waiting for ExclusiveLock on tuple (1,2) of relation 3 after 50.001 ms
2026-11-23 07:09:23.154 UTC [26657] tamga2 STATEMENT:  INSERT INTO message_budgets
		SELECT 1
2026-11-23 07:09:23.160 UTC [26657] tamga2 LOG:  process 26657 acquired ShareLock on transaction 28157 after 61.5 ms
2026-11-23 07:09:23.160 UTC [26657] tamga2 CONTEXT:  while inserting index tuple (4,48) in relation "users"
2026-11-23 07:09:24.000 UTC [8] tamga1 ERROR:  deadlock detected
`
	var w waits
	n, err := w.parse(strings.NewReader(log))
	if err != nil || n != int64(len(log)) || len(w.List) != 2 || w.Deadlocks != 1 || len(w.Circles) != 1 {
		t.Fatalf("%d of %d bytes, %v: %+v", n, len(log), err, w)
	}
	at := time.Date(2026, 11, 23, 7, 9, 23, 0, time.UTC)
	h := holders{seen: []holding{{26657, at, "long ago"}, {26657, at.Add(120 * time.Millisecond), "tamga0,\n idle"}, {26657, at.Add(time.Second), "another wait"}, {9, at, "another session"}}}
	h.name(w.List)
	for i, want := range []string{
		"tamga2 waited 62ms for a row of message_budgets: INSERT INTO message_budgets SELECT 1; held by tamga0, idle",
		"tamga1 waited 50ms for a row of a table that the log does not name: ; held by a session that was not seen",
	} {
		if got := w.List[i].String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestPage compares the configuration of HAProxy that docs/cluster.md shows with the one that
// the scenarios run.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```haproxy\n"+string(balancerConfig)+"```\n") {
		t.Error("docs/cluster.md does not show testdata/haproxy.cfg")
	}
}

// TestDelay wants that a round trip takes as long as it was set to, and that bytes keep their
// order.
func TestDelay(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go io.Copy(conn, conn)
		}
	}()
	const roundTrip = 20 * time.Millisecond
	d, err := newDelay("127.0.0.1:0", echo.Addr().String(), roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	conn, err := net.Dial("tcp", d.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := bytes.Repeat([]byte("0123456789"), 20_000)
	begun := time.Now()
	go conn.Write(sent)
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("other bytes arrived, %v", err)
	}
	if took := time.Since(begun); took < roundTrip {
		t.Errorf("a round trip took %v, want at least %v", took, roundTrip)
	}
}
