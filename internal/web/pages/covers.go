// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"regexp"
	"strings"
)

// maxCovers is the length of the longest text about what a signature covers that is put into
// another language, in bytes.
const maxCovers = 16 << 10

var (
	// xmlPart is the beginning of each part of what an XML signature covers. The parts are
	// separated by semicolons.
	xmlPart = regexp.MustCompile(`^(?:the whole document, root element |element |nothing by URI=)`)
	// restricted is a part of which the signature covers less.
	restricted = regexp.MustCompile(`(?s)^(.*) \(([^()]*)\)$`)
)

// covers returns what a signature covers in the language of the reader, "" if it is not known
// there.
func (w *words) covers(text string) string {
	if w.language == "en" || !xmlPart.MatchString(text) {
		return w.own(text)
	}
	if len(text) > maxCovers {
		return ""
	}
	parts := strings.Split(text, "; ")
	for i, part := range parts {
		var less []string
		if m := restricted.FindStringSubmatch(part); m != nil {
			part, less = m[1], strings.Split(m[2], ", ")
		}
		if !xmlPart.MatchString(part) {
			return "" // a semicolon of a name
		}
		if parts[i] = w.own(part); parts[i] == "" {
			return ""
		}
		for n := range less {
			if less[n] = w.own(less[n]); less[n] == "" {
				return ""
			}
		}
		if less != nil {
			parts[i] += " (" + strings.Join(less, ", ") + ")"
		}
	}
	return strings.Join(parts, "; ")
}
