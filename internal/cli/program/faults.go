// SPDX-License-Identifier: Apache-2.0

package program

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"tamga/internal/web/pages/view"
)

// The texts of faults of a configuration, of the files that it names and of the system, in Russian: "message = text" in a line, as in
// details/ru.txt of the pages. In a text %s is a value, and %v one that is a message too. What is before a message, such as the name of
// a setting or of a file, is not in the catalogue. A test finds what is missing.
//
//go:embed words/faults.ru.txt
var russianFaults string

var faultCatalogue = sync.OnceValue(func() *view.Catalogue { return view.ReadCatalogue("ru", russianFaults) })

// Bounds of messages that are compared.
const (
	maxFault   = 4 << 10 // bytes of a line
	faultDepth = 8       // messages in a message
)

var (
	// faultPlace is what may be before a message: the name of a setting, a flag, or a file.
	faultPlace = regexp.MustCompile(`^(?:--set \S+|[a-z_]+(?:\.[A-Za-z0-9_-]+|\[[0-9]+\])*|mail|sms|push|FCM|APNs|web|tls|\S*[./]\S*): `)
	masterKey  = regexp.MustCompile(`^master key ([^ :]+): `)
)

// faultIn returns the text of an error in Russian, line by line. What has no text there stays.
func faultIn(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if len(line) <= maxFault {
			lines[i] = russianFault(line, 0)
		}
	}
	return strings.Join(lines, "\n")
}

func russianFault(message string, depth int) string {
	if depth > faultDepth {
		return message
	}
	if wanted, is := strings.CutPrefix(message, "want "); is {
		if text, given, ok := faultCatalogue().Find(wanted); ok && given == nil {
			return "нужно " + strings.ReplaceAll(text, "%%", "%")
		}
	}
	if text, given, ok := faultCatalogue().Find(message); ok {
		values := make([]any, len(given))
		for i, v := range given {
			values[i] = v.Text
			if v.Message {
				values[i] = russianFault(v.Text, depth+1)
			}
		}
		return fmt.Sprintf(text, values...)
	}
	if m := masterKey.FindStringSubmatch(message); m != nil {
		return "мастер-ключ " + m[1] + ": " + russianFault(message[len(m[0]):], depth+1)
	}
	if place := faultPlace.FindString(message); place != "" {
		return place + russianFault(message[len(place):], depth+1)
	}
	return message
}
