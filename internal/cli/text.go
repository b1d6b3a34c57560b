// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"tamga/sig"
)

// Printable makes text from outside safe for a terminal. It replaces control characters, which could
// rewrite the screen, and characters that change the direction of writing. It cuts the text after 4096
// characters.
func Printable(s string) string { return sig.Printable(s, 4096, '\uFFFD') }
