// SPDX-License-Identifier: Apache-2.0

package user

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"tamga/internal/domain/fault"
)

// Limits of names, in characters.
const (
	MaxLogin       = 128
	MaxDisplayName = 255
	MaxGroup       = 64
)

// Unseen returns the first character of a name that people cannot see, or that changes how others
// are seen: control characters and line breaks, format characters such as those of the direction of
// writing (U+202E), unassigned ones, unusual spaces. It returns the replacement character for bytes
// of another encoding: all such names of one length would be equal. It is the rule for every name
// that is registered or certified.
func Unseen(s string) (r rune, found bool) {
	for _, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return r, true
		}
	}
	return 0, false
}

// CheckCharacters refuses a name with a character of Unseen. The fault is invalid_parameters and
// begins with field.
func CheckCharacters(field, s string) error {
	switch r, found := Unseen(s); {
	case !found:
		return nil
	case r == unicode.ReplacementChar:
		return fault.Newf(fault.InvalidParameters, "%s: want UTF-8, it contains bytes of another encoding", field)
	default:
		return fault.Newf(fault.InvalidParameters, "%s: character U+%04X is not allowed, want letters, digits, punctuation and plain spaces", field, r)
	}
}

// checkName refuses what cannot be a name: too short or too long, characters that
// CheckCharacters refuses, spaces at the ends.
func checkName(field, s string, shortest, longest int) error {
	n := utf8.RuneCountInString(s)
	if n < shortest || n > longest || !utf8.ValidString(s) {
		return fault.Newf(fault.InvalidParameters, "%s: want %d to %d characters of UTF-8", field, shortest, longest)
	}
	if err := CheckCharacters(field, s); err != nil {
		return err
	}
	if n > 0 && (s[0] == ' ' || s[len(s)-1] == ' ') {
		return fault.Newf(fault.InvalidParameters, "%s: want no space at the beginning or the end", field)
	}
	return nil
}

// checkLogin refuses what cannot be a login.
func checkLogin(login string) error {
	if err := checkName("login", login, 1, MaxLogin); err != nil {
		return err
	}
	if FoldLogin(login) == "" {
		return fault.New(fault.InvalidParameters, "login: want at least one visible character")
	}
	return nil
}

// FoldIssuer returns the form in which names of identity providers are compared.
func FoldIssuer(issuer string) string { return foldText(issuer) }

// FoldLogin returns the form in which logins are compared: compatibility-composed (NFKC)
// and without letter case, so that one name typed on two keyboards is one login. A text
// too long to be a login is returned unchanged. It matches no user.
func FoldLogin(login string) string {
	if len(login) > MaxLogin*utf8.UTFMax {
		return login
	}
	return foldText(login)
}

// foldText is FoldLogin for texts of any length.
func foldText(text string) string {
	folded := []rune(norm.NFKC.String(text))
	for i, r := range folded {
		folded[i] = foldRune(r)
	}
	return norm.NFKC.String(string(folded))
}

// foldRune maps the characters that differ only in letter case to one of them: the lower
// case of the smallest, so that the stored form is readable.
func foldRune(r rune) rune {
	smallest := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		smallest = min(smallest, o)
	}
	return unicode.ToLower(smallest)
}
