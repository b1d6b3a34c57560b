// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"crypto/sha256"
	"slices"
	"strings"

	"tamga/internal/domain/fault"
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

// fold returns the value of a parameter in any letter case, "" if it is missing. Two values are the fault of
// givenTwice.
func (f Form) fold(name string) (value string, err error) {
	found := 0
	for other, values := range f {
		if strings.EqualFold(other, name) {
			found += len(values)
			value = values[0]
		}
	}
	if found > 1 {
		return "", givenTwice(name)
	}
	return value, nil
}

// givenTwice returns the fault of a name that has two values where one is read. Readers differ in which of the two
// counts, so none does.
func givenTwice(name string) error {
	return fault.Newf(fault.InvalidParameters, "%.64q is given twice", name)
}

// lists are the names in a form that may have several values. A [Form] or [Parts] has them in the tag many of its
// field: names, separated by commas; one that ends with * is the beginning of names. The name * alone leaves the
// check to the handler: OAuth has an error of its own for such a request.
type lists []string

func listsOf(tag string) lists {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

func (l lists) has(name string) bool {
	return slices.ContainsFunc(l, func(known string) bool {
		begin, open := strings.CutSuffix(known, "*")
		return name == known || open && strings.HasPrefix(name, begin)
	})
}

// check returns the fault of a parameter that is given twice and is no list.
func (l lists) check(f Form) error {
	for name, values := range f {
		if len(values) > 1 && !l.has(name) {
			return givenTwice(name)
		}
	}
	return nil
}

// names are the names of the parts of a body so far, as digests: there may be many, and long ones.
type names map[[sha256.Size]byte]struct{}

// add notes a name, or returns the fault of one that was there and is no list.
func (n names) add(name string, l lists) error {
	if l.has(name) {
		return nil
	}
	digest := sha256.Sum256([]byte(name))
	if _, was := n[digest]; was {
		return givenTwice(name)
	}
	n[digest] = struct{}{}
	return nil
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
