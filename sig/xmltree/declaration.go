// SPDX-License-Identifier: Apache-2.0

package xmltree

import "bytes"

// declaration is an XML declaration (XML 1.0, 2.8).
type declaration struct {
	encoding string // as written, "" if absent
	at       int    // offset of the encoding name
	end      int    // offset after the declaration; 0 if there is none
}

// readDeclaration reads the XML declaration at the beginning of b, if any. The declaration is
// ASCII in every supported encoding except UTF-16.
func readDeclaration(b []byte) (d declaration, err error) {
	const open = "<?xml"
	if !bytes.HasPrefix(b, []byte(open)) || len(b) > len(open) && !isSpace(b[len(open)]) && b[len(open)] != '?' {
		return d, nil
	}
	i := len(open)
	// The three parts in their order. A part that is present must be valid.
	parts := []struct {
		name     string
		required bool
		valid    func(string) bool
		want     string
	}{
		{"version", true, func(s string) bool { return s == "1.0" }, "1.0, the only supported version of XML"},
		{"encoding", false, isEncodingName, "an encoding name"},
		{"standalone", false, func(s string) bool { return s == "yes" || s == "no" }, "yes or no"},
	}
	for _, part := range parts {
		at := skipSpace(b, i)
		if !bytes.HasPrefix(b[at:], []byte(part.name)) {
			if part.required {
				return d, failAt(b, at, nil, "the XML declaration must begin with version=\"1.0\"")
			}
			continue
		}
		if at == i {
			return d, failAt(b, at, nil, "white space is missing before %s in the XML declaration", part.name)
		}
		at = skipSpace(b, at+len(part.name))
		if at >= len(b) || b[at] != '=' {
			return d, failAt(b, at, nil, "= is missing after %s in the XML declaration", part.name)
		}
		at = skipSpace(b, at+1)
		if at >= len(b) || b[at] != '"' && b[at] != '\'' {
			return d, failAt(b, at, nil, "the value of %s in the XML declaration must be in quotes", part.name)
		}
		length := bytes.IndexByte(b[at+1:], b[at])
		if length < 0 {
			return d, failAt(b, at, nil, "the value of %s in the XML declaration does not end", part.name)
		}
		value := b[at+1 : at+1+length]
		if len(value) > 64 || !part.valid(string(value)) {
			return d, failAt(b, at+1, nil, "%s in the XML declaration must be %s", part.name, part.want)
		}
		if part.name == "encoding" {
			d.encoding, d.at = string(value), at+1
		}
		i = at + length + 2
	}
	i = skipSpace(b, i)
	if !bytes.HasPrefix(b[i:], []byte("?>")) {
		return d, failAt(b, i, nil, "the XML declaration must end with ?> after version, encoding and standalone, in this order")
	}
	d.end = i + 2
	return d, nil
}

func isEncodingName(s string) bool {
	for i, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-')) {
			return false
		}
	}
	return s != ""
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}
