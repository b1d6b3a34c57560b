// SPDX-License-Identifier: Apache-2.0

package testsize

import (
	"flag"
	"testing"
)

func TestOf(t *testing.T) {
	short := flag.Lookup("test.short").Value
	before := short.String()
	defer short.Set(before)
	for _, c := range []struct {
		short, full, ci string
		want            Size
	}{
		{"false", "", "", Plain},
		{"false", "", "false", Plain},
		{"false", "", "true", Whole},
		{"false", "1", "", Full},
		{"false", "1", "true", Full},
		{"true", "", "", Quick},
		{"true", "1", "true", Quick}, // the command line is nearer than the environment
	} {
		short.Set(c.short)
		t.Setenv("TAMGA_TEST_FULL_FAULTS", c.full)
		t.Setenv("CI", c.ci)
		if got := Of(); got != c.want {
			t.Errorf("-short=%s, TAMGA_TEST_FULL_FAULTS=%q, CI=%q: %d, want %d", c.short, c.full, c.ci, got, c.want)
		}
	}
}
