// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"tamga/internal/domain/audit"
)

// Bounds of a proposed login.
const (
	mostProposed = 32 // characters of a name
	mostNumbered = 20 // logins with a number that are tried
)

// ProposeLogin returns a free login made of a surname and of given names, "" if none of the ones tried is free. Another
// registration may take it meanwhile. It reveals no more than [Service.CheckUnique]. Fault: access_denied.
func (s *Service) ProposeLogin(ctx context.Context, who audit.Principal, surname, given string) (string, error) {
	for _, login := range proposals(surname, given) {
		unique, err := s.CheckUnique(ctx, who, "", map[IdentifierType]string{Login: login})
		if err != nil {
			return "", err
		}
		if unique[Login].IsUnique {
			return login, nil
		}
	}
	return "", nil
}

// proposals returns logins for a name, the best first: lebedeva, o.lebedeva, o.n.lebedeva, lebedeva2.
func proposals(surname, given string) (list []string) {
	family := latin(surname)
	if family == "" {
		family, given = latin(given), ""
	}
	if family == "" {
		return nil
	}
	list = append(list, family)
	initials := ""
	for i, name := range strings.Fields(given) {
		if name = latin(name); name == "" || i == 2 { // longer ones are no help
			break
		}
		initials += name[:1] + "."
		list = append(list, initials+family)
	}
	for n := 2; n < 2+mostNumbered; n++ {
		list = append(list, family+strconv.Itoa(n))
	}
	return list
}

// latin returns the letters of a name in small Latin letters, with the hyphens between its parts. Letters of other writings
// are left out.
func latin(name string) string {
	name = name[:min(len(name), 1<<10)]
	var b strings.Builder
	for _, r := range strings.ToLower(norm.NFC.String(strings.ToValidUTF8(name, ""))) {
		text, known := letters[r]
		switch {
		case known:
		case r == '-' || r == ' ':
			text = "-"
		default:
			r = []rune(norm.NFD.String(string(r)))[0] // without its accents
			if text = letters[r]; 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
				text = string(r)
			}
		}
		if b.Len()+len(text) > mostProposed {
			if part := strings.LastIndexByte(b.String(), '-'); part > 0 { // the whole parts of a long name
				return b.String()[:part]
			}
			break
		}
		if text != "-" || b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteString(text)
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}

// letters have the Cyrillic letters as people write them in addresses, with the letters of the peoples of Russia.
var letters = map[rune]string{
	'а': "a", 'б': "b", 'в': "v", 'г': "g", 'д': "d", 'е': "e", 'ё': "e", 'ж': "zh", 'з': "z", 'и': "i", 'й': "y", 'к': "k", 'л': "l", 'м': "m", 'н': "n", 'о': "o",
	'п': "p", 'р': "r", 'с': "s", 'т': "t", 'у': "u", 'ф': "f", 'х': "kh", 'ц': "ts", 'ч': "ch", 'ш': "sh", 'щ': "shch", 'ъ': "", 'ы': "y", 'ь': "", 'э': "e", 'ю': "yu",
	'я': "ya", 'ә': "a", 'ө': "o", 'ү': "u", 'җ': "zh", 'ң': "n", 'һ': "h", 'ҥ': "n", 'ҕ': "g", 'ғ': "g", 'қ': "k", 'ҡ': "k", 'ҙ': "z", 'ҫ': "s", 'ӈ': "n", 'і': "i", 'ї': "i",
	'є': "e", 'ґ': "g", 'ў': "u", 'ӣ': "i", 'ӯ': "u", 'ß': "ss", 'ø': "o", 'ł': "l", 'æ': "ae", 'œ': "oe", 'đ': "d", 'ı': "i",
}
