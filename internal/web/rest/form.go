// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"maps"
	"slices"
	"strings"
)

// Form holds the parameters of a form body or of a query. As the type of a Body it is the
// form of a POST and the query of a GET.
//
// It is read leniently and Content-Type is ignored: clients send raw colons and slashes,
// text/plain, or no type at all.
type Form map[string][]string

// Get returns the first value of a parameter, "" if it is missing.
func (f Form) Get(name string) string {
	if v := f[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Fold is Get that ignores letter case if the exact name is missing.
func (f Form) Fold(name string) string {
	if v, ok := f[name]; ok {
		return v[0]
	}
	for _, other := range slices.Sorted(maps.Keys(f)) {
		if strings.EqualFold(other, name) {
			return f[other][0]
		}
	}
	return ""
}

// parseForm reads name=value pairs. A percent sign that begins no escape is a percent sign.
// A plus sign is a space.
func parseForm(s string) Form {
	f := Form{}
	for pair := range strings.SplitSeq(strings.TrimSpace(s), "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name = DecodeForm(name)
		f[name] = append(f[name], DecodeForm(value))
	}
	return f
}

// DecodeForm decodes one name or value of a form, leniently.
func DecodeForm(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			b = append(b, ' ')
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b = append(b, fromHex(s[i+1])<<4|fromHex(s[i+2]))
			i += 2
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func fromHex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
