// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"unicode"
	"unicode/utf8"
)

// isSpace reports whether c is white space of XML (production S).
func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// Classes of bytes. All above plain need further checks.
const (
	plain  = iota
	escape // legal, but its canonical form may differ
	stop   // ends the run or needs a check
	high   // 0xEF: may begin U+FFFE or U+FFFF, which are not characters
	bad    // not a character of XML
)

var (
	textClass  [256]uint8 // character data and CDATA sections
	valueClass [256]uint8 // attribute values
	charClass  [256]uint8 // comments and processing instructions
	nameEnd    [256]bool  // ASCII that is not allowed in names
)

func init() {
	for c := range 256 {
		b := byte(c)
		if c < 0x20 && !isSpace(b) {
			textClass[c], valueClass[c], charClass[c] = bad, bad, bad
		}
		letter := b|0x20 >= 'a' && b|0x20 <= 'z'
		digit := b >= '0' && b <= '9'
		nameEnd[c] = c < 0x80 && !letter && !digit && b != '_' && b != ':' && b != '-' && b != '.'
	}
	textClass[0xEF], valueClass[0xEF], charClass[0xEF] = high, high, high
	textClass['<'], textClass['&'], textClass['>'], textClass['\r'] = stop, stop, stop, escape
	valueClass['<'], valueClass['&'], valueClass['"'], valueClass['\''] = stop, stop, stop, stop
	valueClass['\t'], valueClass['\n'], valueClass['\r'] = escape, escape, escape
}

// isChar reports whether r matches production Char.
func isChar(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n' || r == '\r'
	case r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD:
		return true
	}
	return r >= 0x10000 && r <= 0x10FFFF
}

// nameStart and nameMore are the productions NameStartChar and NameChar beyond ASCII (XML 1.0,
// fifth edition).
var (
	nameStart = &unicode.RangeTable{
		R16: []unicode.Range16{
			{0xC0, 0xD6, 1}, {0xD8, 0xF6, 1}, {0xF8, 0x2FF, 1}, {0x370, 0x37D, 1},
			{0x37F, 0x1FFF, 1}, {0x200C, 0x200D, 1}, {0x2070, 0x218F, 1}, {0x2C00, 0x2FEF, 1},
			{0x3001, 0xD7FF, 1}, {0xF900, 0xFDCF, 1}, {0xFDF0, 0xFFFD, 1},
		},
		R32: []unicode.Range32{{0x10000, 0xEFFFF, 1}},
	}
	nameMore = &unicode.RangeTable{
		R16: []unicode.Range16{{0xB7, 0xB7, 1}, {0x300, 0x36F, 1}, {0x203F, 0x2040, 1}},
	}
)

// isNCName reports whether s matches production NCName of Namespaces in XML: a name without
// colon.
func isNCName(s []byte) bool {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if nameEnd[c] || c == ':' || i == 0 && (c == '-' || c == '.' || c >= '0' && c <= '9') {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		if !unicode.Is(nameStart, r) && (i == 0 || !unicode.Is(nameMore, r)) {
			return false
		}
		i += size
	}
	return len(s) > 0
}

// isBMPNonChar reports whether s begins with U+FFFE or U+FFFF.
func isBMPNonChar(s []byte) bool {
	return len(s) >= 3 && s[0] == 0xEF && s[1] == 0xBF && s[2] >= 0xBE
}
