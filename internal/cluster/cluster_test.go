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
)

// tried are the scenarios of the tests, with how often each has its fault. The command
// bench/cluster runs all of them, and for longer.
var tried = []struct {
	name   string
	rounds int
	short  bool // also with -short
}{
	{"mixed", 0, true},
	{"kill", 2, true},
	{"freeze", 1, false},
	{"failover", 1, false},
	{"bucket-freeze", 1, false},
	{"restart", 1, false},
}

// TestScenarios runs several processes, breaks some of them, and wants that nothing that was
// acknowledged is lost and nothing is signed twice. Bounds in time are checked where other
// work on the machine cannot exceed them.
func TestScenarios(t *testing.T) {
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
			length, rounds := 5*time.Second, q.rounds
			if testing.Short() {
				if !q.short {
					t.Skip("long")
				}
				length, rounds = 3*time.Second, min(rounds, 1)
			}
			s := scenario(t, q.name)
			r, err := s.Run(t.Context(), p, length, rounds)
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
			if s.Holds.Gap > 0 && r.Gap-r.Away > s.Holds.Gap {
				t.Errorf("the survivors answered nothing for %v, of which the database was away for %v", r.Gap, r.Away)
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
