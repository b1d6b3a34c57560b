// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/config"
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
