// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

func TestPersonOf(t *testing.T) {
	t.Parallel()
	names := func(uid string) string { return map[string]string{"1000": "ivan", "0": "root", "110": "tamga"}[uid] }
	for _, c := range []struct {
		login string
		uid   int
		sudo  string
		want  string
	}{
		{"1000", 0, "", "ivan"},
		{"1000", 110, "ivan", "ivan"},
		{"1000", 0, "petr", "ivan, SUDO_USER petr"}, // the variable is no proof
		{"", 0, "petr\x1b[2J", "SUDO_USER petr\uFFFD[2J"},
		{noLogin, 110, "", "tamga"},
		{"", -1, "", ""},
	} {
		if got := personOf(c.login, c.uid, c.sudo, names); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
