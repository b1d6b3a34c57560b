// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"encoding/base64"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// hiding replaces the secret of a gateway in all forms in which a request has it, and in which an answer may quote it: as it is and
// in Base64, alone or as the password of HTTP Basic, each character as it is or escaped for an address, JSON or HTML.
type hiding struct {
	forms   []form
	longest int // no form is longer, in bytes
}

// form is the secret in one encoding. Base64 may be padded.
type form struct {
	characters []character
	padded     bool
}

// character is one character of a form, in all ways to write it. Forms in folded have no letter case.
type character struct {
	char          rune
	exact, folded []string
}

// mostEscaped is the length of the longest way to write a character, in bytes: \u0026#x0000001F600;
const mostEscaped = 24

func newHiding(user, secret string) (h hiding) {
	if secret == "" {
		return h
	}
	h.add(secret, false)
	for _, text := range []string{secret, user + ":" + secret} {
		h.add(base64.RawStdEncoding.EncodeToString([]byte(text)), true)
		h.add(base64.RawURLEncoding.EncodeToString([]byte(text)), true)
	}
	return h
}

func (h *hiding) add(text string, padded bool) {
	f := form{padded: padded}
	for text != "" {
		_, size := utf8.DecodeRuneInString(text)
		f.characters = append(f.characters, newCharacter(text[:size]))
		text = text[size:]
	}
	h.forms = append(h.forms, f)
	h.longest = max(h.longest, (len(f.characters)+2)*mostEscaped)
}

// ands are the ways to write the character that begins escapes of HTML: JSON escapes it.
var ands = []string{"&", `\u0026`}

func newCharacter(text string) character {
	r, _ := utf8.DecodeRuneInString(text)
	c := character{char: r, exact: []string{text, `\` + text}}
	if text != string(r) {
		c.exact = append(c.exact, string(r)) // JSON has this for a byte that is no UTF-8
	}
	if r == ' ' {
		c.exact = append(c.exact, "+")
	}
	percent, units := "", ""
	for _, b := range []byte(text) {
		percent += fmt.Sprintf("%%%02x", b)
	}
	for _, u := range utf16.Encode([]rune{r}) {
		units += fmt.Sprintf(`\u%04x`, u)
	}
	c.folded = []string{percent, units}
	for _, name := range []string{"amp;", "lt;", "gt;", "quot;", "apos;"} {
		if html.UnescapeString("&"+name) == string(r) {
			c.folded = append(c.folded, ands[0]+name, ands[1]+name)
		}
	}
	return c
}

func hasFolded(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// ends adds to list where the character ends if it is written at the beginning of text. at is added to all of them.
func (c *character) ends(list []int, text string, at int) []int {
	for _, way := range c.exact {
		if strings.HasPrefix(text, way) {
			list = append(list, at+len(way))
		}
	}
	if text == "" || text[0] != '%' && text[0] != '\\' && text[0] != '&' {
		return list
	}
	for _, way := range c.folded {
		if hasFolded(text, way) {
			list = append(list, at+len(way))
		}
	}
	for _, and := range ands {
		if !hasFolded(text, and+"#") {
			continue
		}
		number, _, ended := strings.Cut(text[len(and)+1:min(len(text), mostEscaped)], ";")
		digits, base := number, 10
		if hasFolded(number, "x") {
			digits, base = number[1:], 16
		}
		if n, err := strconv.ParseUint(digits, base, 32); ended && err == nil && rune(n) == c.char {
			list = append(list, at+len(and)+1+len(number)+1)
		}
	}
	return list
}

var padding = newCharacter("=")

// end returns where the form ends that is written in text at a place, or -1. Of several ends it is the last one: a percent sign in
// a secret may be written as it is, and be the beginning of an escape.
func (f *form) end(text string, at int) int {
	places, next := []int{at}, []int(nil)
	step := func(c *character) bool {
		next = next[:0]
		for _, p := range places {
			next = c.ends(next, text[p:], p)
		}
		slices.Sort(next)
		next = slices.Compact(next)
		if len(next) == 0 {
			return false
		}
		places, next = next, places
		return true
	}
	for i := range f.characters {
		if !step(&f.characters[i]) {
			return -1
		}
	}
	for range 2 {
		if !f.padded || !step(&padding) {
			break
		}
	}
	return places[len(places)-1]
}

// replace returns the first bytes of a text without the secret. What follows them in the text is looked at as well, so the secret is
// recognized at the end of them.
func (h *hiding) replace(text string, first int) string {
	var out strings.Builder
	for at := 0; at < first; {
		end := -1
		for i := range h.forms {
			end = max(end, h.forms[i].end(text, at))
		}
		if end < 0 {
			out.WriteByte(text[at])
			at++
			continue
		}
		out.WriteString("***")
		at = end
	}
	return out.String()
}

// hiddenText is a text whose first bytes are shown. The work is done when it is printed: for most messages it is not.
type hiddenText struct {
	*hiding
	text  string
	first int
}

func (h hiddenText) String() string { return h.replace(h.text, h.first) }
