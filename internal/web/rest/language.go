// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"slices"

	"golang.org/x/text/language"
)

// Languages are the languages of texts for people, as in messages.language.
var Languages = []string{"ru", "en"}

// maxWish is the longest wish for a language that is read, in bytes. Browsers send far less.
const maxWish = 256

// maxWishes is the number of wishes before the header that are read.
const maxWishes = 8

// matchers find a language for a reader, by the language of the installation, which is theirs who
// want none that we have.
var matchers = func() map[string]language.Matcher {
	all := map[string]language.Matcher{}
	for _, own := range Languages {
		tags := []language.Tag{language.MustParse(own)}
		for _, other := range Languages {
			if other != own {
				tags = append(tags, language.MustParse(other))
			}
		}
		all[own] = language.NewMatcher(tags)
	}
	return all
}()

// LanguageFor decides the language of a text that a person will read: the first of wanted that we
// have, otherwise what accept, a header Accept-Language, prefers (RFC 9110, section 12.5.4), otherwise
// own, the language of the installation. wanted are tags of BCP 47 that the reader or the program
// chose. Every page, message in an answer and name for people asks this function. own that is none of
// Languages is Russian.
func LanguageFor(own, accept string, wanted ...string) string {
	if !slices.Contains(Languages, own) {
		own = Languages[0]
	}
	wishes := append(slices.Clone(wanted[:min(len(wanted), maxWishes)]), accept)
	wishes = slices.DeleteFunc(wishes, func(wish string) bool { return len(wish) > maxWish })
	tag, _ := language.MatchStrings(matchers[own], wishes...)
	base, _ := tag.Base()
	return base.String()
}
