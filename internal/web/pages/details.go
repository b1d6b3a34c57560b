// SPDX-License-Identifier: Apache-2.0

package pages

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// The messages of faults, and what signatures cover, are in English, as the interface has them.
// details/ru.txt has what people meet on pages in Russian, one in a line: "message = text". %d,
// %s and other values of a message are %s in the text, in the same order. Values that are lists
// of messages are in Russian, too. A message without a line is shown as it is and marked as
// English: the sentence before it is in the language of the reader.
//
// details/en.txt has texts for the messages that name a field of the interface, which a page does
// not have. Any other message is its own text in English.
var (
	//go:embed details/ru.txt
	detailsRU string
	//go:embed details/en.txt
	detailsEN string
)

// detail is a message of faults in another language.
type detail struct {
	message *regexp.Regexp
	text    string
}

// values are the places of values in a message.
var values = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

// details are those of detailsRU and of detailsEN: those without values by message, and the
// others.
var (
	inRussian = sync.OnceValues(func() (map[string]string, []detail) { return readDetails("ru", detailsRU) })
	inEnglish = sync.OnceValues(func() (map[string]string, []detail) { return readDetails("en", detailsEN) })
)

func readDetails(language, lines string) (map[string]string, []detail) {
	plain, varying := map[string]string{}, []detail{}
	for line := range strings.Lines(lines) {
		message, text, ok := strings.Cut(strings.TrimSpace(line), " = ")
		switch {
		case !ok:
			panic("pages: details/" + language + ".txt: no text in the line " + line)
		case !values.MatchString(message):
			plain[message] = text
		default:
			parts := values.Split(message, -1)
			for i := range parts {
				parts[i] = regexp.QuoteMeta(parts[i])
			}
			varying = append(varying, detail{regexp.MustCompile(`(?s)^` + strings.Join(parts, "(.*?)") + `$`), text})
		}
	}
	return plain, varying
}

// maxDetail is the length of the longest message that is compared, in bytes.
const maxDetail = 2048

// own returns the message of a fault in the language of the reader, "" if there is none.
func (w *words) own(message string) string {
	none, details := "", inRussian
	if w.language == "en" {
		none, details = message, inEnglish
	}
	if len(message) > maxDetail {
		return none
	}
	if why, ok := strings.CutPrefix(message, stockFault); ok && w.language == "ru" {
		return w.ownStock(why)
	}
	plain, varying := details()
	parts := []string{message}
	if all := strings.Split(message, "; "); !slices.ContainsFunc(all, func(part string) bool { return !componentFault.MatchString(part) }) {
		parts = all
	}
	for i, part := range parts {
		text := w.match(plain, varying, part)
		if text == "" {
			return none
		}
		parts[i] = componentFault.ReplaceAllString(text, "$1: ")
	}
	return strings.Join(parts, " ")
}

// componentFault begins what is wrong with a component of a distinguished name. A message about
// several components has it for each, with semicolons between them. People know a component by its name without the number.
var componentFault = regexp.MustCompile(`^([^;:]+) \(\d+\): `)

// match returns the text of a message, "" if it has none.
func (w *words) match(plain map[string]string, varying []detail, message string) string {
	if text, ok := plain[message]; ok {
		return text
	}
	for _, d := range varying {
		if m := d.message.FindStringSubmatch(message); m != nil {
			given := make([]any, strings.Count(d.text, "%s"))
			for i := range given {
				given[i] = w.listed(plain, m[i+1])
			}
			return fmt.Sprintf(d.text, given...)
		}
	}
	return ""
}

// listed returns a list of messages without values in another language, a time as pages show
// times, and a text in quotation marks with those of the language. Anything else stays.
func (w *words) listed(plain map[string]string, list string) string {
	if inner, ok := strings.CutPrefix(list, `"`); ok && strings.HasSuffix(inner, `"`) && w.language == "ru" {
		return "«" + strings.TrimSuffix(inner, `"`) + "»"
	}
	for _, layout := range []string{time.RFC3339, time.DateTime + " UTC"} {
		if t, err := time.Parse(layout, list); err == nil {
			return w.when(t)
		}
	}
	elements := strings.Split(list, ", ")
	for i, e := range elements {
		text, ok := plain[e]
		if !ok {
			return list
		}
		elements[i] = text
	}
	return strings.Join(elements, ", ")
}
