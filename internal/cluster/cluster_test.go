// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"os"
	"testing"
	"time"
)

// quick are the scenarios of the tests, with how often each has its fault. The command
// bench/cluster runs all of them, and for longer.
var quick = []struct {
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
	for _, q := range quick {
		t.Run(q.name, func(t *testing.T) {
			if testing.Short() && !q.short {
				t.Skip("long")
			}
			s := scenario(t, q.name)
			r, err := s.Run(t.Context(), p, 5*time.Second, q.rounds)
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
