// SPDX-License-Identifier: Apache-2.0

package view

import (
	_ "embed" // for the texts
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// The messages of faults, and what signatures cover, are in English, as the interface has them.
// details/ru.txt has what people meet on pages in Russian, one in a line: "message = text". %d in
// a message is a number, and %s and others are any text. In the text they are %s, in the same
// order, or %v for a value that is messages with semicolons between them. A message without a line
// is shown as it is and marked as English: the sentence before it is in the language of the reader.
// Decision 0047 says why the messages are the keys.
//
// details/en.txt has texts for the messages that name a field of the interface, which a page does
// not have. Any other message is its own text in English.
var (
	//go:embed details/ru.txt
	detailsRU string
	//go:embed details/en.txt
	detailsEN string
)

// detail is a message with values in another language.
type detail struct {
	message *regexp.Regexp
	text    string
	fixed   int // bytes of the message beside its values
}

// values are the places of values in a message, also in one that QuoteMeta has changed.
var values = regexp.MustCompile(`%[-+#0-9.\\]*[a-zA-Z]`)

// details are those without values by message, and the others, the most exact ones first.
type details struct {
	plain   map[string]string
	varying []detail
}

var (
	inRussian = sync.OnceValue(func() *details { return readDetails("ru", detailsRU) })
	inEnglish = sync.OnceValue(func() *details { return readDetails("en", detailsEN) })
)

func readDetails(language, lines string) *details {
	all := &details{plain: map[string]string{}}
	for line := range strings.Lines(lines) {
		message, text, ok := strings.Cut(strings.TrimSpace(line), " = ")
		switch {
		case !ok:
			panic("pages: details/" + language + ".txt: no text in the line " + line)
		case !values.MatchString(message):
			all.plain[message] = text
		default:
			pattern := values.ReplaceAllStringFunc(regexp.QuoteMeta(message), func(value string) string {
				if value == "%d" {
					return `(-?\d+)`
				}
				return "(.*?)"
			})
			all.varying = append(all.varying, detail{regexp.MustCompile("(?s)^" + pattern + "$"), text, len(values.ReplaceAllString(message, ""))})
		}
	}
	slices.SortStableFunc(all.varying, func(a, b detail) int { return b.fixed - a.fixed })
	return all
}

// Bounds of messages that are compared.
const (
	maxDetail = 16 << 10 // bytes
	maxPart   = 2 << 10  // bytes of each part
	maxDepth  = 2        // messages in a message
)

var (
	// listed begins each part of a message about components of a distinguished name, or about what a
	// signature of XML covers. Semicolons are between the parts.
	listed = regexp.MustCompile(`^(?:[^;:]+ \(\d+\): |the whole document, root element |element |nothing by URI=)`)
	// component begins a text about a component. People know it by its name without the number.
	component = regexp.MustCompile(`^([^;:]+) \(\d+\): `)
)

// Own returns a message in the language of the reader, "" if it has no text there.
func (w *Words) Own(message string) string {
	none, known := "", inRussian
	if w.Language == "en" {
		none, known = message, inEnglish
	}
	if len(message) > maxDetail {
		return none
	}
	parts := []string{message}
	if listed.MatchString(message) {
		parts = strings.Split(message, "; ")
	}
	for i, part := range parts {
		text := w.match(known(), part, 0)
		if text == "" || i > 0 && !listed.MatchString(part) {
			return none
		}
		parts[i] = component.ReplaceAllString(text, "$1: ")
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), ".; ", ". ")
}

// match returns the text of a message, "" if it has none.
func (w *Words) match(known *details, message string, depth int) string {
	if text, ok := known.plain[message]; ok || len(message) > maxPart {
		return text
	}
	text, found, ok := known.find(message)
	if !ok {
		return ""
	}
	given := make([]any, len(found))
	for i, v := range found {
		value := w.value(known.plain, v.Text)
		if v.Message && depth < maxDepth {
			value = w.messages(known, v.Text, depth+1)
		}
		given[i] = value
	}
	return fmt.Sprintf(text, given...)
}

// Value is a value of a message.
type Value struct {
	Text    string
	Message bool // it is a message, or several
}

// find returns the text of a message with values, and these in the order of the text.
func (d *details) find(message string) (text string, given []Value, ok bool) {
	for _, one := range d.varying {
		if m := one.message.FindStringSubmatch(message); m != nil {
			for i, verb := range values.FindAllString(one.text, -1) {
				given = append(given, Value{m[i+1], verb == "%v"})
			}
			return one.text, given, true
		}
	}
	return "", nil, false
}

// Catalogue has texts of messages in another language, in the form of the details of pages.
type Catalogue struct{ known *details }

// ReadCatalogue reads the lines of a catalogue. It panics if a line has no text: this is a programming error.
func ReadCatalogue(language, lines string) *Catalogue {
	return &Catalogue{readDetails(language, lines)}
}

// Find returns the text of a message, for [fmt.Sprintf], and its values in the order of the text.
func (c *Catalogue) Find(message string) (text string, given []Value, ok bool) {
	if text, ok := c.known.plain[message]; ok {
		return strings.ReplaceAll(text, "%", "%%"), nil, true
	}
	return c.known.find(message)
}

// messages returns messages with semicolons between them, each in another language as a part of
// a sentence. One without a text says that it is in English.
func (w *Words) messages(known *details, list string, depth int) string {
	parts := strings.Split(list, "; ")
	for i, part := range parts {
		text := w.match(known, part, depth)
		if text == "" {
			text = "(по-английски) " + part
		}
		first, size := utf8.DecodeRuneInString(text)
		parts[i] = string(unicode.ToLower(first)) + strings.TrimSuffix(text[size:], ".")
	}
	return strings.Join(parts, "; ")
}

// value returns a list of messages without values in another language, a time as pages show
// times, and a text in quotation marks with those of the language. Anything else stays.
func (w *Words) value(plain map[string]string, list string) string {
	if inner, ok := strings.CutPrefix(list, `"`); ok && strings.HasSuffix(inner, `"`) && w.Language == "ru" {
		return "«" + strings.TrimSuffix(inner, `"`) + "»"
	}
	for _, layout := range []string{time.RFC3339, time.DateTime + " UTC"} {
		if t, err := time.Parse(layout, list); err == nil {
			return w.When(t)
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
