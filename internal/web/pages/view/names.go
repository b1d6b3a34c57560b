// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"tamga/internal/domain/notify"
	"tamga/internal/domain/signing"
)

// PersonIn returns the common name in a distinguished name, with its organisation in brackets. The
// name is in the form of RFC 4514. A name without exactly one common name is returned whole: no part
// of it says who that is.
func PersonIn(name string) string {
	commons, organisations := partsOf(name, "CN"), partsOf(name, "O")
	if len(commons) != 1 || notify.OneLine(commons[0]) == "" {
		return Visible(name)
	}
	person := notify.OneLine(commons[0])
	if len(organisations) == 1 && organisations[0] != commons[0] {
		if of := notify.OneLine(organisations[0]); of != "" {
			person += " (" + of + ")"
		}
	}
	return person
}

// NameIn returns the common name in a distinguished name, or the whole name as PersonIn does.
func NameIn(name string) string {
	if commons := partsOf(name, "CN"); len(commons) == 1 && notify.OneLine(commons[0]) != "" {
		return Visible(notify.OneLine(commons[0]))
	}
	return PersonIn(name)
}

// RolesIn returns the organisation and the position in a distinguished name.
func RolesIn(name string) string {
	common := partsOf(name, "CN")
	var roles []string
	for _, attribute := range []string{"O", "T"} {
		if parts := partsOf(name, attribute); len(parts) == 1 && !slices.Equal(parts, common) {
			if text := notify.OneLine(parts[0]); text != "" {
				roles = append(roles, Visible(text))
			}
		}
	}
	return strings.Join(roles, ", ")
}

// Visible replaces the characters of an untrusted text that are not seen, or that change how others
// are seen, by their numbers, such as [U+202E]. Nothing else of the text is changed.
func Visible(text string) string {
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

// hidden reports whether [Visible] replaces a character. Line breaks are seen.
func hidden(r rune) bool {
	if ' ' <= r && r <= '~' || 'Ѐ' <= r && r <= 'ӿ' { // nearly all there are: a list has thousands
		return false
	}
	return !strings.ContainsRune("\n\r\t", r) && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co))
}

// KindIn returns the ending of the name of a file for a sign of its kind, "" for none.
func KindIn(name string) string {
	ending := strings.TrimPrefix(path.Ext(name), ".")
	if len(ending) > 5 || strings.ContainsFunc(ending, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return ""
	}
	return strings.ToUpper(ending)
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

// Algorithm returns what the algorithm of a report is called: its name itself unless a suite has it.
func (w *Words) Algorithm(name string) string {
	if of := signing.SuiteOf(name); of != "" {
		return w.Suite(of)
	}
	return name
}

// Suite returns what the suite of a key is called, "" for a key without one.
func (w *Words) Suite(name string) string {
	if text, ok := w.texts["suite."+name]; ok {
		return text
	}
	return name
}
