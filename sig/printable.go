// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"strings"
	"unicode"
)

// Printable returns a text from outside in a form that is fit for a report or a terminal: at
// most most runes and "..." in place of the rest, and instead for each rune that does not
// show, such as a control character or a change of the direction of writing.
func Printable(text string, most int, instead rune) string {
	var b strings.Builder
	for _, r := range text {
		if most--; most < 0 {
			return b.String() + "..."
		}
		if !unicode.IsPrint(r) {
			r = instead
		}
		b.WriteRune(r)
	}
	return b.String()
}
