// SPDX-License-Identifier: Apache-2.0

package pages

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// details/stock.txt has what is wrong with a file of tokens, see package stock, in the form of
// details/ru.txt.
//
//go:embed details/stock.txt
var detailsStock string

var stockInRussian = sync.OnceValues(func() (map[string]string, []detail) { return readDetails("stock", detailsStock) })

// stockFault begins the message about a file of tokens. A fault of each token follows, with
// semicolons between them.
const stockFault = "the tokens cannot be read: "

// stockPlace is where in the file a fault is.
var stockPlace = regexp.MustCompile(`^(line|key package) (\d+)( \([^()]*\))?: `)

// ownStock returns what is wrong with a file of tokens in Russian. A fault without a text in Russian
// stays in English, and says so.
func (w *words) ownStock(message string) string {
	plain, varying := stockInRussian()
	var faults []string
	for why := range strings.SplitSeq(message, "; ") {
		place := ""
		if m := stockPlace.FindStringSubmatch(why); m != nil {
			place = map[string]string{"line": "строка ", "key package": "пакет ключа "}[m[1]] + m[2] + m[3] + ": "
			why = why[len(m[0]):]
		}
		text := w.match(plain, varying, why)
		if text == "" {
			text = "(по-английски) " + why
		}
		faults = append(faults, place+text)
	}
	return "Файл не читается: " + strings.Join(faults, "; ") + "."
}
