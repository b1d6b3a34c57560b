// SPDX-License-Identifier: Apache-2.0

package sig_test

import (
	"strings"
	"testing"

	"tamga/sig"
)

// Levels are compared, so their order is part of what they are.
func TestLevels(t *testing.T) {
	names := map[string]bool{}
	for l := sig.LevelBasic; l <= sig.LevelArchive; l++ {
		names[l.String()] = true
	}
	if len(names) != 4 || sig.LevelBasic >= sig.LevelTime || sig.LevelTime >= sig.LevelLongTerm || sig.LevelLongTerm >= sig.LevelArchive || sig.Level(-1).String() != "unknown" {
		t.Errorf("the levels are %v", names)
	}
}

// A choice has the level of its value, by name and by number, and an unknown value is a fault.
func TestChoice(t *testing.T) {
	choices := []sig.Choice{{Name: "Plain", Number: "0"}, {Name: "Kept", Number: "7", Level: sig.LevelArchive}}
	for _, c := range []struct {
		value, def, name string
		level            sig.Level
		fault            string
	}{
		{"kept", "Plain", "Kept", sig.LevelArchive, ""},
		{"7", "Plain", "Kept", sig.LevelArchive, ""},
		{"0", "Kept", "Plain", sig.LevelBasic, ""},
		{"", "Kept", "Kept", sig.LevelArchive, ""},
		{"", "", "", sig.LevelBasic, ""},
		{"1", "Plain", "Plain", sig.LevelBasic, "Plain, Kept expected"},
	} {
		r := sig.Params{"k": c.value}.Reader()
		got, err := r.Choice("K", choices, c.def), r.Err()
		if got.Name != c.name || got.Level != c.level || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q with the default %q: %+v, %v", c.value, c.def, got, err)
		}
	}
}
