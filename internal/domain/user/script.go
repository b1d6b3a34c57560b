// SPDX-License-Identifier: Apache-2.0

package user

import (
	"slices"
	"strings"
	"unicode"

	"tamga/internal/domain/fault"
)

// scripts has the scripts that a login may use: those that Unicode recommends for
// identifiers (UAX #31, table 5).
var scripts = map[string]*unicode.RangeTable{
	"Arabic": unicode.Arabic, "Armenian": unicode.Armenian, "Bengali": unicode.Bengali, "Bopomofo": unicode.Bopomofo,
	"Cyrillic": unicode.Cyrillic, "Devanagari": unicode.Devanagari, "Ethiopic": unicode.Ethiopic, "Georgian": unicode.Georgian,
	"Greek": unicode.Greek, "Gujarati": unicode.Gujarati, "Gurmukhi": unicode.Gurmukhi, "Han": unicode.Han, "Hangul": unicode.Hangul,
	"Hebrew": unicode.Hebrew, "Hiragana": unicode.Hiragana, "Kannada": unicode.Kannada, "Katakana": unicode.Katakana,
	"Khmer": unicode.Khmer, "Lao": unicode.Lao, "Latin": unicode.Latin, "Malayalam": unicode.Malayalam, "Myanmar": unicode.Myanmar,
	"Oriya": unicode.Oriya, "Sinhala": unicode.Sinhala, "Tamil": unicode.Tamil, "Telugu": unicode.Telugu, "Thaana": unicode.Thaana,
	"Thai": unicode.Thai, "Tibetan": unicode.Tibetan,
}

// writtenTogether are the scripts of one language (UTS #39, 5.1).
var writtenTogether = [][]string{{"Han", "Hiragana", "Katakana"}, {"Bopomofo", "Han"}, {"Han", "Hangul"}}

// scriptOf returns the name of a character's script: "" for one that all scripts share,
// such as a digit; ok is false for a script that logins may not use.
func scriptOf(r rune) (name string, ok bool) {
	if r < unicode.MaxASCII && !unicode.IsLetter(r) || unicode.In(r, unicode.Common, unicode.Inherited) {
		return "", true
	}
	for name, table := range scripts {
		if unicode.Is(table, r) {
			return name, true
		}
	}
	return "", false
}

// checkScript refuses a login of more than one script: its letters may look like those of
// another login (UTS #39, 5.1). The fault is invalid_parameters.
func checkScript(login string) error {
	var have []string
	for _, r := range FoldLogin(login) {
		name, ok := scriptOf(r)
		if !ok {
			return fault.Newf(fault.InvalidParameters, "login: character U+%04X is of a script that logins are not written in; choose Latin, Cyrillic or another script of today", r)
		}
		if name != "" && !slices.Contains(have, name) {
			have = append(have, name)
		}
	}
	slices.Sort(have)
	if len(have) < 2 || slices.ContainsFunc(writtenTogether, func(set []string) bool {
		return !slices.ContainsFunc(have, func(name string) bool { return !slices.Contains(set, name) })
	}) {
		return nil
	}
	return fault.Newf(fault.InvalidParameters, "login: it mixes letters of %s, which look alike; write it in one script", strings.Join(have, " and "))
}

// The letters of today's Latin, Cyrillic, Greek and Armenian that look alike: those with
// one prototype in confusables.txt of Unicode Technical Standard #39 (data of 10.0.0),
// small and capital. Of several letters of a script the first one is the usual one.
const (
	smallLooks   = "aаα cсϲ dԁ eеҽ fք gց hһհ iіӏι jј nոռ oоοσօ pрρ qԛգզ rг sѕ uυս vѵν wѡԝա xх yуүγ δծ κк пπ тτ фφ єε ѱψ"
	capitalLooks = "AАΑ BВΒ CСϹ EЕΕ GԌ HНΗ IІӀΙ JЈ KКΚ MМΜ NΝ OОΟՕ PРΡ SЅՏ TТΤ UՍ VѴ WԜ XХΧ YУҮΥ ZΖ ГΓ ЛΛ ПΠ ФΦՓ ѰΨ"
)

// looks returns the letter of a script that a letter looks like.
type looks map[rune]map[string]rune

var smallLook, capitalLook = readLooks(smallLooks), readLooks(capitalLooks)

func readLooks(classes string) looks {
	l := looks{}
	for class := range strings.FieldsSeq(classes) {
		usual := map[string]rune{}
		for _, r := range class {
			if name, _ := scriptOf(r); usual[name] == 0 {
				usual[name] = r
			}
			l[r] = usual
		}
	}
	return l
}

// lookAlikes returns the folded logins in other scripts that look the same as a login in
// small letters, in capitals, or with capitals at the beginning of words: whole-script
// confusables (UTS #39, 4.1). There are at most 18.
func lookAlikes(login string) []string {
	var list []string
	// Folding changes a lunate sigma, but people see the login before folding.
	shown, folded := strings.ToLower(login), FoldLogin(login)
	for _, script := range []string{"Latin", "Cyrillic", "Greek", "Armenian"} {
		for _, capital := range []func(first bool) bool{
			func(bool) bool { return false }, func(bool) bool { return true }, func(first bool) bool { return first },
		} {
			for _, text := range []string{shown, folded} {
				if other, ok := rewrite(text, script, capital); ok && !slices.Contains(list, other) {
					list = append(list, other)
				}
			}
		}
	}
	return list
}

// rewrite returns a login in small letters with the look-alikes of another script,
// folded. It reports false if the login has no letters or one has no look-alike.
func rewrite(login, script string, capital func(first bool) bool) (string, bool) {
	var text strings.Builder
	letters, first := false, true
	for _, r := range login {
		name, _ := scriptOf(r)
		if name == "" {
			text.WriteRune(r)
			first = true
			continue
		}
		look := smallLook
		if capital(first) {
			r, look = unicode.ToUpper(r), capitalLook
		}
		other := look[r][script]
		if other == 0 || name == script {
			return "", false
		}
		text.WriteRune(other)
		letters, first = true, false
	}
	return FoldLogin(text.String()), letters
}
