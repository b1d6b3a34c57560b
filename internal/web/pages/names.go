// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

// personIn returns the common name in a distinguished name, with its organisation in brackets. The
// name is in the form of RFC 4514. A name without exactly one common name is returned whole: no part
// of it says who that is.
func personIn(name string) string {
	commons, organisations := partsOf(name, "CN"), partsOf(name, "O")
	if len(commons) != 1 || notify.OneLine(commons[0]) == "" {
		return visible(name)
	}
	person := notify.OneLine(commons[0])
	if len(organisations) == 1 && organisations[0] != commons[0] {
		if of := notify.OneLine(organisations[0]); of != "" {
			person += " (" + of + ")"
		}
	}
	return person
}

// visible replaces the characters of an untrusted text that are not seen, or that change how others
// are seen, by their numbers, such as [U+202E]. Nothing else of the text is changed.
func visible(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "[%U]", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether [visible] replaces a character. Line breaks are seen.
func hidden(r rune) bool {
	if ' ' <= r && r <= '~' || 'Ѐ' <= r && r <= 'ӿ' { // nearly all there are: a list has thousands
		return false
	}
	return !strings.ContainsRune("\n\r\t", r) && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co))
}

// partsOf returns the values of an attribute of a name in the form of RFC 4514.
func partsOf(name, attribute string) []string {
	var values []string
	for name != "" {
		end := endOf(name)
		if key, value, ok := strings.Cut(name[:end], "="); ok && key == attribute {
			values = append(values, unescaped(value))
		}
		name = name[min(end+1, len(name)):]
	}
	return values
}

// endOf returns where the first attribute of a name ends.
func endOf(name string) int {
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '\\':
			i++
		case ',', '+':
			return i
		}
	}
	return len(name)
}

// unescaped returns a value without its escapes: \, or two hexadecimal digits.
func unescaped(value string) string {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '\\' || i+1 == len(value) {
			b.WriteByte(value[i])
			continue
		}
		if i+2 < len(value) {
			if pair, err := hex.DecodeString(value[i+1 : i+3]); err == nil {
				b.Write(pair)
				i += 2
				continue
			}
		}
		i++
		b.WriteByte(value[i])
	}
	return b.String()
}

// shortSerial returns the end of a long serial number: the beginnings of an authority's are often
// the same.
func shortSerial(serial string) string {
	const shown = 8
	if len(serial) <= shown+4 {
		return serial
	}
	return "…" + serial[len(serial)-shown:]
}

// suite returns what the suite of a key is called, "" for a key without one.
func (w *words) suite(name string) string {
	if text, ok := w.texts["suite."+name]; ok {
		return text
	}
	return name
}

// wayToSign returns a way to sign in words: a format that the pages have no words for says it itself.
func (w *words) wayToSign(f signing.Form) string {
	if text, ok := w.texts["format."+f.Name]; ok {
		return text
	}
	first, size := utf8.DecodeRuneInString(f.Noun)
	return string(unicode.ToUpper(first)) + f.Noun[size:]
}

// asIsField is the field of a form with which a person says that a value is right although it looks
// wrong.
const asIsField = "as_is"

// doubt is a fault about a value that looks wrong. The form is asked again with the box asIsField: with
// it, the value is taken as it is.
type doubt struct{ error }

func (d doubt) Unwrap() error { return d.error }

// asIs reports whether a form that err refuses has the box asIsField, and whether the box is ticked.
func asIs(err error, form rest.Form) (offered, ticked bool) {
	_, doubted := errors.AsType[doubt](err)
	ticked = form.Get(asIsField) != ""
	return doubted || ticked, ticked
}

// doubted turns a fault of numbers of a name into a doubt.
func (w *words) doubted(err error, components []user.Component) error {
	if _, wrong := fault.As(err); wrong {
		return doubt{w.inLabels(err, components)}
	}
	return err
}

// inLabels returns a fault about components of a name that calls them as the fields of the form.
func (w *words) inLabels(err error, components []user.Component) error {
	f, is := fault.As(err)
	if !is {
		return err
	}
	message := f.Message
	for i := range components {
		c := &components[i]
		number := " (" + strconv.Itoa(c.ID) + "): "
		label := c.NameIn(w.language) + number // that of a message with a text in details/ru.txt
		if w.language == "en" {
			label = c.NameIn(w.language) + ": "
		}
		message = strings.ReplaceAll(message, c.Name+number, label)
	}
	return fault.New(f.Code, message).With(err)
}
