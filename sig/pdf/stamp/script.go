// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"slices"
	"strings"
	"unicode"
)

// script is a script whose letters the faces lack, with its name in each language.
type script struct {
	tables []*unicode.RangeTable
	ru, en string
}

// scripts are the ones that are named. Letters of others are "other".
var scripts = []script{
	{[]*unicode.RangeTable{unicode.Arabic}, "арабские", "Arabic"},
	{[]*unicode.RangeTable{unicode.Armenian}, "армянские", "Armenian"},
	{[]*unicode.RangeTable{unicode.Bengali}, "бенгальские", "Bengali"},
	{[]*unicode.RangeTable{unicode.Devanagari}, "индийские", "Devanagari"},
	{[]*unicode.RangeTable{unicode.Ethiopic}, "эфиопские", "Ethiopic"},
	{[]*unicode.RangeTable{unicode.Georgian}, "грузинские", "Georgian"},
	{[]*unicode.RangeTable{unicode.Han}, "китайские", "Chinese"},
	{[]*unicode.RangeTable{unicode.Hangul}, "корейские", "Korean"},
	{[]*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}, "японские", "Japanese"},
	{[]*unicode.RangeTable{unicode.Mongolian}, "монгольские", "Mongolian"},
	{[]*unicode.RangeTable{unicode.Tamil}, "тамильские", "Tamil"},
	{[]*unicode.RangeTable{unicode.Thai}, "тайские", "Thai"},
}

var otherScript = script{nil, "другие", "other"}

// Explained returns a text, and behind it which letters the faces lack, in Russian or in English ("en"): they are drawn as
// boxes. The letters stay, so that programs find and copy the name as the certificate has it.
func Explained(text, language string) string {
	regular := faceOf(sans, false, false)
	var names []string
	for _, r := range bounded(text) {
		if !unicode.IsLetter(r) || regular.shows(r)[0] != missing {
			continue
		}
		s := otherScript
		if i := slices.IndexFunc(scripts, func(s script) bool { return unicode.In(r, s.tables...) }); i >= 0 {
			s = scripts[i]
		}
		name := s.ru
		if language == "en" {
			name = s.en
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		return text
	case language == "en":
		return text + " [" + strings.Join(names, ", ") + " letters]"
	}
	return text + " [буквы " + strings.Join(names, ", ") + "]"
}
