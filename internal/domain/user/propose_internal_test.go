// SPDX-License-Identifier: Apache-2.0

package user

import (
	"slices"
	"strings"
	"testing"
)

// TestProposals makes logins of names of many shapes.
func TestProposals(t *testing.T) {
	for _, c := range []struct {
		surname, given string
		want           []string // the first ones
	}{
		{"Лебедева", "Ольга Николаевна", []string{"lebedeva", "o.lebedeva", "o.n.lebedeva", "lebedeva2"}},
		{" ФЁДОРОВА - Лисицына ", "Щукарь", []string{"fedorova-lisitsyna", "s.fedorova-lisitsyna", "fedorova-lisitsyna2"}},
		{"О’Коннор", "", []string{"okonnor", "okonnor2"}},
		{"Әхмәтҗанов", "Өлфәт", []string{"akhmatzhanov", "o.akhmatzhanov"}},
		{"Muñoz", "José", []string{"munoz", "j.munoz"}},
		{"", "Cher", []string{"cher", "cher2"}},
		{"Королёва-Преображенская-Вознесенская", "Анна", []string{"koroleva-preobrazhenskaya", "a.koroleva-preobrazhenskaya"}},
		{"李", "小龙", nil}, {"", "", nil}, {"--", " ", nil}, {"\xff", "\u202e", nil},
	} {
		got := proposals(c.surname, c.given)
		if len(c.want) == 0 && len(got) > 0 || len(got) < len(c.want) || !slices.Equal(got[:len(c.want)], c.want) {
			t.Errorf("%q %q has %q, want %q", c.surname, c.given, got, c.want)
		}
		for _, login := range got {
			if checkLogin(login) != nil || strings.ContainsAny(login, " \u202e") {
				t.Errorf("%q is no login", login)
			}
		}
	}
	if got := latin(strings.Repeat("щ", 1<<20)); len(got) > mostProposed {
		t.Errorf("a login of %d characters", len(got))
	}
}
