// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

// TestHarmless checks texts with words of the command line: a word cannot begin a line, and nothing rewrites the
// screen.
func TestHarmless(t *testing.T) {
	const name = "x\x1b[2J\nSignature: passed"
	const clean = "x\ufffd[2J\ufffdSignature: passed"
	args := []string{"sign", name, "--out=" + name, "plain"}
	for text, want := range map[string]string{
		"open " + name + ": no such file":          "open " + clean + ": no such file",
		"--out=" + name + "\nand\tmore":            "--out=" + clean + "\nand\tmore",
		"cannot read \x07other\u202e\nsecond line": "cannot read \ufffdother\ufffd\nsecond line",
		"plain, с\u00a0текстом":                    "plain, с\u00a0текстом",
	} {
		if got := Harmless(text, args); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	c := &Console{Args: args}
	if got := c.Text("Key is in %s.\nNext line\n", name); got != "Key is in "+clean+".\nNext line\n" {
		t.Errorf("%q", got)
	}
}
