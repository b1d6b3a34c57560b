// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/audit"
)

// audited returns the name of an operation in the audit log. The identifier of an operation that
// has no name, for example one of an earlier release, is returned itself.
func (w *words) audited(operation string) string {
	if text, ok := w.texts["audited."+operation]; ok {
		return text
	}
	return operation
}

// object returns what an entry is about. A certificate, a request and an operation have a word before
// their numbers.
func (w *words) object(text string) string {
	kind, number, ok := strings.Cut(text, " ")
	word, known := w.lookup("account.object." + kind)
	if !ok || !known {
		return text
	}
	if id, many, is := strings.Cut(number, ", "); is { // of a form that signs
		if n, err := strconv.Atoi(strings.TrimSuffix(many, " documents")); err == nil {
			number = id + ", " + w.count("account.documents", n)
		}
	}
	return word + " " + number
}

// family returns the ends of the keys that begin so, with their texts, by text.
func (w *words) family(beginning string) (list []option) {
	for key, text := range w.texts {
		if id, ok := strings.CutPrefix(key, beginning); ok {
			list = append(list, option{Value: id, Text: text})
		}
	}
	slices.SortFunc(list, func(x, y option) int {
		return cmp.Or(strings.Compare(x.Text, y.Text), strings.Compare(x.Value, y.Value))
	})
	return list
}

// outcome returns what an outcome means in a few words. The code of one without words, for example
// of an earlier release, is returned itself.
func (w *words) outcome(code string) string {
	return w.known("outcome."+strings.ReplaceAll(code, " ", "_"), code)
}

// remote returns where a request came from: an address, or a word for a command of this program.
func (w *words) remote(from string) string {
	if from == audit.CommandLine {
		return w.text("audit.command_line")
	}
	return from
}
