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

// checkName refuses what a person could not tell apart from something else or
// would not see: control, format and unassigned characters, unusual spaces,
// spaces at the ends.
func checkName(field, s string, shortest, longest int) error {
	n := utf8.RuneCountInString(s)
	if n < shortest || n > longest || !utf8.ValidString(s) {
		return fault.Newf(fault.InvalidParameters, "%s: want %d to %d characters of UTF-8", field, shortest, longest)
	}
	for _, r := range s {
		if r == unicode.ReplacementChar {
			// What a reader makes of a text in another encoding: all such names of one
			// length would be the same.
			return fault.Newf(fault.InvalidParameters, "%s: want UTF-8, there are octets of another encoding in it", field)
		}
		if !unicode.IsPrint(r) {
			return fault.Newf(fault.InvalidParameters, "%s: character U+%04X is not allowed, want letters, digits, punctuation and plain spaces", field, r)
		}
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

// FoldIssuer is the form in which names of identity providers are compared.
func FoldIssuer(issuer string) string { return foldText(issuer) }

// FoldLogin is the form in which logins are compared: compatibility-composed
// (NFKC) and without letter case, so that one name typed on two keyboards is
// one login. A text too long to be a login comes back as it is; it matches
// nobody.
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

// foldRune picks the smallest of the characters that differ in letter case
// only, and of those the lower-case one where Unicode knows a simple pair, so
// that the stored form reads well.
func foldRune(r rune) rune {
	smallest := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		smallest = min(smallest, o)
	}
	return unicode.ToLower(smallest)
}
