package cli

import (
	"tamga/sig"
)

// Printable returns text from outside for a terminal: without control characters, which
// could rewrite the screen, and without those that turn the direction of writing.
func Printable(s string) string { return sig.Printable(s, 4096, '\uFFFD') }
