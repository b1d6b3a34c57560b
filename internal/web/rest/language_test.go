// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"strings"
	"testing"
)

// TestLanguageOfTheInstallationIsTheDefault checks the language of readers who want none that we
// have, and that what they want comes first.
func TestLanguageOfTheInstallationIsTheDefault(t *testing.T) {
	for _, own := range Languages {
		for _, nothing := range []string{"", "*", "de", "fr-FR, de;q=0.5, *;q=0.1", "en;q=0, ru;q=0", "\x00", "..", strings.Repeat("x", 300), strings.Repeat("en,ru,", 60)} {
			if got := LanguageFor(own, nothing); got != own {
				t.Errorf("Accept-Language %q where the language is %s: %s", nothing, own, got)
			}
			if got := LanguageFor(own, "", nothing, "xx"); got != own {
				t.Errorf("wanted %q where the language is %s: %s", nothing, own, got)
			}
		}
		for accept, want := range map[string]string{
			"ru": "ru", "en": "en", "RU-ru": "ru", "en-GB,ru;q=0.5": "en", "ru;q=0.3, en;q=0.7": "en", "de, ru;q=0.2": "ru", "be, de": "ru",
		} {
			if got := LanguageFor(own, accept); got != want {
				t.Errorf("Accept-Language %q where the language is %s: %s, want %s", accept, own, got, want)
			}
		}
		for _, other := range Languages {
			if got := LanguageFor(own, own, "de", other); got != other {
				t.Errorf("wanted %s where the language is %s: %s", other, own, got)
			}
			if got := LanguageFor(other, "", strings.Split(strings.Repeat("de ", 8)+own, " ")...); got != other {
				t.Errorf("a ninth wish was read: %s", got)
			}
		}
	}
	if got := LanguageFor("", "de"); got != "ru" {
		t.Errorf("without a language of the installation: %s", got)
	}
}
