// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"unicode"

	"tamga/sig"
)

// Printable makes text from outside safe for a terminal. It replaces control characters, which could
// rewrite the screen, and characters that change the direction of writing. It cuts the text after 4096
// characters.
func Printable(s string) string { return sig.Printable(s, 4096, '\uFFFD') }

// Harmless makes a text safe for a terminal that may have words of the command line in it, and lines of its own: in
// those words it replaces what Printable does, line breaks too, and elsewhere everything but line breaks and tabs
// that could rewrite the screen or change the direction of writing.
func Harmless(text string, args []string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
			return '\uFFFD'
		}
		return r
	}, harmlessArgs(text, args))
}

// harmlessArgs makes the words of the command line in a text safe.
func harmlessArgs(text string, args []string) string {
	for _, word := range args {
		_, value, _ := strings.Cut(word, "=") // --flag=value
		for _, name := range []string{word, value} {
			if clean := Printable(name); clean != name {
				text = strings.ReplaceAll(text, name, clean)
			}
		}
	}
	return text
}
