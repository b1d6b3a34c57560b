// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
)

// Audited returns the name of an operation in the audit log. The identifier of an operation that
// has no name, for example one of an earlier release, is returned itself.
func (w *Words) Audited(operation string) string {
	if text, ok := w.texts["audited."+operation]; ok {
		return text
	}
	return operation
}

// Object returns what an entry is about. A certificate, a request and an operation have a word before
// their numbers.
func (w *Words) Object(text string) string {
	kind, number, ok := strings.Cut(text, " ")
	word, known := w.Lookup("account.object." + kind)
	if !ok || !known {
		return text
	}
	if id, many, is := strings.Cut(number, ", "); is { // of a form that signs
		if n, err := strconv.Atoi(strings.TrimSuffix(many, " documents")); err == nil {
			number = id + ", " + w.Count("account.documents", n)
		}
	}
	return word + " " + number
}

// Looks reports whether an operation only looks at something or is a step of another one, so that
// it is not in a history of acts.
func Looks(operation string) bool {
	for _, prefix := range []string{"Get", "List", "Show", "Download", "Read", "Preview"} {
		if strings.HasPrefix(operation, prefix) {
			return true
		}
	}
	switch operation {
	case "Authorize", "UserInfo", "CheckDistinguishedNameUnique", "CheckEmailUnique", "CheckIdentifiersUnique", "CheckPhoneUnique", "ConfirmPages", "FollowByPage", "FindRecipients", "ProposeLogin", signing.AuditSignature:
		return true
	}
	return strings.HasSuffix(operation, "Page") && !strings.HasSuffix(operation, "ByPage")
}

// Family returns the ends of the keys that begin so, with their texts, by text.
func (w *Words) Family(beginning string) (list []Option) {
	for key, text := range w.texts {
		if id, ok := strings.CutPrefix(key, beginning); ok {
			list = append(list, Option{Value: id, Text: text})
		}
	}
	slices.SortFunc(list, func(x, y Option) int {
		return cmp.Or(strings.Compare(x.Text, y.Text), strings.Compare(x.Value, y.Value))
	})
	return list
}

// Outcome returns what an outcome means in a few words. The code of one without words, for example
// of an earlier release, is returned itself.
func (w *Words) Outcome(code string) string {
	return w.TextOr("outcome."+strings.ReplaceAll(code, " ", "_"), code)
}

// Remote returns where a request came from: an address, or a word for a command of this program.
func (w *Words) Remote(from string) string {
	if from == audit.CommandLine {
		return w.Text("audit.command_line")
	}
	return from
}
