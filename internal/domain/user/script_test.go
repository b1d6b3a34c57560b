// SPDX-License-Identifier: Apache-2.0

package user

import (
	"slices"
	"testing"
	"unicode"

	"tamga/internal/domain/fault"
)

func TestCheckScript(t *testing.T) {
	for _, good := range []string{"operator", "оператор", "Anna-1", "123", "ελένη", "é", "山田たろう", "김철수", "ivan.petrov+1", "Ёж 5", "ﬁ"} {
		if err := checkScript(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"оperator", "operаtor", "анна_2@x", "Αnna", "たろう김", "ꓳꓑꓰꓣꓮꓔꓳꓣ", "ᎪᏢᏢᏞᎬ", "𐐃"} {
		if err := checkScript(bad); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("%q: %v, want invalid_parameters", bad, err)
		}
	}
}

func TestLookAlikes(t *testing.T) {
	for login, want := range map[string][]string{
		"сор":      {"cop"},   // Cyrillic
		"cop":      {"сор"},   // Latin
		"СОР-1":    {"cop-1"}, // letter case does not matter
		"ВАНК":     {"bahk"},  // alike in capitals only
		"bahk":     {"ванк", "βαηκ"},
		"Тора":     {"topa"}, // with a capital at the beginning
		"ора.ср":   {"opa.cp"},
		"α":        {"a", "а"},
		"иван":     nil, // и is like nothing
		"operator": nil, "1.2": nil, "": nil,
	} {
		got := lookAlikes(login)
		for _, w := range want {
			if !slices.Contains(got, FoldLogin(w)) {
				t.Errorf("%q looks like %q, want %q among them", login, got, w)
			}
		}
		if want == nil && got != nil {
			t.Errorf("%q looks like %q, want none", login, got)
		}
	}
}

// Looking alike is symmetric for the usual letters, and the tables contain letters of the
// four scripts in their case.
func TestLooksAreSymmetric(t *testing.T) {
	for name, c := range map[string]struct {
		looks looks
		is    func(rune) bool
	}{"small": {smallLook, unicode.IsLower}, "capital": {capitalLook, unicode.IsUpper}} {
		for r, others := range c.looks {
			if !c.is(r) || len(others) < 2 {
				t.Errorf("%s: %c (U+%04X) has %d scripts", name, r, r, len(others))
			}
			for script, other := range others {
				if got, _ := scriptOf(other); got != script {
					t.Errorf("%s: %c is of %s, not %s", name, other, got, script)
				}
			}
			own, _ := scriptOf(r)
			if others[own] != r {
				continue // not the usual letter of its script
			}
			for _, other := range others {
				if c.looks[other][own] != r {
					t.Errorf("%s: %c looks like %c and not the other way round", name, r, other)
				}
			}
		}
	}
}
