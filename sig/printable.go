package sig

import (
	"strings"
	"unicode"
)

// Printable returns a text of a document in a form that is fit for a report: at most most
// runes and "..." in place of the rest, and "?" for runes that do not show.
func Printable(text string, most int) string {
	var b strings.Builder
	for _, r := range text {
		if most--; most < 0 {
			return b.String() + "..."
		}
		if !unicode.IsPrint(r) {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}
