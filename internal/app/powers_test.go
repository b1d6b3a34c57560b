// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tamga/internal/adapter/evidence"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/signing"
)

// TestPowersSettings checks that signatures of powers are judged by the settings of verification.
func TestPowersSettings(t *testing.T) {
	c := &config.Config{}
	c.Verification.AlgorithmEnds, c.Verification.EndedTimeStamps = []string{"SHA-224=2025-01-02"}, false
	s := &Services{Base: &Base{Config: c, DB: &store.DB{}}}
	p, err := s.powers(nil)
	if err != nil {
		t.Fatal(err)
	}
	if at := p.Ends["SHA-224"]; !at.Equal(time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC)) || !p.LivingStamps {
		t.Errorf("ends %v, living stamps %v", p.Ends, p.LivingStamps)
	}
}

// TestAnonymousPowers checks that a verification without a token asks a register only if it may fetch.
func TestAnonymousPowers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "withdrawn")
	if err := os.WriteFile(file, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &config.Config{}
	c.Powers.WithdrawnFile, c.Powers.RegistryURL = file, "https://register.example/{number}"
	s := &Services{Base: &Base{Config: c, DB: &store.DB{}}}
	p, err := s.powers(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fetch := range []bool{false, true} {
		c.Verification.Fetch = fetch
		v, err := s.verification(&signing.Service{Powers: p})
		if err != nil {
			t.Fatal(err)
		}
		lists, registers := 0, 0
		for _, one := range v.verification.Powers.Statuses {
			switch one.(type) {
			case *withdrawnFile:
				lists++
			case *evidence.PowerRegistry:
				registers++
			}
		}
		if lists != 1 || (registers == 1) != fetch {
			t.Errorf("fetch %v: %d lists, %d registers", fetch, lists, registers)
		}
	}
	if len(p.Statuses) != 2 {
		t.Errorf("signers have %d sources", len(p.Statuses))
	}
}
