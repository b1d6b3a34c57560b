// SPDX-License-Identifier: Apache-2.0

package zip

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the reason for which an archive is refused.
type Kind int

// The kinds of Error.
const (
	// Damaged: the archive is broken, cut off, or two programs could read it differently.
	Damaged Kind = iota
	// Encrypted: an entry is encrypted (4.4.4, bits 0, 6 and 13).
	Encrypted
	// Unsupported: an entry has another compression method than Store and Deflate.
	Unsupported
	// TooLarge: the archive exceeds a limit of this package, or an entry exceeds the limit of the caller.
	TooLarge
)

// Error reports that an archive, or an entry of it, is refused.
type Error struct {
	Kind Kind
	// Entry is the name of the entry, "" if the whole archive is meant. It is as the archive has
	// it and may be any bytes.
	Entry string
	// Text says what is wrong, with the entry quoted. A format puts it into an error of its own:
	// after "the archive is damaged or ambiguous: " if Kind is Damaged. Otherwise it is a
	// sentence about an entry or, without a subject, about the archive.
	Text string
}

// Error returns one sentence after "zip: ".
func (e *Error) Error() string {
	switch {
	case e.Kind == Damaged:
		return "zip: the archive is damaged or ambiguous: " + e.Text
	case e.Entry == "":
		return "zip: the archive " + e.Text
	}
	return "zip: " + e.Text
}

// damaged returns the error of an archive that is broken or ambiguous.
func damaged(entry, format string, args ...any) error {
	return &Error{Kind: Damaged, Entry: entry, Text: fmt.Sprintf(format, args...)}
}

// refused returns an error of another kind.
func refused(kind Kind, entry, format string, args ...any) error {
	return &Error{Kind: kind, Entry: entry, Text: fmt.Sprintf(format, args...)}
}

func readError(err error) error { return fmt.Errorf("zip: reading the archive: %w", err) }

// quote quotes a text from outside and truncates it, so that an error stays on one line.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}
